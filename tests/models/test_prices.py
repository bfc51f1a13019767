"""What a turn costs."""

from __future__ import annotations

from luthier.models import Price, Usage
from luthier.models.prices import cost_of

USAGE = Usage(
    input_tokens=1_000_000, output_tokens=100_000, cache_read_tokens=400_000, cache_write_tokens=100_000
)


def test_a_given_price_is_for_a_million_tokens() -> None:
    assert cost_of(USAGE, "m", vendor="", prices={"m": Price(input=2, output=10)}) == 3.0


def test_what_a_cache_reads_and_writes_has_prices_of_its_own() -> None:
    price = Price(input=2, output=10, cache_read=0.2, cache_write=3)
    assert cost_of(USAGE, "m", vendor="", prices={"m": price}) == 0.5 * 2 + 0.4 * 0.2 + 0.1 * 3 + 0.1 * 10


def test_a_given_price_wins_over_the_table() -> None:
    free = {"gpt-4o": Price(input=0, output=0)}
    assert cost_of(USAGE, "gpt-4o", vendor="openai", prices=free) == 0


def test_a_known_model_costs_what_the_table_says() -> None:
    cost = cost_of(Usage(input_tokens=1000, output_tokens=1000), "gpt-4o", vendor="openai", prices={})
    assert cost is not None
    assert 0 < cost < 1


def test_a_model_that_nobody_knows_has_no_cost() -> None:
    assert cost_of(USAGE, "no-such-model", vendor="openai", prices={}) is None
    assert cost_of(USAGE, "gpt-4o", vendor="no-such-vendor", prices={}) is None
    assert cost_of(USAGE, "gpt-4o", vendor="", prices={}) is None


def test_usages_add_up() -> None:
    assert Usage(input_tokens=1, output_tokens=2).plus(USAGE).input_tokens == 1_000_001
