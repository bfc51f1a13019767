"""The inside of one `${…}`: parsed once, evaluated any number of times."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from luthier.expr.references import Reference
    from luthier.expr.scope import Scope
    from luthier.taint import Labelled


class Expression:
    """A parsed expression. `str()` gives its canonical spelling, which parses to an equal expression.

    `references` are the names that it reads, `looked_at` the roots whose failure it looks at: it names their `.failed`,
    `.success`, `.executed` or `.error`, or has them left of `||` or `??` or in the condition of a ternary.
    """

    source: str
    references: frozenset[Reference]
    looked_at: frozenset[str]

    def evaluate(self, scope: Scope) -> Labelled[Any]:
        """The value with its label. Raises ExpressionError, and nothing else."""
        raise NotImplementedError


def parse(source: str) -> Expression:
    """Parse the inside of one `${…}`. Raises ExpressionError with the offset of the fault in `source`."""
    raise NotImplementedError
