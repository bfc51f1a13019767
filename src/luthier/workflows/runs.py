"""Where runs are kept: a row that says how each of them stands, and its record.

A run that is not durable is written once, at its end. A durable one is made before it begins and grows with
each entry. The number of an entry is the fence: who finds it taken has lost the run to another process.
"""

from __future__ import annotations

import threading
from itertools import islice
from typing import TYPE_CHECKING, Literal, Protocol

import msgspec

from luthier.errors import RunLostError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from luthier.workflows.machine import State
    from luthier.workflows.record import Entry, RunEnded

Status = Literal["running", "suspended", "ok", "failed", "cancelled"]

OPEN: frozenset[Status] = frozenset({"running", "suspended"})
"""How a run stands that has not ended."""


def status_after(ended: RunEnded | None) -> Status:
    """How a run stands that has ended so; None: it was cut off before it could end."""
    if ended is None or (ended.error is not None and ended.error.kind == "cancelled"):
        return "cancelled"
    return "ok" if ended.success else "failed"


class Waiting(msgspec.Struct, frozen=True, kw_only=True):
    """What a suspended run waits for: at which step, for what, and until when (Unix seconds).

    It goes on when one of these requests has been decided. `what` is `run` where a run inside waits.
    """

    step: str
    what: Literal["hitl", "approval", "input", "run"]
    requests: tuple[str, ...] = ()
    prompt: str = ""
    expires_at: float | None = None


class RunRow(msgspec.Struct, frozen=True, kw_only=True):
    """How a run stands. Times are Unix seconds; `file` is where the ensemble was read, if from a file.

    `principal` started it, `parent` is the run around it and `root` the outermost one. `owner` is the process
    that drives it, empty where none does, and `beat_at` when that last gave a sign of life.
    """

    id: str
    ensemble: str
    status: Status = "running"
    principal: str = ""
    started_at: float = 0.0
    ended_at: float | None = None
    parent: str = ""
    root: str = ""
    durable: bool = False
    waiting: tuple[Waiting, ...] = ()
    owner: str = ""
    beat_at: float = 0.0
    file: str = ""

    @property
    def void_at(self) -> float | None:
        """When the first of its questions is void, in a run that is suspended for some."""
        return min((one.expires_at for one in self.waiting if one.expires_at), default=None)


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """Which runs are listed: of those that fit the newest, `limit` at most.

    `principal`: what it began, and what was begun inside of that. `before` is a run's id, of those that are
    older; `ended_before` is Unix seconds. `nested`: what others have begun inside is listed too.
    """

    limit: int = 50
    status: Status | None = None
    ensemble: str | None = None
    principal: str | None = None
    before: str | None = None
    ended_before: float | None = None
    nested: bool = False

    def fits(self, row: RunRow) -> bool:
        """Whether the run is one of them, its age aside."""
        return (
            self.status in (None, row.status)
            and self.ensemble in (None, row.ensemble)
            and self.principal in (None, row.principal)
            and (self.nested or row.root == row.id)
            and (self.ended_before is None or (row.ended_at is not None and row.ended_at < self.ended_before))
        )


def ended_row(row: RunRow, ended: RunEnded | None, at: float) -> RunRow:
    """How a run stands from its end on."""
    return msgspec.structs.replace(row, status=status_after(ended), ended_at=at, owner="", waiting=())


def suspended_row(row: RunRow, waiting: tuple[Waiting, ...]) -> RunRow:
    """How a run stands while nothing of it can go on."""
    return msgspec.structs.replace(row, status="suspended", owner="", waiting=waiting)


def waiting_of(state: State) -> tuple[Waiting, ...]:
    """What the run waits for, for those who look at it."""
    waits = ((key, progress.suspended) for key, progress in state.nodes.items() if key in state.suspended)
    return tuple(
        Waiting(
            step=step, what=data.what, requests=data.requests, prompt=data.prompt, expires_at=data.expires
        )
        for step, data in waits
        if data is not None
    )


class RunStore(Protocol):
    """Rows and records of runs. Each method is short, for any thread, and raises StoreError.

    `create` and `append` raise RunLostError where the run or the number of an entry is there already, and
    then nothing of it is written.
    """

    def create(self, row: RunRow, entries: Sequence[Entry] = ()) -> None:
        """Put down a new run with its first entries."""

    def append(self, run: str, entries: Sequence[Entry], *, row: RunRow | None = None) -> None:
        """Add to its record, and replace its row, in one transaction."""

    def row(self, run: str) -> RunRow | None: ...

    def read(self, run: str) -> tuple[Entry, ...]:
        """Its record; empty where there is none. Raises RecordError for one that cannot be read."""

    def list(self, wanted: Wanted) -> tuple[RunRow, ...]:
        """How those runs stand, the newest first."""

    def below(self, root: str) -> tuple[RunRow, ...]:
        """The runs inside a run, at any depth."""

    def prune(self, root: str) -> int:
        """Take away a run and those inside it with their records, in one transaction: how many.

        None of them, where one has not ended.
        """

    def stop(self, run: str) -> None:
        """Ask whoever drives it to end it."""

    def stopped(self, runs: Iterable[str]) -> frozenset[str]:
        """Those of them that are asked to end."""

    def beat(self, owner: str, now: float) -> None:
        """Give a sign of life for all that this process drives."""


class MemoryRuns:
    """Keeps as long as it lives."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rows: dict[str, RunRow] = {}
        self._records: dict[str, list[Entry]] = {}
        self._asked: set[str] = set()

    def create(self, row: RunRow, entries: Sequence[Entry] = ()) -> None:
        with self._lock:
            if row.id in self._rows:
                raise RunLostError(row.id)
            self._rows[row.id] = row
            self._records[row.id] = list(entries)

    def append(self, run: str, entries: Sequence[Entry], *, row: RunRow | None = None) -> None:
        with self._lock:
            record = self._records[run]
            if entries and entries[0].seq != len(record) + 1:
                raise RunLostError(run)
            record.extend(entries)
            if row is not None:
                self._rows[run] = row

    def row(self, run: str) -> RunRow | None:
        return self._rows.get(run)

    def read(self, run: str) -> tuple[Entry, ...]:
        with self._lock:
            return tuple(self._records.get(run, ()))

    def list(self, wanted: Wanted) -> tuple[RunRow, ...]:
        with self._lock:
            rows = sorted(self._rows.values(), key=_age, reverse=True)
            first = self._rows.get(wanted.before) if wanted.before is not None else None
        found = (row for row in rows if wanted.fits(row) and (first is None or _age(row) < _age(first)))
        return tuple(islice(found, wanted.limit))

    def below(self, root: str) -> tuple[RunRow, ...]:
        with self._lock:
            return tuple(row for row in self._rows.values() if row.root == root and row.id != root)

    def prune(self, root: str) -> int:
        with self._lock:
            rows = [row for row in self._rows.values() if row.root == root]
            if any(row.ended_at is None for row in rows):
                return 0
            for row in rows:
                del self._rows[row.id], self._records[row.id]
            return len(rows)

    def stop(self, run: str) -> None:
        with self._lock:
            self._asked.add(run)

    def stopped(self, runs: Iterable[str]) -> frozenset[str]:
        with self._lock:
            return frozenset(runs) & self._asked

    def beat(self, owner: str, now: float) -> None:
        with self._lock:
            for run, row in self._rows.items():
                if row.owner == owner and row.status == "running":
                    self._rows[run] = msgspec.structs.replace(row, beat_at=now)


def _age(row: RunRow) -> tuple[float, str]:
    return row.started_at, row.id
