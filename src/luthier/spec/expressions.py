"""Expressions where they are written: parsed at load, each name they use at its own line and column."""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING, Any

from luthier.errors import ExpressionError
from luthier.expr import Compiled, compile_condition, compile_faults, compile_value
from luthier.expr.scan import UnclosedError, segments

if TYPE_CHECKING:
    from collections.abc import Iterator

    from luthier.expr import Reference
    from luthier.spec.draft import Draft
    from luthier.spec.origin import KeyPath
    from luthier.spec.reader import Found, Sink


class Placed:
    """A value and the place where it stands. `compiled` is None where an expression in it cannot be parsed.

    `references` are the names that it uses, those of its good parts where others are faulty.
    """

    __slots__ = ("compiled", "path", "references", "value")

    def __init__(self, path: KeyPath, value: Any, compiled: Compiled | None) -> None:
        self.path = path
        self.value = value
        self.compiled = compiled
        self.references = _good_references(value) if compiled is None else compiled.references

    def spot(self, name: str, member: str = "") -> tuple[KeyPath, int]:
        """The string that uses a root name, with that member if it can be, and the offset of the name."""
        root = rf"(?<![\w.$'\"])(?<!\w-){re.escape(name)}"
        patterns = [rf"{root}(?:\?\.|\.|\[['\"]){re.escape(member)}(?![\w-])"] if member else []
        for pattern in (*patterns, rf"{root}(?![\w-])"):
            for path, text in _strings(self.path, self.value):
                for start, content in _expressions(text):
                    if found := re.search(pattern, content):
                        return path, start + found.start()
        return self.path, 0


def placed(sink: Sink, found: Found | None) -> Placed | None:
    """Compile what stands under a key. Every faulty expression becomes a fault with a caret at its column."""
    if found is None:
        return None
    path, value = found
    try:
        return Placed(path, value, compile_value(value))
    except ExpressionError:
        for inner, error in compile_faults(value):
            sink.faults.append(sink.document.expression_fault((*path, *inner), error))
        return Placed(path, value, None)


def noted(sink: Sink, draft: Draft, name: str, found: Found) -> None:
    """Note what stands under one key of a step's `config` in its draft, with its faults and its names."""
    if (read := placed(sink, found)) is not None:
        draft.uses.expressions[f"config.{name}"] = read


def placed_condition(sink: Sink, found: Found | None) -> Placed | None:
    """Compile a condition: true, false, or an expression with or without its delimiters."""
    if found is None:
        return None
    path, value = found
    if not isinstance(value, (bool, str)):
        sink.wrong("an expression", path, value)
        return None
    try:
        return Placed(path, value, compile_condition(value))
    except ExpressionError as error:
        sink.faults.append(sink.document.expression_fault(path, error))
        return Placed(path, value, None)


def _good_references(value: Any) -> frozenset[Reference]:
    found: frozenset[Reference] = frozenset()
    for _, text in _strings((), value):
        with contextlib.suppress(ExpressionError):
            found |= compile_value(text).references
    return found


def _strings(path: KeyPath, value: Any) -> Iterator[tuple[KeyPath, str]]:
    match value:
        case str():
            yield path, value
        case dict():
            for key, item in value.items():
                yield from _strings((*path, key), item)
        case list():
            for index, item in enumerate(value):
                yield from _strings((*path, index), item)


def _expressions(text: str) -> list[tuple[int, str]]:
    """The insides of the expressions in a text; the whole text where it has none: a bare condition."""
    try:
        cut = segments(text)
    except UnclosedError:
        return []
    inside = [(segment.start, segment.content) for segment in cut if segment.is_expression]
    return inside or [(0, text)]
