"""Calls in time: slow ones, many at once, given up, out of order, with progress."""

from __future__ import annotations

import threading
import time

from tests.faults.modes.mode import acts, mode
from tests.faults.peer import text

TYPE_CHECKING = False  # `typing` is a slow import, see peer.py
if TYPE_CHECKING:
    from tests.faults.peer import Call, Json, Peer

PATIENCE = 60
"""Seconds after which a tool that waits for something gives up."""


@mode
def waits_for_release(peer: Peer) -> None:
    """A slow tool beside quick ones: `act` is answered only after `release`."""
    released = threading.Event()

    @acts(peer)
    def act(_: Call) -> Json:
        released.wait(PATIENCE)
        return text("released")

    def release(_: Call) -> Json:
        released.set()
        return text("ok")

    peer.tool("release", release)


@mode
def crowd(peer: Peer) -> None:
    """A tool that cannot stand company: it tells how many calls of it ever ran at the same time."""
    gate, inside, most = threading.Lock(), 0, 0

    @acts(peer)
    def act(_: Call) -> Json:
        nonlocal inside, most
        with gate:
            inside += 1
            most = max(most, inside)
        time.sleep(0.02)
        with gate:
            inside -= 1
        return text(str(most))


@mode
def out_of_order(peer: Peer) -> None:
    """A server that answers a bunch of calls last one first."""
    held: list[Call] = []

    @acts(peer)
    def act(call: Call) -> None:
        held.append(call)
        if len(held) == int(call.arguments["of"]):
            for one in sorted(held, key=lambda one: -int(one.arguments["n"])):
                peer.write(peer.answer_to(one, text(str(one.arguments["n"]))))


@mode
def hang_in_call(peer: Peer) -> None:
    """A tool that never answers, and at whose cancelling a flood of notifications breaks loose."""

    @acts(peer)
    def act(call: Call) -> None:
        call.cancelled.wait(PATIENCE)
        for n in range(5000):
            peer.notify("notifications/message", {"level": "debug", "data": f"{n} " + "x" * 200})


@mode
def late_answer(peer: Peer) -> None:
    """A tool that answers a call after it was given up."""

    @acts(peer)
    def act(call: Call) -> Json:
        call.cancelled.wait(PATIENCE)
        return text("too late")


@mode
def progress(peer: Peer) -> None:
    """A long tool that reports progress: so many times, with so many seconds in between."""

    @acts(peer)
    def act(call: Call) -> Json:
        times, pause = int(call.arguments["times"]), float(call.arguments["pause"])
        for n in range(times):
            if call.cancelled.wait(pause):
                break
            call.progress(n + 1, times, f"part {n + 1}")
        return text("with a token" if "progressToken" in call.meta else "without a token")
