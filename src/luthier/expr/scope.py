"""What an expression may see, and how much it may cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from luthier.taint import Labelled


class Limits(msgspec.Struct, frozen=True):
    """The cost of one evaluation: a unit for a character made, 16 for an item, less for what is only read."""

    work: int = 64 * 1024 * 1024


USUAL = Limits()


class Scope:
    """Names and their labelled values. `values` is looked into, never copied, so it may be a live view.

    `now` is the recorded start of the run in Unix seconds: the only time that expressions know.
    """

    __slots__ = ("limits", "now", "values")

    def __init__(
        self,
        values: Mapping[str, Labelled[Any]],
        *,
        now: float,
        limits: Limits = USUAL,
    ) -> None:
        self.values = values
        self.now = now
        self.limits = limits
