"""Values as text: as mixed text shows them, and as JSON with canonical numbers."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from luthier.errors import ExpressionError
from luthier.expr.budget import DEPTH, ITEM, Frame
from luthier.expr.numbers import EXACT, number_text
from luthier.expr.values import bare, is_container, is_number, js_text

_SMALLEST, _LARGEST = -(2**63), 2**64 - 1  # the integers that msgspec writes
_PLAIN_FROM = 0.001  # from here on msgspec writes fractions as JavaScript does


def text_of(value: Any, frame: Frame) -> str:
    """The value within text: null as nothing, lists and objects as compact JSON, numbers canonical."""
    value = bare(value)
    if type(value) is str:
        return value
    if value is None:
        return ""
    return json_text(value, frame) if is_container(value) else js_text(value, frame)


def json_text(value: Any, frame: Frame, indent: int = 0) -> str:
    """The value as JSON, compact or indented. Raises ExpressionError for what JSON cannot say."""
    before = frame.left
    try:
        encoded = msgspec.json.encode(_tidy(value, frame, indent, 0, raw=True))
    except UnicodeEncodeError:  # a lone surrogate, which UTF-8 cannot hold but text can
        tidy = _tidy(value, frame, indent, 0, raw=False)
        separators = (",", ": ") if indent else (",", ":")
        text = json.dumps(tidy, ensure_ascii=False, indent=indent or None, separators=separators)
    else:
        text = (msgspec.json.format(encoded, indent=indent) if indent else encoded).decode()
    frame.spend(max(0, len(text) - (before - frame.left)))  # what it took so far covers most of its length
    return text


def _tidy(value: Any, frame: Frame, indent: int, depth: int, *, raw: bool) -> Any:
    """The value as the encoder takes it: envelopes opened, numbers canonical, its cost paid."""
    if type(value) is str:
        frame.spend(len(value))
        return value
    if value is None or type(value) is bool:
        return value
    value = bare(value)
    if is_number(value):
        return _tidy_number(value, raw=raw)
    if not is_container(value):
        return value
    if depth >= DEPTH:
        raise ExpressionError(f"The data is nested deeper than {DEPTH} levels.")
    frame.spend((ITEM + indent * depth) * len(value))
    if isinstance(value, list):
        return [_tidy(item, frame, indent, depth + 1, raw=raw) for item in value]
    return {
        _tidy_key(key, frame): _tidy(item, frame, indent, depth + 1, raw=raw) for key, item in value.items()
    }


def _tidy_key(key: Any, frame: Frame) -> str:
    if not isinstance(key, str):
        raise ExpressionError(
            f"A name in an object is of type {type(key).__name__}, not text, so it is not JSON."
        )
    frame.spend(len(key))
    return key


def _tidy_number(number: float, *, raw: bool) -> Any:
    if isinstance(number, int):
        plain = _SMALLEST <= number <= _LARGEST
    elif number.is_integer() and abs(number) < EXACT:
        return int(number)
    else:
        plain = _PLAIN_FROM <= abs(number) < EXACT
    if plain:
        return number
    text = number_text(number)
    return msgspec.Raw(text.encode()) if raw else number
