"""How a command runs on the loop and how signals end it.

The first SIGINT or SIGTERM cancels the work, which winds down within its own bounds (servers are stopped);
the second kills every server's process group and leaves at once. Exit status 128 + signal: 130 or 143.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine

T = TypeVar("T")

WIND_DOWN = 10.0
"""Seconds that the work may take to end after the first signal before it is treated as the second."""


class Interrupted(SystemExit):
    """The work was ended by a signal; carries the exit status."""


def run_async(work: Coroutine[Any, Any, T]) -> T:
    """Run the work to its end. Raises Interrupted when a signal ended it."""
    with asyncio.Runner() as runner:
        return runner.run(_guarded(work))


async def _guarded(work: Coroutine[Any, Any, T]) -> T:
    from luthier.cli.render import echo

    loop = asyncio.get_running_loop()
    task = asyncio.create_task(work)
    received: list[signal.Signals] = []

    def stop(number: signal.Signals) -> None:
        received.append(number)
        if len(received) > 1:
            leave(number)
        task.cancel()
        loop.call_later(WIND_DOWN, leave, number)
        echo("stopping (once more to kill)", sys.stderr)  # last: there may be nobody to hear it

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop, number)
    try:
        return await task
    except asyncio.CancelledError:
        if received:
            raise Interrupted(128 + received[0]) from None
        raise
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)


def leave(number: int) -> None:
    """Kill what is left of the servers and end the process now."""
    from luthier.wire import kill_all_groups

    kill_all_groups()
    os._exit(128 + number)
