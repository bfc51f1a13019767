"""What a mode is: a function that sets up one fault on a well-behaved server, under its own name."""

from __future__ import annotations

TYPE_CHECKING = False  # `typing` is a slow import, see peer.py
if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.faults.peer import Call, Json, Peer, Tool

    Mode = Callable[[Peer], None]

MODES: dict[str, Mode] = {}


def mode(function: Mode) -> Mode:
    MODES[function.__name__] = function
    return function


def acts(peer: Peer, schema: Json | None = None) -> Callable[[Tool], None]:
    """Makes a function the tool `act`, by which most modes offer their fault."""
    return lambda handler: peer.tool("act", handler, schema)


def always(result: Json | None) -> Tool:
    """A tool that gives the same result whatever it is asked."""
    return lambda _: result


def silent(_: Call | Json) -> None:
    """No answer, ever."""
