"""Daemon threads for code that blocks: one job at a time each, used again when they come back.

A thread cannot be stopped. When nobody waits for a job any more, its thread goes on alone and its result is
dropped; it does not keep the process from ending.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from contextlib import suppress
from contextvars import copy_context
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    Job = Callable[[], Callable[[], None]]  # gives what tells of its end

IDLE = 8
"""How many threads are kept when they have nothing to do."""

_idle: deque[_Worker] = deque()


class _Worker:
    def __init__(self) -> None:
        self.jobs: SimpleQueue[Job] = SimpleQueue()
        threading.Thread(target=self._work, name="luthier-code", daemon=True).start()

    def _work(self) -> None:
        while True:
            tell = self.jobs.get()()
            stays = len(_idle) < IDLE
            if stays:
                _idle.append(self)  # before it tells: who is told may have the next job at once
            tell()
            del tell  # with the result that it holds
            if not stays:
                return


def _tell(loop: asyncio.AbstractEventLoop, settle: Callable[[Done], None], result: Done) -> None:
    with suppress(RuntimeError):  # the loop has been closed: nobody waits any more
        loop.call_soon_threadsafe(settle, result)


class Done(NamedTuple):
    """What came of a job: a value, or the exception in its place."""

    value: Any = None
    error: BaseException | None = None


async def in_thread(function: Callable[..., Any], *arguments: Any) -> Done:
    """Call the function in a thread of its own and tell what came of it, SystemExit and the like included.

    Cancelled, this returns at once and the thread goes on.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Done] = loop.create_future()
    context = copy_context()

    def settle(result: Done) -> None:
        if not done.done():
            done.set_result(result)

    def job() -> Callable[[], None]:
        try:
            result = Done(context.run(function, *arguments))
        except BaseException as error:  # noqa: BLE001  (a script may exit; the thread must not die of it)
            result = Done(error=error)
        return lambda: _tell(loop, settle, result)

    try:
        worker = _idle.pop()
    except IndexError:
        worker = _Worker()
    worker.jobs.put(job)
    return await done
