"""The tree of a parsed expression; two trees are equal wherever they were written."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """`at` is the offset that a fault of this node points to, `depth` the height of the tree below it."""

    at: int = field(default=0, compare=False, repr=False)
    depth: int = field(default=1, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Literal(Node):
    value: bool | int | float | str | None


@dataclass(frozen=True, slots=True)
class Name(Node):
    """A root of the scope. `bracketed` tells `(word)` from `word`, which in a filter's arguments is text."""

    name: str
    bracketed: bool = field(default=False, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Path(Node):
    """Members of members: a name or an index where it is fixed, a node where it is calculated."""

    base: Node
    keys: tuple[str | int | Node, ...]


@dataclass(frozen=True, slots=True)
class Unary(Node):
    """`!`, `-` or `+` before its operand."""

    operator: str
    operand: Node


@dataclass(frozen=True, slots=True)
class Binary(Node):
    """Arithmetic and comparison: both sides are always evaluated."""

    operator: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Choice(Node):
    """`||`, `&&` or `??`: yields one of its operands, the right one evaluated only when it is needed."""

    operator: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Ternary(Node):
    condition: Node
    then: Node
    otherwise: Node


@dataclass(frozen=True, slots=True)
class ListOf(Node):
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class ObjectOf(Node):
    entries: tuple[tuple[str, Node], ...]


@dataclass(frozen=True, slots=True)
class Call(Node):
    """A function; `name` may be one of JavaScript's, such as `Math.floor`."""

    name: str
    arguments: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Method(Node):
    target: Node
    name: str
    arguments: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Filter(Node):
    target: Node
    name: str
    arguments: tuple[Node, ...]


def children(node: Node) -> tuple[Node, ...]:
    """The nodes directly below, in the order in which they are written."""
    return tuple(_nodes(getattr(node, name) for name in type(node).__annotations__))


def _nodes(values: Iterable[object]) -> Iterator[Node]:
    for value in values:
        if isinstance(value, Node):
            yield value
        elif isinstance(value, tuple):
            yield from _nodes(value)
