"""The tree of a parsed expression. Two trees are equal when they mean the same; where they were written does not count."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """`at` is the offset that a fault of this node points to, `depth` the height of the tree below it."""

    at: int = field(default=0, compare=False, repr=False)
    depth: int = field(default=1, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Literal(Node):
    value: None | bool | int | float | str


@dataclass(frozen=True, slots=True)
class Text(Node):
    """Quoted text with expressions inside."""

    parts: tuple[str | Node, ...]


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
    match node:
        case Text(parts=parts):
            return tuple(part for part in parts if isinstance(part, Node))
        case Path(base=base, keys=keys):
            return (base, *(key for key in keys if isinstance(key, Node)))
        case Unary(operand=operand):
            return (operand,)
        case Binary(left=left, right=right) | Choice(left=left, right=right):
            return (left, right)
        case Ternary(condition=condition, then=then, otherwise=otherwise):
            return (condition, then, otherwise)
        case ListOf(items=items):
            return items
        case ObjectOf(entries=entries):
            return tuple(value for _, value in entries)
        case Call(arguments=arguments):
            return arguments
        case Method(target=target, arguments=arguments) | Filter(target=target, arguments=arguments):
            return (target, *arguments)
        case _:
            return ()
