"""What a mode is: a function that sets up one fault on a well-behaved server, under its own name."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.faults.http.peer import HttpPeer, Tool
    from tests.faults.http.server import Json

Mode = Callable[["HttpPeer"], None]

MODES: dict[str, Mode] = {}


def mode(function: Mode) -> Mode:
    MODES[function.__name__] = function
    return function


def acts(peer: HttpPeer, schema: Json | None = None) -> Callable[[Tool], None]:
    """Makes a function the tool `act`, by which most modes offer their fault."""
    return lambda handler: peer.tool("act", handler, schema)
