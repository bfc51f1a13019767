"""The one spelling of a tool's definition (RFC 8785), and its hash: what a pin holds a definition by.

The library that knows RFC 8785 takes half a millisecond for a definition, and a server may list thousands.
So a definition of which it is plain that msgspec spells it just so (nothing but text, whole numbers, true,
false and null) is left to msgspec. What RFC 8785 cannot spell at all (whole numbers that no double holds)
is spelled with all its digits, and marked as such: an edit of the last digit must not be missed.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

import msgspec

_sorted = msgspec.json.Encoder(order="sorted").encode
_EXACT = 2**53  # whole numbers below it are the same in a double
_FAR = re.compile(rb"[\xf0-\xff]")  # characters beyond the first plane: RFC 8785 sorts keys by halves of them
_BEYOND = b"beyond RFC 8785: "


def definition_hash(definition: Any) -> str:
    """SHA-256 of the canonical spelling, in hex. Raises ValueError for what has none."""
    return hashlib.sha256(canonical(definition)).hexdigest()


def canonical(value: Any) -> bytes:
    """The canonical spelling of a JSON value. Raises ValueError where there is none."""
    try:
        if _is_plain(value):
            text = _sorted(value)
            if text.isascii() or not _FAR.search(text):
                return text
        return _by_the_book(value)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _is_plain(value: Any) -> bool:
    kind = type(value)
    if kind is str or kind is bool or value is None:
        return True
    if kind is dict:
        return all(map(_is_plain, value.values()))
    if kind is list:
        return all(map(_is_plain, value))
    return kind is int and -_EXACT < value < _EXACT


def _by_the_book(value: Any) -> bytes:
    import rfc8785

    value = _numbers(value)
    try:
        return rfc8785.dumps(value)
    except rfc8785.IntegerDomainError:
        return _BEYOND + json.dumps(value, sort_keys=True).encode()


def _numbers(value: Any) -> Any:
    """The value with each whole number as an int, or as a float where only that can be spelled."""
    match value:
        case dict():
            return {key: _numbers(item) for key, item in value.items()}
        case list():
            return [_numbers(item) for item in value]
        case float() if value.is_integer() and -_EXACT < value < _EXACT:
            return int(value)
        case int() if not -_EXACT < value < _EXACT:
            return _as_float(value)
    return value


def _as_float(number: int) -> int | float:
    try:
        nearest = float(number)
    except OverflowError:
        return number
    return nearest if int(nearest) == number else number
