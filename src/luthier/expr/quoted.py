"""Quoted text: JavaScript's escapes read and written, and the expressions inside found."""

from __future__ import annotations

import re

from luthier.errors import ExpressionError
from luthier.expr.scan import Segment, scan_close

_SPECIAL = re.compile(
    r"\\(?:u\{(?P<point>[0-9a-fA-F]{1,6})\}|u(?P<unit>[0-9a-fA-F]{4})|x(?P<byte>[0-9a-fA-F]{2})|(?P<one>.))|\$\{|\{\{",
    re.DOTALL,
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "0": "\0", "\n": ""}
_NAMED = {value: f"\\{name}" for name, value in _ESCAPES.items() if value}
_LAST_POINT = 0x10FFFF


def cut(quoted: str) -> list[Segment]:
    """The parts of a text as written with its quotes. Offsets count from its first quote."""
    parts: list[Segment] = []
    plain: list[str] = []
    inside, position = quoted[:-1], 1
    while found := _SPECIAL.search(inside, position):
        plain.append(inside[position : found.start()])
        position = found.end()
        if found.group().startswith("\\"):
            plain.append(_unescape(found))
            continue
        end = scan_close(inside, found.end())
        if end < 0:
            opening = found.group()
            raise ExpressionError(
                f"`{opening}` is not closed.",
                offset=found.start(),
                hint=f"Write \\{opening} where it is only text.",
            )
        _flush(plain, parts)
        parts.append(Segment(inside[found.end() : end], found.end(), is_expression=True))
        position = end + (1 if found.group() == "${" else 2)
    plain.append(inside[position:])
    _flush(plain, parts)
    return parts


def _flush(plain: list[str], parts: list[Segment]) -> None:
    if text := "".join(plain):
        parts.append(Segment(_paired(text), 0, is_expression=False))
    plain.clear()


def _unescape(found: re.Match[str]) -> str:
    code = found["point"] or found["unit"] or found["byte"]
    if code is None:
        return _ESCAPES.get(found["one"], found["one"])
    point = int(code, 16)
    if point > _LAST_POINT:
        raise ExpressionError("There is no character of that number.", offset=found.start())
    return chr(point)


def _paired(text: str) -> str:
    """Two halves of a character, written as two escapes, made one."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


def quote(text: str) -> str:
    """The text in single quotes, so that it reads as it is."""
    text = text.replace("\\", "\\\\").replace("'", "\\'").replace("${", "\\${").replace("{{", "\\{{")
    return f"'{''.join(_NAMED.get(character, character) for character in text)}'"
