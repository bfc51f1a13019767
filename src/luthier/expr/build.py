"""From the rules of the grammar to the tree; names, arity and depth are checked on the way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Never

from lark import Token, Transformer, v_args

from luthier.errors import ExpressionError
from luthier.expr import quoted
from luthier.expr.functions import FILTERS, FUNCTIONS, METHODS, NAMESPACES
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
from luthier.expr.numbers import canonical
from luthier.text import near, one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from luthier.expr.function import Function

DEPTH = 100
"""How high the tree of an expression may be."""

_SHOWN = 64  # characters of an unknown name
_DIGITS = 300  # a longer run of digits is not an id; it is read as the double that it is


def _height(at: int, *below: Node) -> int:
    depth = 1 + max((node.depth for node in below), default=0)
    if depth > DEPTH:
        raise ExpressionError(f"This expression is nested deeper than {DEPTH} levels.", offset=at)
    return depth


def _nodes(children: Iterable[Any]) -> tuple[Node, ...]:
    return tuple(child for child in children if isinstance(child, Node))


@v_args(inline=True)
class Builder(Transformer[Token, Any]):
    """`parse_inner(source, offset)` parses an expression inside quoted text that begins at that offset."""

    def __init__(self, parse_inner: Callable[[str, int], Node]) -> None:
        super().__init__()
        self._parse_inner = parse_inner

    def start(self, node: Node) -> Node:
        return node

    def ternary(self, condition: Node, question: Token, then: Node, _colon: Token, otherwise: Node) -> Node:
        at = _start(question)
        return Ternary(condition, then, otherwise, at=at, depth=_height(at, condition, then, otherwise))

    def choice(self, left: Node, operator: Token, right: Node) -> Node:
        return Choice(
            str(operator), left, right, at=_start(operator), depth=_height(_start(operator), left, right)
        )

    def binary(self, left: Node, operator: Token, right: Node) -> Node:
        return Binary(
            str(operator), left, right, at=_start(operator), depth=_height(_start(operator), left, right)
        )

    def unary(self, operator: Token, operand: Node) -> Node:
        return Unary(str(operator), operand, at=_start(operator), depth=_height(_start(operator), operand))

    def filter(self, target: Node, _bar: Token, name: Token, *rest: Any) -> Node:
        given = tuple(
            Literal(argument.name, at=argument.at)
            if type(argument) is Name and not argument.bracketed
            else argument
            for argument in _nodes(rest)
        )
        function = FILTERS.get(name)
        if function is None:
            _unknown(
                "filter",
                name,
                FILTERS,
                "" if name not in FUNCTIONS else f"Write {name}(…): it is a function.",
            )
        _count(function, name, len(given), implied=1)
        return Filter(target, str(name), given, at=_start(name), depth=_height(_start(name), target, *given))

    def member(self, target: Node, _dot: Token, name: Token) -> Node:
        return self._path(target, str(name), _start(name))

    def index(self, target: Node, *rest: Any) -> Node:
        (key,) = _nodes(rest)
        at = key.at
        if isinstance(key, Literal) and (isinstance(key.value, str) or type(key.value) is int):
            return self._path(target, key.value, at)
        return self._path(target, key, at)

    def _path(self, target: Node, key: str | int | Node, at: int) -> Node:
        below = (key,) if isinstance(key, Node) else ()
        if isinstance(target, Path):
            depth = max(target.depth, _height(at, *below))
            return Path(target.base, (*target.keys, key), at=target.at, depth=depth)
        return Path(target, (key,), at=at, depth=_height(at, target, *below))

    def method(self, target: Node, _dot: Token, name: Token, *rest: Any) -> Node:
        given, at = _nodes(rest), _start(name)
        if isinstance(target, Name) and target.name in NAMESPACES:
            space = NAMESPACES[target.name]
            function = space.get(name)
            if function is None:
                _unknown(
                    "function", name, space, f"{target.name} has here: {', '.join(space)}.", target.name + "."
                )
            _count(function, name, len(given))
            return Call(f"{target.name}.{name}", given, at=at, depth=_height(at, *given))
        function = METHODS.get(name)
        if function is None:
            _unknown("method", name, METHODS, _FUNCTION_HINTS.get(name, ""))
        _count(function, name, len(given), implied=1)
        return Method(target, str(name), given, at=at, depth=_height(at, target, *given))

    def call(self, name: Token, *rest: Any) -> Node:
        given, at = _nodes(rest), _start(name)
        function = FUNCTIONS.get(name)
        if function is None:
            _unknown(
                "function", name, FUNCTIONS, f"Write … | {name}: it is a filter." if name in FILTERS else ""
            )
        _count(function, name, len(given))
        return Call(str(name), given, at=at, depth=_height(at, *given))

    def name(self, name: Token) -> Node:
        return Name(str(name), at=_start(name))

    def null(self, token: Token) -> Node:
        return Literal(None, at=_start(token))

    def true(self, token: Token) -> Node:
        return Literal(value=True, at=_start(token))

    def false(self, token: Token) -> Node:
        return Literal(value=False, at=_start(token))

    def number(self, token: Token) -> Node:
        exact = token.isdecimal() and len(token) <= _DIGITS
        return Literal(int(token) if exact else canonical(float(token)), at=_start(token))

    def string(self, token: Token) -> Node:
        at = _start(token)
        parts = self._parts(token, at)
        if not any(isinstance(part, Node) for part in parts):
            return Literal("".join(map(str, parts)), at=at)
        # The same as join([…], ''), so the tree knows no text with holes.
        items = tuple(part if isinstance(part, Node) else Literal(part, at=at) for part in parts)
        depth = _height(at, *items)
        return Call("join", (ListOf(items, at=at, depth=depth), Literal("")), at=at, depth=depth + 1)

    def _parts(self, token: str, at: int) -> tuple[str | Node, ...]:
        try:
            cut = quoted.cut(token)
        except ExpressionError as error:
            error.offset += at
            raise
        return tuple(
            self._parse_inner(part.content, at + part.start) if part.is_expression else part.content
            for part in cut
        )

    def brackets(self, _open: Token, node: Node, _close: Token) -> Node:
        return Name(node.name, bracketed=True, at=node.at) if isinstance(node, Name) else node

    def list(self, *items: Any) -> Node:
        nodes, at = _nodes(items), _start(items[0])
        return ListOf(nodes, at=at, depth=_height(at, *nodes))

    def object(self, *items: Any) -> Node:
        entries, at = tuple(item for item in items if isinstance(item, tuple)), _start(items[0])
        return ObjectOf(entries, at=at, depth=_height(at, *(value for _, value in entries)))

    def entry(self, key: Token, _colon: Token, value: Node) -> tuple[str, Node]:
        if key.type != "STRING":
            return str(key), value
        parts = self._parts(key, _start(key))
        if any(isinstance(part, Node) for part in parts):
            raise ExpressionError("The name of an entry cannot hold an expression.", offset=_start(key))
        return "".join(map(str, parts)), value


_FUNCTION_HINTS = {
    "filter": "Write where(list, 'path', value).",
    "reduce": "Write sum(…), min(…) or max(…), or use a `code` step.",
    "toString": "Write … | string.",
    "reverse": "Write … | reverse.",
    "sort": "Write … | sort.",
    "at": "Write … | first, … | last, or [index].",
    "trimStart": "Write … | trim.",
    "trimEnd": "Write … | trim.",
}


def _start(token: Token) -> int:
    return token.start_pos or 0


def _count(function: Function, name: Token, given: int, implied: int = 0) -> None:
    if fault := function.arity(given, implied):
        raise ExpressionError(fault, offset=_start(name))


def _unknown(what: str, name: Token, known: Iterable[str], hint: str, space: str = "") -> Never:
    names = sorted(known)
    if not hint:
        close = near(name, names)
        hint = f"Did you mean {' or '.join(close)}?" if close else f"There are: {', '.join(names)}."
    raise ExpressionError(f"Unknown {what}: {space}{one_line(name, _SHOWN)}.", offset=_start(name), hint=hint)
