"""Text that came from elsewhere, made safe to show on terminals and in logs."""

from __future__ import annotations

import re

# What could steer a terminal, reorder a line or hide in it: controls (all but tab, newline and the return
# before one), letters that show nothing, bidirectional marks, line separators, tags, lone surrogates.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f"
    "\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e01ef]"
    "|\r(?!\n)"
)

_LAST_OF_BYTE, _LAST_OF_PLANE = 0xFF, 0xFFFF


def escape(text: str) -> str:
    """The text with everything that could steer a terminal written as an escape; newlines and tabs stay."""
    return _UNSAFE.sub(lambda match: _spelled(match.group()), text)


def one_line(text: str, limit: int = 200) -> str:
    """The escaped text on one line, cut at `limit` characters."""
    text = text.strip()
    head = text[: 10 * limit]  # of a huge text, no more than can be shown
    flat = escape(" ".join(head.split()))
    return flat if len(flat) <= limit and len(head) == len(text) else flat[: limit - 1] + "…"


def _spelled(character: str) -> str:
    code = ord(character)
    if code <= _LAST_OF_BYTE:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= _LAST_OF_PLANE else f"\\U{code:08x}"
