"""From a tree to a function that calculates it: compiled once, when the file is read.

Every result carries its label. A member has the label of the nearest pointer at or above it. Operators,
filters, functions and text join the labels of all that they evaluated. A choice takes the label of what it
yields, joined with that of what decided; the branch not taken is never touched. Lists and objects keep one
label for each leaf.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from luthier.errors import ExpressionError
from luthier.expr import arithmetic
from luthier.expr.budget import ITEM, Frame
from luthier.expr.functions import FILTERS, FUNCTIONS, METHODS, NAMESPACES
from luthier.expr.jsontext import text_of
from luthier.expr.nodes import (
    Binary,
    Call,
    Choice,
    Filter,
    ListOf,
    Literal,
    Method,
    Name,
    Node,
    ObjectOf,
    Path,
    Ternary,
    Unary,
)
from luthier.expr.values import as_key, bare, less, loose_equal, member, strict_equal, truthy
from luthier.taint import TRUSTED, Label, Labelled, escape_pointer, merge
from luthier.text import near, one_line
from luthier.tools import Envelope

Run = Callable[[Frame], Labelled[Any]]

_SHOWN = 64  # characters of an unknown name


def compile_tree(node: Node) -> Run:
    """The function that evaluates a tree. It raises ExpressionError with the offset of the node at fault."""
    return _COMPILERS[type(node)](node)


def whole(found: Labelled[Any]) -> Label:
    """The label of the value as one piece."""
    return found.whole if found.parts else found.label


def join_text(parts: tuple[str | Run, ...], frame: Frame) -> Labelled[str]:
    """Text with values in it."""
    label, texts = TRUSTED, []
    for part in parts:
        if isinstance(part, str):
            texts.append(part)
            continue
        found = part(frame)
        label = label.join(whole(found))
        texts.append(text_of(found.value, frame))
    frame.spend(sum(map(len, texts)))
    return Labelled("".join(texts), label)


def _placed(at: int, work: Run) -> Run:
    """The same work, its faults pointing to `at` unless they already point deeper."""

    def run(frame: Frame) -> Labelled[Any]:
        try:
            return work(frame)
        except ExpressionError as error:
            if error.offset < 0:
                error.offset = at
            raise

    return run


def _literal(node: Literal) -> Run:
    value = Labelled(node.value)
    return lambda _: value


def _name(node: Name) -> Run:
    name, at = node.name, node.at

    def run(frame: Frame) -> Labelled[Any]:
        try:
            return frame.values[name]
        except KeyError:
            raise _missing(name, at, frame) from None

    return run


def _missing(name: str, at: int, frame: Frame) -> ExpressionError:
    close = near(name, frame.values)
    hint = f"Did you mean {' or '.join(close)}?" if close else ""
    if name == "env":
        hint = "List the variables that ensembles may read under `expose_env` in luthier.yaml."
    return ExpressionError(f"There is no {one_line(name, _SHOWN)!r} here.", offset=at, hint=hint)


def _path(node: Path) -> Run:
    base = compile_tree(node.base)
    fixed = tuple(key for key in node.keys if not isinstance(key, Node))
    if len(fixed) < len(node.keys):
        return _placed(node.at, _calculated_path(base, node.keys))
    if isinstance(node.base, Name):
        return _named_path(node.base, fixed)
    return lambda frame: _descend(base(frame), fixed)


def _named_path(node: Name, keys: tuple[str | int, ...]) -> Run:
    """The commonest expression of all, so it is spelled out: the same as `_name` and `_descend`."""
    name, at = node.name, node.at

    def run(frame: Frame) -> Labelled[Any]:
        try:
            found = frame.values[name]
        except KeyError:
            raise _missing(name, at, frame) from None
        if found.parts:
            return _descend_parts(found, keys)
        value = found.value
        for key in keys:
            value = member(value, key)
        if type(value) is float and not math.isfinite(value):
            value = None
        return Labelled(value, found.label)

    return run


def _calculated_path(base: Run, written: tuple[str | int | Node, ...]) -> Run:
    keys = tuple(compile_tree(key) if isinstance(key, Node) else key for key in written)

    def run(frame: Frame) -> Labelled[Any]:
        found, label = base(frame), TRUSTED
        for key in keys:
            if callable(key):
                chosen = key(frame)
                label = label.join(whole(chosen))
                found = _descend(found, (as_key(bare(chosen.value), frame),))
            else:
                found = _descend(found, (key,))
        return found.joined(label)

    return run


def _descend(found: Labelled[Any], keys: tuple[str | int, ...]) -> Labelled[Any]:
    if found.parts:
        return _descend_parts(found, keys)
    value = found.value
    for key in keys:
        value = member(value, key)
    if type(value) is float and not math.isfinite(value):
        value = None
    return Labelled(value, found.label)


def _descend_parts(found: Labelled[Any], keys: tuple[str | int, ...]) -> Labelled[Any]:
    value, pointer = found.value, ""
    for key in keys:
        if isinstance(value, Envelope) and key not in value.fields():
            pointer += "/content"
        pointer = f"{pointer}/{escape_pointer(str(key))}"
        value = member(value, key)
    inner = pointer + "/"
    parts = {at[len(pointer) :]: label for at, label in found.parts.items() if at.startswith(inner)}
    return Labelled(value, found.at(pointer), parts)


def _unary(node: Unary) -> Run:
    operand = compile_tree(node.operand)
    work = _UNARY[node.operator]

    def run(frame: Frame) -> Labelled[Any]:
        found = operand(frame)
        return Labelled(work(bare(found.value), frame), whole(found))

    return _placed(node.at, run)


def _binary(node: Binary) -> Run:
    left, right = compile_tree(node.left), compile_tree(node.right)
    work = _BINARY[node.operator]

    def run(frame: Frame) -> Labelled[Any]:
        first, second = left(frame), right(frame)
        value = work(bare(first.value), bare(second.value), frame)
        return Labelled(value, whole(first).join(whole(second)))

    return _placed(node.at, run)


def _choose(operator: str, left: Run, right: Run, at: int) -> Run:
    def run(frame: Frame) -> Labelled[Any]:
        first = left(frame)
        value = bare(first.value)
        enough = value is not None if operator == "??" else truthy(value) is (operator == "||")
        return first if enough else right(frame).joined(whole(first))

    return _placed(at, run)


def _choice(node: Choice) -> Run:
    return _choose(node.operator, compile_tree(node.left), compile_tree(node.right), node.at)


def _ternary(node: Ternary) -> Run:
    condition, then, otherwise = map(compile_tree, (node.condition, node.then, node.otherwise))

    def run(frame: Frame) -> Labelled[Any]:
        asked = condition(frame)
        chosen = then if truthy(bare(asked.value)) else otherwise
        return chosen(frame).joined(whole(asked))

    return _placed(node.at, run)


def _list(node: ListOf) -> Run:
    items = tuple(map(compile_tree, node.items))
    cost = ITEM * len(items)

    def run(frame: Frame) -> Labelled[Any]:
        frame.spend(cost)
        return merge([item(frame) for item in items])

    return _placed(node.at, run)


def _object(node: ObjectOf) -> Run:
    entries = tuple((key, compile_tree(value)) for key, value in node.entries)
    cost = ITEM * len(entries)

    def run(frame: Frame) -> Labelled[Any]:
        frame.spend(cost)
        return merge({key: value(frame) for key, value in entries})

    return _placed(node.at, run)


def _call(node: Call) -> Run:
    space, _, name = node.name.rpartition(".")
    function = NAMESPACES[space][name] if space else FUNCTIONS[name]
    return _apply(function.name, function.call, node.arguments, node.at)


def _method(node: Method) -> Run:
    return _apply(node.name, METHODS[node.name].call, (node.target, *node.arguments), node.at)


def _filter(node: Filter) -> Run:
    return _apply(node.name, FILTERS[node.name].call, (node.target, *node.arguments), node.at)


def _apply(name: str, call: Callable[[Frame, list[Any]], Any], arguments: tuple[Node, ...], at: int) -> Run:
    given = tuple(map(compile_tree, arguments))
    if name == "default":
        return _choose("??", given[0], given[1], at)

    def run(frame: Frame) -> Labelled[Any]:
        found = [argument(frame) for argument in given]
        label = TRUSTED
        for one in found:
            label = label.join(whole(one))
        return Labelled(call(frame, [one.value for one in found]), label)

    return _placed(at, run)


_UNARY: dict[str, Callable[[Any, Frame], Any]] = {
    "!": lambda value, _: not truthy(value),
    "-": arithmetic.negate,
    "+": arithmetic.plus,
}
_BINARY: dict[str, Callable[[Any, Any, Frame], Any]] = {
    "+": arithmetic.add,
    "-": arithmetic.subtract,
    "*": arithmetic.multiply,
    "/": arithmetic.divide,
    "%": arithmetic.remainder,
    "==": loose_equal,
    "!=": lambda left, right, frame: not loose_equal(left, right, frame),
    "===": strict_equal,
    "!==": lambda left, right, frame: not strict_equal(left, right, frame),
    "<": lambda left, right, frame: less(left, right, frame, or_equal=False),
    "<=": lambda left, right, frame: less(left, right, frame, or_equal=True),
    ">": lambda left, right, frame: less(right, left, frame, or_equal=False),
    ">=": lambda left, right, frame: less(right, left, frame, or_equal=True),
}
_COMPILERS: dict[type[Node], Callable[[Any], Run]] = {
    Literal: _literal,
    Name: _name,
    Path: _path,
    Unary: _unary,
    Binary: _binary,
    Choice: _choice,
    Ternary: _ternary,
    ListOf: _list,
    ObjectOf: _object,
    Call: _call,
    Method: _method,
    Filter: _filter,
}
