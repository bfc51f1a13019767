"""What an expression names and whose failure it looks at, read from its tree before anything runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from luthier.expr.nodes import Choice, Name, Node, Path, Ternary, children

if TYPE_CHECKING:
    from collections.abc import Iterator

STATUS = frozenset({"failed", "success", "executed", "error"})
"""Naming one of these members of a step is looking at its failure."""


class Reference(msgspec.Struct, frozen=True):
    """A root and the fixed part of the path from it: `a.output["x"][0]` is `a`, `("output", "x", 0)`."""

    root: str
    path: tuple[str | int, ...] = ()


def references(node: Node) -> Iterator[Reference]:
    """Every name in the tree, each with its path."""
    match node:
        case Name(name=name):
            yield Reference(name)
        case Path(base=Name(name=name), keys=keys):
            yield Reference(name, _fixed(keys))
            for below in children(node)[1:]:
                yield from references(below)
        case _:
            for below in children(node):
                yield from references(below)


def _fixed(keys: tuple[str | int | Node, ...]) -> tuple[str | int, ...]:
    fixed: list[str | int] = []
    for key in keys:
        if isinstance(key, Node):
            break
        fixed.append(key)
    return tuple(fixed)


def looked_at(node: Node) -> Iterator[str]:
    """The roots whose failure the tree looks at.

    A root is looked at where one of its STATUS members is named, and where it stands anywhere left of `||` or
    `??` or in the condition of a ternary: in brackets, behind `!`, in a comparison, in a call.
    """
    match node:
        case Choice(operator="||" | "??", left=seen) | Ternary(condition=seen):
            yield from (reference.root for reference in references(seen))
        case Path(base=Name(name=name), keys=(str(first), *_)) if first in STATUS:
            yield name
    for below in children(node):
        yield from looked_at(below)
