"""Text that came from elsewhere, made safe to show; and the names that are like a given one."""

from __future__ import annotations

import re
from difflib import get_close_matches
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

# What could steer a terminal, reorder a line or hide in it: controls (all but tab, newline and the return
# before one), letters that show nothing, bidirectional marks, line separators, tags, lone surrogates.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f"
    "\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e01ef]"
    "|\r(?!\n)"
)

_LAST_OF_BYTE, _LAST_OF_PLANE = 0xFF, 0xFFFF

# `near` compares every pair of characters: more than this would stall the loop.
_MOST_CHARACTERS = 100
_MOST_CANDIDATES = 1_000


def escape(text: str) -> str:
    """The text with everything that could steer a terminal written as an escape; newlines and tabs stay."""
    return _UNSAFE.sub(lambda match: _spelled(match.group()), text)


def one_line(text: str, limit: int = 200) -> str:
    """The escaped text on one line, cut at `limit` characters."""
    text = text.strip()
    head = text[: 10 * limit]  # of a huge text, no more than can be shown
    flat = escape(" ".join(head.split()))
    return flat if len(flat) <= limit and len(head) == len(text) else flat[: limit - 1] + "…"


def near(name: str, candidates: Iterable[str], limit: int = 3) -> tuple[str, ...]:
    """The candidates most like `name`, the best first; upper and lower case do not matter."""
    spellings: dict[str, list[str]] = {}
    for candidate in islice(candidates, _MOST_CANDIDATES):
        spellings.setdefault(candidate[:_MOST_CHARACTERS].casefold(), []).append(candidate)
    matches = get_close_matches(name[:_MOST_CHARACTERS].casefold(), spellings, limit)
    return tuple(spelling for match in matches for spelling in spellings[match])[:limit]


def _spelled(character: str) -> str:
    code = ord(character)
    if code <= _LAST_OF_BYTE:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= _LAST_OF_PLANE else f"\\U{code:08x}"
