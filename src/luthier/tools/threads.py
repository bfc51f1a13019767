"""Blocking functions in daemon threads: one job at a time each, used again, and nobody has to wait for one.

A thread cannot be stopped. When nobody waits for a job any more, its thread goes on alone and its result is
dropped; it does not keep the process from ending. `asyncio.to_thread` would make the end of the event loop
wait for a function that never returns.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections import deque
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass
from queue import SimpleQueue
from typing import TYPE_CHECKING, Generic, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Callable

    Job = Callable[[], Callable[[], None]]  # gives what tells of its end

T = TypeVar("T")

IDLE = 8
"""How many threads are kept when they have nothing to do."""

_idle: deque[_Worker] = deque()


class _Worker:
    def __init__(self) -> None:
        self.jobs: SimpleQueue[tuple[str, Job]] = SimpleQueue()
        threading.Thread(target=self._work, name="luthier-idle", daemon=True).start()

    def _work(self) -> None:
        thread = threading.current_thread()
        while True:
            thread.name, job = self.jobs.get()
            tell = job()
            stays = len(_idle) < IDLE
            if stays:
                thread.name = "luthier-idle"
                _idle.append(self)  # before it tells: who is told may have the next job at once
            tell()
            del tell, job  # with the result that they hold
            if not stays:
                return


os.register_at_fork(after_in_child=_idle.clear)  # threads do not come along


@dataclass(frozen=True, slots=True)
class Done(Generic[T]):
    """What came of a function: a value, or the exception in its place."""

    value: T | None = None
    error: BaseException | None = None


async def tried(function: Callable[[], T], *, name: str) -> Done[T]:
    """Call the function in a thread of that name and tell what came of it, SystemExit and the like included.

    Cancelled, this returns at once and the thread goes on.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Done[T]] = loop.create_future()
    context = copy_context()

    def settle(result: Done[T]) -> None:
        if not done.done():
            done.set_result(result)

    def job() -> Callable[[], None]:
        try:
            result = Done(context.run(function))
        except BaseException as error:  # noqa: BLE001  (a script may exit; the thread must not die of it)
            result = Done(error=error)
        return lambda: _tell(loop, settle, result)

    try:
        worker = _idle.pop()
    except IndexError:
        worker = _Worker()
    worker.jobs.put((name, job))
    return await done


async def in_thread(function: Callable[[], T], *, name: str) -> T:
    """What the function returns or raises. Cancelled, it leaves the function running in its daemon thread."""
    done = await tried(function, name=name)
    if done.error is not None:
        raise done.error
    return cast("T", done.value)


def _tell(loop: asyncio.AbstractEventLoop, settle: Callable[[Done[T]], None], result: Done[T]) -> None:
    with suppress(RuntimeError):  # the loop has been closed: nobody waits any more
        loop.call_soon_threadsafe(settle, result)
