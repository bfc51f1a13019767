"""Going on with suspended runs when a question of theirs is void: nobody who decides will ever wake them.

A runtime does that for the runs that were suspended in it, for as long as it is open; a host that serves, for
all in the store that it can go on with. If several do, one of them gets the run.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from luthier.errors import LuthierError, RunLostError, StoreError
from luthier.redaction import logger
from luthier.workflows.runs import Wanted

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from luthier.clock import Clock, Timer
    from luthier.spec import Ensemble
    from luthier.workflows import RunRow, RunStore

    GoOn = Callable[[RunRow], Awaitable[object]]

LOOK = 60.0
"""Seconds between two looks at the time, which may be set, and at what others have suspended."""

_PAGE = 500
_log = logger("luthier.runtime")


class Expiries:
    """On one loop. `go_on` resumes a run, as the ensemble that it began as, or the one of its name."""

    def __init__(
        self, store: RunStore, clock: Clock, go_on: Callable[[RunRow, Ensemble | None], Awaitable[object]]
    ) -> None:
        self._store = store
        self._clock = clock
        self._go_on = go_on
        self._timers: dict[str, Timer] = {}  # by run
        self._look: Timer | None = None
        self._at_work: set[str] = set()
        self._hopeless: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    def mind(self, row: RunRow, ensemble: Ensemble | None = None) -> None:
        """Go on with this run when it is time."""
        at = row.void_at
        if at is not None:
            self._mind(row.id, at, lambda one: self._go_on(one, ensemble))

    def mind_all(self, go_on: GoOn) -> None:
        """Go on so with whatever is suspended in the store, now and later."""
        self._look = self._clock.call_later(0.0, lambda: self._begin(self._looked(go_on)))

    def forget(self, run: str) -> None:
        """Somebody goes on with it."""
        if (timer := self._timers.pop(run, None)) is not None:
            timer.cancel()

    async def close(self) -> None:
        """No run is gone on with any more."""
        for timer in (*self._timers.values(), self._look):
            if timer is not None:
                timer.cancel()
        self._timers.clear()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _mind(self, run: str, at: float, go_on: GoOn) -> None:
        self.forget(run)
        left = min(max(at - self._clock.now(), 0.0), LOOK)
        self._timers[run] = self._clock.call_later(left, lambda: self._rang(run, at, go_on))

    def _rang(self, run: str, at: float, go_on: GoOn) -> None:
        del self._timers[run]
        if at > self._clock.now():
            self._mind(run, at, go_on)
        else:
            self._begin(self._end(run, go_on))

    def _begin(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _end(self, run: str, go_on: GoOn) -> None:
        self._at_work.add(run)
        try:
            row = await asyncio.to_thread(self._store.row, run)
            if row is None or row.status != "suspended" or row.void_at is None:
                return  # somebody went on with it
            if row.void_at > self._clock.now():
                self._mind(run, row.void_at, go_on)
            else:
                await go_on(row)
        except StoreError as error:
            _log.warning("a question of the run %s is void, and the store is away: %s", run, error)
            self._mind(run, self._clock.now() + LOOK, go_on)
        except RunLostError:
            pass  # to another process
        except LuthierError as error:
            self._hopeless.add(run)
            _log.warning("a question of the run %s is void, and it cannot be gone on with: %s", run, error)
        finally:
            self._at_work.discard(run)

    async def _looked(self, go_on: GoOn) -> None:
        try:
            for row in await asyncio.to_thread(self._suspended):
                known = self._timers.keys() | self._at_work | self._hopeless
                if row.id not in known and row.void_at is not None:
                    self._mind(row.id, row.void_at, go_on)
        except LuthierError as error:
            _log.warning("what waits in the store cannot be seen: %s", error)
        self._look = self._clock.call_later(LOOK, lambda: self._begin(self._looked(go_on)))

    def _suspended(self) -> list[RunRow]:
        found: list[RunRow] = []
        wanted = Wanted(status="suspended", limit=_PAGE)
        while page := self._store.list(wanted):
            found += page
            wanted = Wanted(status="suspended", limit=_PAGE, before=page[-1].id)
        return found
