"""So many at once and no more, first come, first served."""

from __future__ import annotations

import asyncio
from collections import deque


class Limiter:
    """`limit` permits, handed on in the order of asking. None is no limit."""

    def __init__(self, limit: int | None) -> None:
        self.limit = limit
        self._free = limit or 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def acquire(self) -> None:
        """Wait for a permit. Cancelled, it takes none."""
        if self.limit is None:
            return
        if self._free:
            self._free -= 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.release()  # the turn came in the very moment in which we stopped waiting for it
            raise

    def release(self) -> None:
        """Hand the permit to whoever waits longest."""
        if self.limit is None:
            return
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():  # who gave up is still in the queue, its turn cancelled
                turn.set_result(None)
                return
        self._free += 1
