"""What an expression names, read from its tree before anything runs."""

from __future__ import annotations

import msgspec


class Reference(msgspec.Struct, frozen=True):
    """A root name and the fixed part of the path from it: `a.output["x"][0]` is `a` and `("output", "x", 0)`."""

    root: str
    path: tuple[str | int, ...] = ()
