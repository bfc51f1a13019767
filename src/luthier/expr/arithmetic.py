"""Functions on numbers, and the arithmetic operators."""

from __future__ import annotations

import math
import operator
from typing import Any

from luthier.errors import ExpressionError
from luthier.expr.budget import ITEM, Frame
from luthier.expr.numbers import Number, canonical, double, read_number
from luthier.expr.values import add as add_values
from luthier.expr.values import bare, is_number, kind, to_number, truthy

_HALF = 0.5


def add(left: Any, right: Any, frame: Frame) -> Any:
    result = add_values(left, right, frame)
    return result if isinstance(result, str) else canonical(result)


def subtract(left: Any, right: Any, frame: Frame) -> Number | None:
    return canonical(double(to_number(left, frame)) - double(to_number(right, frame)))


def multiply(left: Any, right: Any, frame: Frame) -> Number | None:
    return canonical(double(to_number(left, frame)) * double(to_number(right, frame)))


def divide(left: Any, right: Any, frame: Frame) -> Number | None:
    dividend, divisor = double(to_number(left, frame)), double(to_number(right, frame))
    return canonical(dividend / divisor) if divisor else None


def remainder(left: Any, right: Any, frame: Frame) -> Number | None:
    """The sign is that of the dividend."""
    dividend, divisor = double(to_number(left, frame)), double(to_number(right, frame))
    if not divisor or not math.isfinite(dividend):
        return None
    return canonical(math.fmod(dividend, divisor))


def negate(value: Any, frame: Frame) -> Number | None:
    return canonical(-double(to_number(value, frame)))


def plus(value: Any, frame: Frame) -> Number | None:
    return canonical(to_number(value, frame))


def absolute(_frame: Frame, value: Number) -> Number:
    return abs(value)


def floor(_frame: Frame, value: Number) -> Number | None:
    return canonical(math.floor(value)) if isinstance(value, float) else value


def ceil(_frame: Frame, value: Number) -> Number | None:
    return canonical(math.ceil(value)) if isinstance(value, float) else value


def nearest(_frame: Frame, value: Number) -> Number | None:
    """To the nearest whole number; a half goes up, also below zero."""
    if not isinstance(value, float):
        return value
    below = math.floor(value)
    return canonical(below + 1 if value - below >= _HALF else below)


def total(frame: Frame, value: list[Any]) -> Number | None:
    """The sum of the numbers in a list; nulls are passed over, an empty list is 0."""
    frame.spend(ITEM * len(value))
    result = 0.0
    for item in map(bare, value):
        if item is None:
            continue
        if not is_number(item):
            raise ExpressionError(f"`sum` adds numbers, and the list holds a value of type {kind(item)}.")
        result += double(item)
    return canonical(result)


def smallest(frame: Frame, *given: Any) -> Any:
    return _extreme(frame, given, "min", operator.lt)


def largest(frame: Frame, *given: Any) -> Any:
    return _extreme(frame, given, "max", operator.gt)


def _extreme(frame: Frame, given: tuple[Any, ...], name: str, better: Any) -> Any:
    """Over one list or several values; numbers or text, nulls passed over, null where nothing is left."""
    items = given[0] if len(given) == 1 and isinstance(given[0], list) else given
    frame.spend(ITEM * len(items))
    best = None
    for item in map(bare, items):
        if item is None:
            continue
        if kind(item) not in ("number", "string") or (best is not None and kind(item) != kind(best)):
            raise ExpressionError(
                f"`{name}` compares numbers with numbers or text with text, and got {kind(item)}."
            )
        if best is None or better(item, best):
            best = item
    return best


def number(frame: Frame, value: Any) -> Number | None:
    """The number that text spells, null if it spells none; true is 1 and false 0."""
    if isinstance(value, str):
        frame.spend(len(value))
        return canonical(read_number(value))
    return int(value) if isinstance(value, bool) else value


def boolean(_frame: Frame, value: Any) -> bool:
    return truthy(value)
