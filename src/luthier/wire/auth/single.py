"""One run of a piece of work for all who want it while it runs."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

T = TypeVar("T")


class Single(Generic[T]):
    """Whoever comes while the work runs gets its outcome, an error included.

    The work is not stopped when those who wait are cancelled: an answer that is under way may hold a token
    that is given only once. So it must bound itself.
    """

    def __init__(self) -> None:
        self._running: asyncio.Task[T] | None = None

    async def run(self, work: Callable[[], Coroutine[object, object, T]]) -> T:
        task = self._running
        if task is None or task.done():
            task = self._running = asyncio.create_task(work())
            task.add_done_callback(self._ended)
        return await asyncio.shield(task)

    def stop(self) -> None:
        """Stop the work after all; whoever waits for it is cancelled."""
        if self._running is not None:
            self._running.cancel()

    def _ended(self, task: asyncio.Task[T]) -> None:
        if self._running is task:
            self._running = None
        if not task.cancelled():
            task.exception()  # looked at here, for there may be nobody left to whom it matters
