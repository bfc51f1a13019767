"""The second, lenient reader: makes strict JSON of what servers send and msgspec refuses.

Read in the way that loses least: a byte that is not UTF-8 and a lone surrogate become U+FFFD; NaN, infinities
and numbers beyond a double become null; raw control characters inside strings are taken as they are. It is
slow, and only for what the first reader has refused.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, NoReturn

import msgspec

BOM = b"\xef\xbb\xbf"
_DIGITS = 4300  # of the longest integer that Python reads back

_SURROGATE = re.compile(
    rb"\\\\"  # an escaped backslash: what follows it is text
    rb"|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # a pair, which is fine
    rb"|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})"  # one alone
)
_SPACE = re.compile(r"\s*")
_check = msgspec.json.Decoder().decode


class UnreadableError(ValueError):
    """No JSON can be made of it. The text says why."""


def repair(data: bytes) -> tuple[bytes, tuple[str, ...]]:
    """One JSON text as strict JSON, and what had to be changed. Raises UnreadableError."""
    data, notes = repair_text(data)
    try:
        _check(data)
    except (msgspec.DecodeError, RecursionError):
        text = data.decode()
        value, end, more = parse(text)
        if skip_space(text, end) < len(text):
            _refuse("more follows after its end")
        try:
            return msgspec.json.encode(value), (*notes, *more)
        except RecursionError:
            _refuse("it is nested too deeply")
    return data, notes


def repair_text(data: bytes) -> tuple[bytes, tuple[str, ...]]:
    """Valid UTF-8 without byte order mark and lone surrogates, JSON or not."""
    notes = []
    data = data.removeprefix(BOM).strip(b" \t\r\n")
    try:
        data.decode()
    except UnicodeDecodeError:
        data = data.decode(errors="replace").encode()
        notes.append("bytes that are not UTF-8 were replaced")
    if b"\\u" in data:
        fixed = _SURROGATE.sub(lambda match: b"\\ufffd" if match[1] else match[0], data)
        if fixed != data:
            data = fixed
            notes.append("lone surrogates were replaced")
    return data, tuple(notes)


def parse(text: str, start: int = 0) -> tuple[Any, int, tuple[str, ...]]:
    """The lenient value that begins at `start`, where it ends, and what had to be changed."""
    notes: set[str] = set()

    def constant(name: str) -> None:
        notes.add(f"{name} was read as null")

    def decimal(digits: str) -> float | None:
        value = float(digits)
        if math.isfinite(value):
            return value
        notes.add("a number beyond all bounds was read as null")
        return None

    def integer(digits: str) -> int | None:
        if len(digits) < _DIGITS:
            return int(digits)
        notes.add("a number beyond all bounds was read as null")
        return None

    decoder = json.JSONDecoder(parse_constant=constant, parse_float=decimal, parse_int=integer, strict=False)
    try:
        value, end = decoder.raw_decode(text, start)
    except RecursionError:
        _refuse("it is nested too deeply")
    except ValueError as error:
        _refuse(str(error))
    return value, end, tuple(sorted(notes))


def skip_space(text: str, start: int) -> int:
    """Where the next character that is not white space stands."""
    found = _SPACE.match(text, start)
    return found.end() if found else start


def _refuse(reason: str) -> NoReturn:
    raise UnreadableError(reason) from None
