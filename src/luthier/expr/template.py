"""Values whose strings may hold expressions: what a step's inputs, conditions and outputs are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from luthier.errors import ExpressionError
    from luthier.expr.references import Reference
    from luthier.expr.scope import Scope
    from luthier.taint import Labelled


class Compiled:
    """A JSON-like value with its expressions parsed. Containers are entered, keys are left alone.

    `source` is the value as written. `is_constant` says that it holds no expression at all.
    """

    source: Any
    is_constant: bool
    references: frozenset[Reference]
    looked_at: frozenset[str]

    def evaluate(self, scope: Scope) -> Labelled[Any]:
        """The value with one label per leaf. Raises ExpressionError, and nothing else.

        A string that is one lone expression gives its value as it is, envelopes kept; any other string gives text.
        What comes out of the scope is not copied: it must not be changed.
        """
        raise NotImplementedError


def compile_value(value: Any) -> Compiled:
    """Parse every expression in a value. Raises ExpressionError for the first fault."""
    raise NotImplementedError


def compile_condition(value: Any) -> Compiled:
    """Parse a condition: as `compile_value`, and text without delimiters is an expression too."""
    raise NotImplementedError


def compile_faults(value: Any) -> list[tuple[tuple[str | int, ...], ExpressionError]]:
    """Every fault in a value: the path of the string that holds it, and the error with its offset in that string."""
    raise NotImplementedError
