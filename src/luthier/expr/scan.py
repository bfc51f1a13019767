"""Finding `${…}` and `{{…}}` in text: where an expression begins, where it ends, and what is only text.

An expression may hold braces of its own (object literals, nested delimiters) and quoted text with anything in
it, so its close is found by counting, not by searching. Quotes end at the next quote of their kind that no
backslash precedes.

There is one escape, for text: a backslash before `${` or `{{` makes it text, and is itself dropped.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_OPENING = re.compile(r"\\(?:\$\{|\{\{)|\$\{|\{\{")
_INSIDE = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[{}'"]""", re.DOTALL)


class Segment(NamedTuple):
    """A stretch of text, or the inside of one expression; `start` is where `content` begins in the whole."""

    content: str
    start: int
    is_expression: bool


class UnclosedError(ValueError):
    """An opening without its close; `start` is where the opening stands."""

    def __init__(self, start: int) -> None:
        super().__init__(start)
        self.start = start


def scan_close(text: str, start: int) -> int:
    """The index of the close that matches an opening, or -1.

    `start` is the index just after `${` or `{{`; the answer is that of the `}`, or of the first brace of the
    `}}`.
    """
    close = "}}" if text.startswith("{{", start - 2) else "}"
    depth = 0
    for found in _INSIDE.finditer(text, start):
        match found.group():
            case "{":
                depth += 1
            case "}" if depth:
                depth -= 1
            case "}":
                return found.start() if text.startswith(close, found.start()) else -1
            case "'" | '"':
                return -1
    return -1


def has_expression(text: str) -> bool:
    """Whether any opening in the text is not escaped."""
    return any(not found.group().startswith("\\") for found in _OPENING.finditer(text))


def segments(text: str) -> list[Segment]:
    """The text cut into text (escapes resolved) and expressions, in order. Raises UnclosedError."""
    cut: list[Segment] = []
    plain: list[str] = []
    plain_start = position = 0
    while found := _OPENING.search(text, position):
        plain.append(text[position : found.start()])
        if found.group().startswith("\\"):
            plain.append(found.group()[1:])
            position = found.end()
            continue
        end = scan_close(text, found.end())
        if end < 0:
            raise UnclosedError(found.start())
        if any(plain):
            cut.append(Segment("".join(plain), plain_start, is_expression=False))
        cut.append(Segment(text[found.end() : end], found.end(), is_expression=True))
        plain = []
        plain_start = position = end + (1 if found.group() == "${" else 2)
    plain.append(text[position:])
    if any(plain):
        cut.append(Segment("".join(plain), plain_start, is_expression=False))
    return cut
