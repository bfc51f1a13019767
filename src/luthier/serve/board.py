"""The runs that clients began here and that go on, and what their callers hear of them."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import msgspec

from luthier.errors import LuthierError
from luthier.events import RunBegan, StepBegan, StepDone
from luthier.redaction import logger

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from luthier.events import Event
    from luthier.govern import Request
    from luthier.runtime import Runtime
    from luthier.runtime.runs import RunHandle
    from luthier.serve.caller import Caller
    from luthier.spec import Ensemble
    from luthier.trace import Trace
    from luthier.workflows import RunRow


MOST = 1000
"""Runs that may go on at once: each has its tasks, and what was heard of it, in memory."""

_log = logger("luthier.serve")


class Heard(msgspec.Struct, frozen=True):
    """Something that happened in a run, counted from 1."""

    number: int
    name: str
    data: dict[str, Any]


class Live:
    """One run that goes on. What has happened in it is kept for those who come later, until it has ended."""

    def __init__(self, principal: str, ensemble: str, started_at: float, *, durable: bool) -> None:
        self.principal = principal
        self.ensemble = ensemble
        self.started_at = started_at
        self.durable = durable
        self.heard: list[Heard] = []
        self.handle: RunHandle
        self.waiting: asyncio.Task[None]
        self._run = ""
        self._changed = asyncio.Event()
        self._over = False

    @property
    def id(self) -> str:
        return self.handle.id

    def notify(self, event: Event) -> None:
        """Take note of its own steps; runs inside of it count as the step that they are."""
        match event:
            case RunBegan() if not self._run:
                self._run = event.run
                self._hear("start", {"id": event.run, "ensemble": event.ensemble, "steps": list(event.steps)})
            case StepBegan() if event.run == self._run and event.attempt == 1:
                self._hear("step", {"step": event.step, "status": "running"})
            case StepDone() if event.run == self._run:
                self._hear("step", {"step": event.step, "status": event.status, "duration": event.duration})
            case _:
                pass

    def end(self) -> None:
        """Nothing more will be heard."""
        self._over = True
        self._changed.set()

    async def follow(self, after: int = 0) -> AsyncIterator[Heard]:
        """All that was heard after that number, and then what comes, until the run has ended."""
        while True:
            changed = self._changed
            for heard in self.heard[after:]:
                yield heard
                after = heard.number
            if len(self.heard) > after:
                continue
            if self._over:
                return
            await changed.wait()

    def _hear(self, name: str, data: dict[str, Any]) -> None:
        self.heard.append(Heard(len(self.heard) + 1, name, data))
        self._changed.set()
        self._changed = asyncio.Event()


class TooManyError(Exception):
    """As many runs go on as may."""


class Board:
    """All that go on of one runtime, `most` at a time."""

    def __init__(self, runtime: Runtime, most: int = MOST) -> None:
        self.most = most
        self._runtime = runtime
        self._live: dict[str, Live] = {}
        self._waiting: set[asyncio.Task[None]] = set()

    def start(
        self,
        caller: Caller,
        ensemble: Ensemble,
        inputs: Mapping[str, Any],
        *,
        run_timeout: float | None = None,
        durable: bool = False,
        trace: Trace | None = None,
    ) -> Live:
        """Begin a run on a client's behalf. Raises InputError and TooManyError before anything starts."""
        if len(self._live) >= self.most:
            raise TooManyError
        live = Live(caller.principal, ensemble.name, time.time(), durable=durable)
        client = self._runtime.client(caller.id, trace=trace)
        live.handle = client.start(ensemble, inputs, live, run_timeout=run_timeout, durable=durable)
        return self._follow(live)

    async def resume(self, row: RunRow) -> Live:
        """Go on with a durable run. Raises RunError where it cannot go on, and what `Runs.go_on` raises."""
        live = Live(row.principal, row.ensemble, row.started_at, durable=True)
        live.handle = await self._runtime.runs.go_on(row.id, live)
        return self._follow(live)

    async def decided(self, request: Request) -> None:
        """Go on with the run that waited for this, if nothing else keeps it."""
        if not request.durable:
            return
        try:
            row = await asyncio.to_thread(self._runtime.runs.get, request.root or request.run)
            if row.status == "suspended":
                await self.resume(row)
        except LuthierError as error:
            _log.warning("the run %s does not go on by itself: %s", request.run, error)

    def get(self, run: str) -> Live | None:
        """The run of that id, if it goes on here."""
        return self._live.get(run)

    @property
    def going(self) -> tuple[Live, ...]:
        """All of them, the newest first."""
        return tuple(reversed(self._live.values()))

    async def close(self) -> None:
        """Call off all that go on, and wait until they have let go.

        A durable run is left to the runtime, which interrupts it: it can be gone on with.
        """
        for live in tuple(self._live.values()):
            if live.durable:
                live.waiting.cancel()
            else:
                live.handle.cancel()
        await asyncio.gather(*self._waiting, return_exceptions=True)

    def _follow(self, live: Live) -> Live:
        self._live[live.id] = live
        waiting = live.waiting = asyncio.create_task(self._wait(live))
        self._waiting.add(waiting)
        waiting.add_done_callback(self._waiting.discard)
        return live

    async def _wait(self, live: Live) -> None:
        try:
            await live.handle.wait()
        except Exception:  # noqa: BLE001  (told to whoever waits for the run; here nobody may)
            _log.exception("run %s of %s broke off", live.id, live.principal)
        finally:
            del self._live[live.id]
            live.end()
