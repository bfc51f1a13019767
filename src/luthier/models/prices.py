"""What a turn costs: by the prices that a project gives, else by the table of genai-prices."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from luthier.models.messages import Usage

_MILLION = 1_000_000


class Price(msgspec.Struct, frozen=True, kw_only=True):
    """US dollars for a million tokens. What a cache reads and writes costs as much as input, unless said."""

    input: float
    output: float
    cache_read: float | None = None
    cache_write: float | None = None


def cost_of(usage: Usage, model: str, *, vendor: str, prices: Mapping[str, Price]) -> float | None:
    """US dollars for a turn, None where nobody knows: for a free model give it a price of 0.

    `vendor` is whose table it is looked up in; empty, it is not.
    """
    if price := prices.get(model):
        return _cost(usage, price)
    return _listed(usage, model, vendor) if vendor else None


def _cost(usage: Usage, price: Price) -> float:
    read, written = usage.cache_read_tokens, usage.cache_write_tokens
    dollars = (
        max(0, usage.input_tokens - read - written) * price.input
        + read * (price.input if price.cache_read is None else price.cache_read)
        + written * (price.input if price.cache_write is None else price.cache_write)
        + usage.output_tokens * price.output
    )
    return round(dollars / _MILLION, 10)


def _listed(usage: Usage, model: str, vendor: str) -> float | None:
    try:
        import genai_prices
    except ImportError:
        return None
    counted = genai_prices.Usage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
    )
    try:
        found = genai_prices.calc_price(counted, model, provider_id=vendor)
    except (LookupError, ValueError):  # a model that the table does not know, or counts that it doubts
        return None
    return round(float(found.total_price), 10)
