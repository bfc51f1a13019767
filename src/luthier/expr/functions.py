"""The closed lists of the language: functions, filters, methods, and names of JavaScript for functions."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from luthier.errors import ExpressionError
from luthier.expr import arithmetic, dates, lists, texts
from luthier.expr.function import ANY, LIST, NUMBER, OBJECT, TEXT, Function, whole_number
from luthier.expr.jsontext import json_text, text_of
from luthier.expr.numbers import Number, canonical
from luthier.expr.values import kind

if TYPE_CHECKING:
    from luthier.expr.budget import Frame

_WIDEST_INDENT = 10  # JavaScript's
_PARSING = 6  # units for a character of JSON, which may be half of an empty list


def _json(frame: Frame, value: Any) -> str:
    return json_text(value, frame)


def _stringify(frame: Frame, value: Any, replacer: Any = None, indent: Any = None) -> str:
    if replacer is not None:
        raise ExpressionError("`JSON.stringify` takes no replacer here; write null for it.")
    width = whole_number(indent, "The indent", 0)
    return json_text(value, frame, max(0, min(width, _WIDEST_INDENT)))


def _parse(frame: Frame, text: str) -> Any:
    frame.spend(_PARSING * len(text))
    try:
        return json.loads(text, parse_float=_read_float, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise ExpressionError("This text is not JSON.") from None


def _read_float(numeral: str) -> Number | None:
    return canonical(float(numeral))


def _no_constant(name: str) -> Any:
    raise ValueError(name)


def _string(frame: Frame, value: Any) -> str:
    return text_of(value, frame)


def _type(_frame: Frame, value: Any) -> str:
    return kind(value)


def _default(_frame: Frame, value: Any, fallback: Any) -> Any:
    """Never called: only its name and arity count, for it is compiled as `??`."""
    raise AssertionError(value, fallback)


_ROW = TEXT | LIST
_SIZED = TEXT | LIST | OBJECT

FUNCTIONS = {
    function.name: function
    for function in (
        Function("len", lists.length, _SIZED),
        Function("keys", lists.keys, OBJECT),
        Function("values", lists.values, OBJECT),
        Function("entries", lists.entries, OBJECT),
        Function("join", lists.join, LIST, 1, 2),
        Function("split", texts.split, TEXT, 1, 2),
        Function("trim", texts.trim, TEXT),
        Function("upper", texts.upper, TEXT),
        Function("lower", texts.lower, TEXT),
        Function("includes", texts.includes, ANY, 2, 2),
        Function("startsWith", texts.starts_with, ANY, 2, 2),
        Function("endsWith", texts.ends_with, ANY, 2, 2),
        Function("slice", lists.cut, _ROW, 1, 3),
        Function("map", lists.pluck, LIST, 2, 2),
        Function("where", lists.where, LIST, 3, 3),
        Function("sum", arithmetic.total, LIST),
        Function("min", arithmetic.smallest, ANY, 1, None),
        Function("max", arithmetic.largest, ANY, 1, None),
        Function("round", arithmetic.nearest, NUMBER),
        Function("floor", arithmetic.floor, NUMBER),
        Function("ceil", arithmetic.ceil, NUMBER),
        Function("abs", arithmetic.absolute, NUMBER),
        Function("now", dates.now, ANY, 0, 0),
        Function("date", dates.date, TEXT | NUMBER, 1, 2),
        Function("json", _json, ANY),
        Function("parse", _parse, TEXT),
        Function("default", _default, ANY, 2, 2),
        Function("type", _type, ANY),
    )
}

FILTERS = {
    function.name: function
    for function in (
        Function("uppercase", texts.upper, TEXT),
        Function("lowercase", texts.lower, TEXT),
        Function("capitalize", texts.capitalize, TEXT),
        Function("trim", texts.trim, TEXT),
        Function("split", texts.split, TEXT, 1, 2),
        Function("join", lists.join, LIST, 1, 2),
        Function("length", lists.length, _SIZED),
        Function("first", lists.first, _ROW),
        Function("last", lists.last, _ROW),
        Function("slice", lists.cut, _ROW, 2, 3),
        Function("reverse", lists.reverse, _ROW),
        Function("sort", lists.sort, LIST),
        Function("abs", arithmetic.absolute, NUMBER),
        Function("round", arithmetic.nearest, NUMBER),
        Function("floor", arithmetic.floor, NUMBER),
        Function("ceil", arithmetic.ceil, NUMBER),
        Function("string", _string, ANY),
        Function("number", arithmetic.number, TEXT | NUMBER | {"boolean"}),
        Function("boolean", arithmetic.boolean, ANY),
        Function("keys", lists.keys, OBJECT),
        Function("values", lists.values, OBJECT),
        Function("default", _default, ANY, 2, 2),
        Function("json", _json, ANY),
    )
}
"""What follows a bar. The value before the bar is the first argument."""

METHODS = {
    function.name: function
    for function in (
        Function("includes", texts.includes, ANY, 2, 2),
        Function("startsWith", texts.starts_with, ANY, 2, 2),
        Function("endsWith", texts.ends_with, ANY, 2, 2),
        Function("slice", lists.cut, _ROW, 1, 3),
        Function("split", texts.split_method, TEXT, 1, 2),
        Function("trim", texts.trim, TEXT),
        Function("toUpperCase", texts.upper, TEXT),
        Function("toLowerCase", texts.lower, TEXT),
        Function("join", lists.join_method, LIST, 1, 2),
        Function("map", lists.pluck, LIST, 2, 2),
    )
}
"""What follows a dot and is called. The value before the dot is the first argument."""

NAMESPACES = {
    "Date": {"now": FUNCTIONS["now"]},
    "JSON": {
        "parse": FUNCTIONS["parse"],
        "stringify": Function("JSON.stringify", _stringify, ANY, 1, 3),
    },
    "Math": {name: FUNCTIONS[name] for name in ("abs", "ceil", "floor", "max", "min", "round")},
    "Object": {name: FUNCTIONS[name] for name in ("entries", "keys", "values")},
}
"""Global objects of JavaScript that ensembles use, as far as functions stand behind them."""
