"""Whether a JSON value fits a declared type or is one of some values, told in plain words."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from luthier.spec.words import kind, listed
from luthier.text import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from luthier.spec.ensemble import InputType

WORDS: dict[InputType, str] = {
    "string": "text",
    "number": "a number",
    "integer": "a whole number",
    "boolean": "true or false",
    "array": "a list",
    "object": "a mapping",
}
"""What a type is called in a fault."""

_MAX_DEPTH = 200


def type_fault(value: Any, type_: InputType) -> str:
    """`must be a number, not text`; empty where it fits. True is no number; 4.0 is a whole one."""
    if _fits(value, type_):
        return ""
    shown = f"the number {value}" if type_ == "integer" and isinstance(value, float) else kind(value)
    return f"must be {WORDS[type_]}, not {shown}"


def enum_fault(value: Any, enum: Sequence[Any]) -> str:
    """`must be one of 1, 2`; empty where it is."""
    if any(_same(value, item) for item in enum):
        return ""
    return f"must be one of {listed(map(shown, enum))}, not {shown(value)}"


def json_fault(value: Any, depth: int = 0) -> str:
    """`holds a Python set, which is no JSON value`; empty for JSON values."""
    if depth > _MAX_DEPTH:
        return "is nested too deeply"
    match value:
        case None | bool() | int() | str():
            return ""
        case float():
            return "" if math.isfinite(value) else f"holds {value}, which JSON does not have"
        case dict():
            if any(not isinstance(key, str) for key in value):
                return "holds a mapping with keys that are not text"
            return next(filter(None, (json_fault(item, depth + 1) for item in value.values())), "")
        case list() | tuple():
            return next(filter(None, (json_fault(item, depth + 1) for item in value)), "")
        case _:
            return f"holds {kind(value)}, which is no JSON value"


def shown(value: Any) -> str:
    """A value as faults show it, cut to a readable length."""
    return one_line(json.dumps(value, default=str, ensure_ascii=False), 60)


def _fits(value: Any, type_: InputType) -> bool:
    match type_:
        case "string":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "array":
            return isinstance(value, (list, tuple))
        case "object":
            return isinstance(value, dict)
        case "number":
            return isinstance(value, (int, float)) and not isinstance(value, bool)
        case _:
            whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
            return whole and not isinstance(value, bool)


def _same(one: Any, other: Any) -> bool:
    """Equality of JSON: true is not 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    return bool(one == other)
