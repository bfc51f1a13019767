"""JSON values as the operators see them: kinds, truth, conversion, comparison, members.

There is one null and a member of null is null. Only items of mappings and lists are ever reached, never an
attribute of a Python object. An envelope shows itself to member access alone; everything else sees its
content.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from luthier.errors import ExpressionError
from luthier.expr.budget import DEPTH, READ, STUDY, Frame
from luthier.expr.numbers import Number, canonical, double, number_text, read_number
from luthier.tools import Envelope

_KINDS: dict[type, str] = {
    type(None): "null",
    bool: "boolean",
    int: "number",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
}  # of bare values; any other type is a list or a mapping of its own make
_PLAIN = frozenset(_KINDS) - {float}
_SCALARS = _PLAIN - {list, dict} | {float}
_NUMBERS = frozenset({int, float})
_OBJECT_TEXT = "[object Object]"
_INDEX = re.compile(r"0|[1-9][0-9]{0,14}")


def bare(value: Any) -> Any:
    """The value as everything but member access sees it: None, bool, int, finite float, str, list or Mapping.

    Raises ExpressionError for anything that JSON does not know.
    """
    if type(value) in _PLAIN:
        return value
    match value:
        case float():
            return float.__float__(value) if math.isfinite(value) else None
        case Envelope():
            return bare(value["content"])
        case str():
            return str.__str__(value)
        case int():
            return int.__int__(value)
        case list() | Mapping():
            return value
        case tuple():
            return list(value)
    raise ExpressionError(
        f"A {type(value).__name__} is not a JSON value, so expressions cannot work with it."
    )


def kind(value: Any) -> str:
    """The kind of a bare value in JSON Schema's words."""
    return _KINDS.get(type(value)) or ("array" if isinstance(value, list) else "object")


def is_container(value: Any) -> bool:
    """Whether a bare value is a list or an object."""
    return type(value) not in _SCALARS


def is_number(value: Any) -> bool:
    """Whether a bare value is a number."""
    return type(value) in _NUMBERS


def truthy(value: Any) -> bool:
    """JavaScript's truth of a bare value: empty lists and objects are true, empty text and 0 are not."""
    return bool(value) or type(value) not in _SCALARS


def member(value: Any, key: str | int) -> Any:
    """What lies in a value under a name or an index; None where nothing does."""
    found = type(value)
    if found is dict:
        return value.get(key if type(key) is str else str(key))
    if found is list:
        return _item(value, key)
    if found is Envelope:
        try:
            return value[key] if type(key) is str else member(value["content"], key)
        except KeyError:
            return member(value["content"], key)
    if isinstance(value, Mapping):
        return value.get(str(key))
    return _item(value, key) if isinstance(value, list | tuple | str) else None


def _item(value: list[Any] | tuple[Any, ...] | str, key: str | int) -> Any:
    if isinstance(key, str):
        if key == "length":
            return len(value)
        if not _INDEX.fullmatch(key):
            return None
        key = int(key)
    return value[key] if 0 <= key < len(value) else None


def as_key(value: Any, frame: Frame) -> str | int:
    """The key that a bare value in brackets stands for."""
    if type(value) in _NUMBERS and value == (index := canonical(value)) and type(index) is int:
        return index
    return js_text(value, frame)


def to_number(value: Any, frame: Frame) -> Number:
    """JavaScript's `Number(value)` of a bare value; may be nan or infinite."""
    match value:
        case None:
            return 0
        case bool():
            return int(value)
        case int() | float():
            return value
        case str() | list():
            return read_number(js_text(value, frame))
        case _:
            return math.nan


def js_text(value: Any, frame: Frame, depth: int = 0) -> str:
    """JavaScript's `String(value)` of a bare value, which `+` and comparisons use."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return number_text(value)
        case str():
            frame.spend(len(value) >> READ)
            return value
        case list():
            return _list_text(value, frame, depth)
        case _:
            return _OBJECT_TEXT


def _list_text(value: list[Any], frame: Frame, depth: int) -> str:
    if depth >= DEPTH:
        raise ExpressionError(f"The data is nested deeper than {DEPTH} levels.")
    frame.spend(STUDY * len(value))
    items = [bare(item) for item in value]
    joined = ",".join("" if item is None else js_text(item, frame, depth + 1) for item in items)
    frame.spend(len(joined))
    return joined


def _primitive(value: Any, frame: Frame) -> Any:
    return js_text(value, frame) if is_container(value) else value


def strict_equal(left: Any, right: Any, frame: Frame) -> bool:
    """`===` of bare values. A list or an object equals itself only."""
    if is_container(left):
        return left is right
    if type(left) is str and type(right) is str:
        frame.spend(len(left) >> READ)
    return bool(left == right) and kind(left) == kind(right)


def loose_equal(left: Any, right: Any, frame: Frame) -> bool:
    """`==` of bare values."""
    if left is None or right is None:
        return left is right
    if kind(left) == kind(right) or (is_container(left) and is_container(right)):
        return strict_equal(left, right, frame)
    left, right = _primitive(left, frame), _primitive(right, frame)
    if type(left) is str and type(right) is str:
        return strict_equal(left, right, frame)
    return to_number(left, frame) == to_number(right, frame)


def less(left: Any, right: Any, frame: Frame, *, or_equal: bool) -> bool:
    """`<` or `<=` of bare values: text by character, everything else as numbers, false where one is none."""
    if not (type(left) in _NUMBERS and type(right) in _NUMBERS):
        left, right = _primitive(left, frame), _primitive(right, frame)
        if type(left) is str and type(right) is str:
            frame.spend(min(len(left), len(right)) >> READ)
        else:
            left, right = to_number(left, frame), to_number(right, frame)
    return bool(left <= right) if or_equal else bool(left < right)


def add(left: Any, right: Any, frame: Frame) -> Any:
    """`+` of bare values: text where one of them becomes text, else a sum (may be nan or infinite)."""
    left, right = _primitive(left, frame), _primitive(right, frame)
    if type(left) is str or type(right) is str:
        left, right = js_text(left, frame), js_text(right, frame)
        frame.spend(len(left) + len(right))
        return left + right
    left, right = to_number(left, frame), to_number(right, frame)
    return double(left) + double(right)
