"""What goes into a script and what comes out of it: copies, and of the result JSON values only."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from luthier.errors import StepError
from luthier.taint import escape_pointer
from luthier.tools import Envelope

DEPTH = 100
"""How deep a result may be nested; a value that holds itself is deeper than any."""

_BITS = 13_288  # of an integer with 4,000 digits: Python prints few more


def own_copy(value: Any) -> Any:
    """A copy of what we hold already, for somebody who may change it."""
    match value:
        case Envelope():
            return Envelope(own_copy(value.fields()), own_copy(value.raw_blocks()))
        case dict():
            return {key: own_copy(item) for key, item in value.items()}
        case list() | tuple():
            return [own_copy(item) for item in value]
        case _:
            return value


def copied(value: Any) -> Any:
    """The same value, sharing nothing that can be changed. Envelopes stay envelopes.

    Tuples become lists, NaN and infinities null, halves of characters question marks. Raises StepError with
    the place of what is no JSON value.
    """
    return _copied(value, "", 0)


def _copied(value: Any, pointer: str, depth: int) -> Any:
    if depth > DEPTH:
        raise StepError("code", f"the result is nested more than {DEPTH} deep, or holds itself")
    match value:
        case None | bool():
            return value
        case str():
            text = str.__str__(value)
            return text if text.isascii() else text.encode(errors="replace").decode()
        case int():
            return _integer(int.__int__(value), pointer)
        case float():
            return float.__float__(value) if math.isfinite(value) else None
        case Envelope():
            return Envelope(
                _members(value.fields(), pointer, depth), _copied(value.raw_blocks(), pointer, depth)
            )
        case Mapping():
            return _members(value, pointer, depth)
        case list() | tuple():
            return [_copied(item, f"{pointer}/{index}", depth + 1) for index, item in enumerate(value)]
        case _:
            raise _not_json(value, pointer)


def _integer(value: int, pointer: str) -> int:
    if value.bit_length() > _BITS:
        where = f" at {pointer}" if pointer else ""
        raise StepError("code", f"the result{where} is an integer of more than 4,000 digits")
    return value


def _members(value: Mapping[Any, Any], pointer: str, depth: int) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for key, item in value.items():
        if not isinstance(key, str):
            where = f" at {pointer}" if pointer else ""
            raise StepError("code", f"the result{where} has the key {key!r}; keys of a mapping must be text")
        members[str.__str__(key)] = _copied(item, f"{pointer}/{escape_pointer(key)}", depth + 1)
    return members


def _not_json(value: Any, pointer: str) -> StepError:
    what = f"a value of type {type(value).__name__}"
    where = f" at {pointer}" if pointer else ""
    return StepError(
        "code",
        f"the result{where} is {what}, which is not JSON",
        hint="Return text, numbers, true, false, null, lists and mappings of these.",
    )
