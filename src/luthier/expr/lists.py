"""Functions on lists and objects, and those that work on text as well because it is a row of characters."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from luthier.errors import ExpressionError
from luthier.expr.budget import ITEM, Frame
from luthier.expr.function import short_text, whole_number
from luthier.expr.jsontext import text_of
from luthier.expr.values import bare, is_number, member, strict_equal

if TYPE_CHECKING:
    from collections.abc import Mapping

_STEP = re.compile(
    r"""\.?(?P<name>[^.\[\]'"]+)|\[(?P<index>[0-9]{1,15})\]|\[(?P<quote>['"])(?P<key>.*?)(?P=quote)\]"""
)
_LONGEST_PATH, _MOST_STEPS = 1000, 64  # nobody writes more; it keeps the cache small


def length(_frame: Frame, value: Any) -> int:
    """Characters of text, items of a list, names in an object."""
    return len(value)


def keys(frame: Frame, value: Mapping[str, Any]) -> list[str]:
    frame.spend(ITEM * len(value))
    return list(value)


def values(frame: Frame, value: Mapping[str, Any]) -> list[Any]:
    frame.spend(ITEM * len(value))
    return list(value.values())


def entries(frame: Frame, value: Mapping[str, Any]) -> list[list[Any]]:
    """Pairs of name and value."""
    frame.spend(5 * ITEM * len(value))
    return [[key, item] for key, item in value.items()]


def join(frame: Frame, value: list[Any], separator: Any = None) -> str:
    """The items as mixed text shows them, with the separator (default: comma and space) between."""
    between = short_text(separator, "The separator", ", ")
    frame.spend(ITEM * len(value))
    texts = [text_of(item, frame) for item in value]
    frame.spend(sum(map(len, texts)) + len(between) * len(texts))
    return between.join(texts)


def join_method(frame: Frame, value: list[Any], separator: Any = None) -> str:
    """As in JavaScript: a comma where no separator is given."""
    return join(frame, value, "," if separator is None else separator)


def cut(frame: Frame, value: Any, start: Any = None, end: Any = None) -> Any:
    """From `start` up to, not including, `end`; negative ones count from the end."""
    bounds = slice(
        whole_number(start, "The start of a slice", 0), whole_number(end, "The end of a slice", len(value))
    )
    frame.spend(ITEM * len(range(*bounds.indices(len(value)))))
    return value[bounds]


def first(_frame: Frame, value: Any) -> Any:
    return value[0] if value else None


def last(_frame: Frame, value: Any) -> Any:
    return value[-1] if value else None


def reverse(frame: Frame, value: Any) -> Any:
    frame.spend(ITEM * len(value))
    return value[::-1]


def sort(frame: Frame, value: list[Any]) -> list[Any]:
    """Numbers by size if all are numbers, else everything by its text; nulls last. A stable sort."""
    frame.spend(4 * ITEM * len(value))
    plain = [bare(item) for item in value]
    if all(item is None or is_number(item) for item in plain):
        order = sorted(range(len(value)), key=lambda at: (plain[at] is None, plain[at] or 0))
    else:
        texts = [text_of(item, frame) for item in plain]
        order = sorted(range(len(value)), key=lambda at: (plain[at] is None, texts[at]))
    return [value[at] for at in order]


def pluck(frame: Frame, value: list[Any], path: Any) -> list[Any]:
    """What lies under the path in each item."""
    steps = _steps(path)
    frame.spend(ITEM * len(value) * (1 + len(steps)))
    return [_walk(item, steps) for item in value]


def where(frame: Frame, value: list[Any], path: Any, sought: Any) -> list[Any]:
    """The items that have exactly (`===`) that value under the path."""
    steps = _steps(path)
    frame.spend(ITEM * len(value) * (1 + len(steps)))
    return [item for item in value if strict_equal(bare(_walk(item, steps)), sought, frame)]


def _walk(value: Any, steps: tuple[str | int, ...]) -> Any:
    for step in steps:
        value = member(value, step)
    return value


def _steps(path: Any) -> tuple[str | int, ...]:
    if not isinstance(path, str):
        raise ExpressionError("The path must be text, such as 'user.name' or 'tags[0]'.")
    if len(path) > _LONGEST_PATH:
        raise ExpressionError(f"The path is longer than {_LONGEST_PATH} characters.")
    return _read_path(path)


@lru_cache(maxsize=256)
def _read_path(path: str) -> tuple[str | int, ...]:
    steps: list[str | int] = []
    position = 0
    while position < len(path):
        found = _STEP.match(path, position)
        if not found or len(steps) == _MOST_STEPS:
            raise ExpressionError(
                "The path is not one that can be followed; write it like 'user.name' or 'tags[0]'."
            )
        index = found["index"]
        steps.append(int(index) if index is not None else found["name"] or found["key"] or "")
        position = found.end()
    return tuple(steps)
