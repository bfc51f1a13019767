"""The inside of one `${…}`: parsed once, evaluated any number of times."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from luthier.errors import ExpressionError
from luthier.expr import references as reading
from luthier.expr.budget import Frame
from luthier.expr.calculate import compile_tree
from luthier.expr.parsing import parse_tree
from luthier.expr.printing import print_tree

if TYPE_CHECKING:
    from luthier.expr.nodes import Node
    from luthier.expr.references import Reference
    from luthier.expr.scope import Scope
    from luthier.taint import Labelled


class Expression:
    """A parsed expression. `str()` gives its canonical spelling, which parses to an equal expression.

    `references` are the names that it reads, `looked_at` the roots whose failure it looks at: it names their
    `.failed`, `.success`, `.executed` or `.error`, or has them left of `||` or `??` or in the condition of a
    ternary.
    """

    __slots__ = ("looked_at", "references", "run", "source", "tree")

    def __init__(self, source: str, tree: Node) -> None:
        self.source = source
        self.tree = tree
        self.references: frozenset[Reference] = frozenset(reading.references(tree))
        self.looked_at: frozenset[str] = frozenset(reading.looked_at(tree))
        self.run = compile_tree(tree)

    def __str__(self) -> str:
        return print_tree(self.tree)

    def __repr__(self) -> str:
        return f"Expression({self.source!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Expression) and self.tree == other.tree

    def __hash__(self) -> int:
        return hash(self.tree)

    def evaluate(self, scope: Scope) -> Labelled[Any]:
        """The value with its label. Raises ExpressionError, and nothing else."""
        try:
            return self.run(Frame(scope))
        except ExpressionError as error:
            error.source = self.source
            raise
        except RecursionError:
            raise ExpressionError(
                "The data is nested too deeply for this expression.", source=self.source
            ) from None


def parse(source: str) -> Expression:
    """Parse the inside of one `${…}`. Raises ExpressionError with the offset of the fault in `source`."""
    return Expression(source, parse_tree(source))
