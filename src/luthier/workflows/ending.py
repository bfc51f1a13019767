"""Ending runs in the store that nobody drives, as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from luthier.workflows.owners import is_gone
from luthier.workflows.record import Entry, Failure, RunEnded, RunHalted
from luthier.workflows.runs import OPEN, ended_row

if TYPE_CHECKING:
    from luthier.workflows.runs import RunRow, RunStore

CANCELLED = Failure(kind="cancelled", message="the run was cancelled")


def end_here(store: RunStore, row: RunRow, now: float) -> None:
    """End a run and those inside it, without a step of it run. Raises RunLostError and StoreError."""
    _end(store, row, now)
    end_rest(store, row.id, now)


def end_rest(store: RunStore, root: str, now: float) -> None:
    """End what is still open of the runs inside a run that has ended."""
    for row in store.below(root):
        if row.status in OPEN and is_gone(row.id, row.owner, row.beat_at, now):
            _end(store, row, now)


def _end(store: RunStore, row: RunRow, now: float) -> None:
    last = len(store.read(row.id))
    halted = Entry(seq=last + 1, at=now, data=RunHalted(error=CANCELLED))
    ended = RunEnded(success=False, error=CANCELLED)
    entries = [halted, Entry(seq=last + 2, at=now, data=ended)]
    store.append(row.id, entries, row=ended_row(row, ended, now))
