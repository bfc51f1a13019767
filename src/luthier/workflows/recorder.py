"""The record of a run as it grows. Each entry changes the state, and goes to the journal if there is one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from luthier.errors import LuthierError
from luthier.redaction import logger
from luthier.workflows.journal import Journal, Ledger
from luthier.workflows.machine import State
from luthier.workflows.owners import me
from luthier.workflows.record import Data, Entry, RunEnded, RunLeft, RunStarted, uncollected
from luthier.workflows.runs import RunRow, ended_row, suspended_row, waiting_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from luthier.context import CallContext
    from luthier.taint import Labelled
    from luthier.workflows.plan import Plan
    from luthier.workflows.services import Services

_log = logger("luthier.workflows")


class RunRecorder:
    """`parent` is the run around this one, `now` its start in Unix seconds, `past` what happened before.

    Read `entries`, `state`, `row` and `journal`, which is None of a run that is not durable; change them by
    `append` and `recall` only.
    """

    def __init__(
        self,
        plan: Plan,
        services: Services,
        context: CallContext,
        *,
        parent: str,
        now: float,
        past: Sequence[Entry] = (),
    ) -> None:
        self.plan = plan
        self.parent = parent
        self.now = now
        self.past = past
        self.entries: list[Entry] = []
        self.state = State(plan)
        self._services = services
        self._clock = services.clock
        self._context = context
        self.row = RunRow(
            id=context.run,
            ensemble=plan.ensemble,
            principal=context.principals[0],
            started_at=now,
            parent=parent,
            root=context.root,
            file=str(Path(plan.file).absolute()) if plan.file else "",
        )
        self.journal = self._opened()
        self._kept: Journal | None = None  # of a run that is not durable, at its end

    def append(self, data: Data, step: str = "", attempt: int = 0, *, at: float | None = None) -> None:
        entry = Entry(
            seq=len(self.entries) + 1,
            at=self._clock.now() if at is None else at,
            data=data,
            step=step,
            attempt=attempt,
        )
        self.entries.append(entry)
        self.state.apply(entry)
        if self.journal is not None:
            self.journal.add(entry)

    def recall(self) -> None:
        """Fold what happened before."""
        self.entries.extend(self.past)
        with uncollected():
            for entry in self.past:
                self.state.apply(entry)

    def start(self, inputs: Labelled[object], deadline: float | None) -> None:
        """The first entry; `deadline` is in Unix seconds."""
        started = RunStarted(
            run=self._context.run,
            ensemble=self.plan.ensemble,
            plan=self.plan.digest(),
            inputs=inputs,
            parent=self.parent,
            control=self._context.control,
            principals=self._context.principals,
            deadline=deadline,
        )
        self.append(started, at=self.now)

    def end(self, ended: RunEnded) -> None:
        """The last entry."""
        self.append(ended)
        if self.journal is not None:
            self.journal.flush(ended_row(self.journal.row, ended, self.entries[-1].at))

    def rest(self) -> None:
        """Leave the run until somebody has decided."""
        if self.journal is not None:
            self.journal.flush(suspended_row(self.journal.row, waiting_of(self.state)))

    async def release(self) -> None:
        """Leave the run as it is, for whoever goes on with it. Raises StoreError and RunLostError."""
        if self.journal is not None and self.journal.ledger.fault is None:
            self.append(RunLeft())  # its number sees to it that nobody's row but ours is replaced
            self.journal.flush(msgspec.structs.replace(self.journal.row, owner=""))
            await self.journal.written()

    def keep(self) -> None:
        """Put down a run that is not durable. One that cannot be kept does not take the result with it."""
        if self._services.runs is None or self.journal is not None or not self.entries:
            return
        row = ended_row(self.row, self.state.ended, self.entries[-1].at)
        if self._services.writer is not None:  # not on the loop: a store may be busy, or far away
            self._kept = Journal(Ledger(self._services.writer), row, new=True)
            self._kept.hand_over(self.entries)
            return
        try:
            self._services.runs.create(row, self.entries)
        except Exception as error:  # noqa: BLE001  (logged)
            self._unkept(error)

    async def kept(self) -> None:
        """Wait until it has been put down, so that whoever looks for it finds it."""
        if self._kept is not None:
            try:
                await self._kept.written()
            except LuthierError as error:
                self._unkept(error)

    def _unkept(self, error: Exception) -> None:
        _log.warning("the record of run %s could not be kept: %s", self._context.run, error)

    def _opened(self) -> Journal | None:
        ledger = self._services.ledger
        if ledger is None:
            return None
        row = msgspec.structs.replace(self.row, durable=True, owner=me(), beat_at=self._clock.now())
        return Journal(ledger, row, new=not self.past)
