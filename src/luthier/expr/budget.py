"""One evaluation under way: what it sees and what it may still spend.

The tree of an expression is bounded when it is parsed and the language has no loops, so what is left to bound
at run time is the work done on data. Whoever makes or walks data spends first and works afterwards.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from luthier.errors import ExpressionError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from luthier.expr.scope import Scope
    from luthier.taint import Labelled

ITEM = 16
"""Units for making or walking one item of a list or object; a character made costs one unit."""

STUDY = 3 * ITEM
"""Units for an item that is taken apart: compared, or made into text."""

READ = 4
"""A character that is only read costs 1/16: the shift to apply to a length."""

DEPTH = 200
"""How deep the data may be nested that is walked whole: printed, compared as text."""


class Frame:
    """`values` and `now` of the scope, and the units `left` of its limits."""

    __slots__ = ("left", "now", "values", "work")

    def __init__(self, scope: Scope) -> None:
        self.values: Mapping[str, Labelled[Any]] = scope.values
        self.now = scope.now
        self.left = self.work = scope.limits.work

    def spend(self, units: int) -> None:
        """Take units from the budget. Raises ExpressionError when it is used up."""
        self.left -= units
        if self.left < 0:
            raise ExpressionError(
                f"This takes more work than an expression may ({self.work} units).",
                hint="Cut the data down first, or do it in a `code` step.",
            )
