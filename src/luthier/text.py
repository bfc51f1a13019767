"""Text that came from elsewhere, made safe to show on a terminal or in a log: control characters are spelled out."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

# C0 and C1 controls, DEL, bidirectional overrides, line separators, zero-width and tag characters, lone surrogates.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff\U000e0000-\U000e007f]"
)


def escape(text: str) -> str:
    """The text with everything that could steer a terminal written as an escape; newlines and tabs stay."""
    return _UNSAFE.sub(lambda match: _spelled(match.group()), text)


def one_line(text: str, limit: int = 200) -> str:
    """The escaped text on one line, cut at `limit` characters."""
    flat = escape(" ".join(text.split()))
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


def _spelled(character: str) -> str:
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    if code < 0x10000:
        return f"\\u{code:04x}"
    return f"\\U{code:08x}"


def near(name: str, candidates: Iterable[str], limit: int = 3) -> tuple[str, ...]:
    """The candidates most like `name`, the best first; upper and lower case do not matter."""
    by_folded = {candidate.casefold(): candidate for candidate in candidates}
    return tuple(by_folded[folded] for folded in get_close_matches(name.casefold(), by_folded, limit))
