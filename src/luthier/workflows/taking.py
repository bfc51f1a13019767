"""Taking a run that no process drives any more: of several who try at once, one has it."""

from __future__ import annotations

import msgspec

from luthier.errors import RecordError, RunChangedError, RunLostError
from luthier.workflows.owners import claim, is_gone, me, release
from luthier.workflows.record import Entry, RunEnded, RunStarted, RunTaken
from luthier.workflows.runs import RunRow, RunStore


class Taken(msgspec.Struct, frozen=True):
    """A run that is this process's from now on, with its record; one that had ended before is as it was."""

    row: RunRow
    record: tuple[Entry, ...]

    @property
    def started(self) -> RunStarted:
        data = self.record[0].data if self.record else None
        if not isinstance(data, RunStarted):
            raise RecordError(f"the record of the run {self.row.id} has no beginning")
        return data

    @property
    def ended(self) -> bool:
        return bool(self.record) and isinstance(self.record[-1].data, RunEnded)


def see_unchanged(store: RunStore, row: RunRow, *digests: str) -> Taken:
    """The run with its record. Raises RunChangedError where it began with no such plan, and RecordError."""
    found = Taken(row, store.read(row.id))
    if found.started.plan not in digests:
        raise RunChangedError(row.root or row.id, row.ensemble, row.file)
    return found


def take(store: RunStore, row: RunRow, digest: str, now: float) -> Taken:
    """Take it, until `release`. `digest` is that of the plan as it is today.

    Raises RunLostError where another process drives it, RunChangedError where it began with another plan,
    RecordError and StoreError.
    """
    taken = see_unchanged(store, row, digest)
    record = taken.record
    row = store.row(row.id) or row  # who took it meanwhile shows in it, or by the number
    if taken.ended:
        return taken
    if not is_gone(row.id, row.owner, row.beat_at, now) or not claim(row.id):
        raise RunLostError(row.id, row.owner)
    entry = Entry(seq=len(record) + 1, at=now, data=RunTaken(owner=me()))
    ours = msgspec.structs.replace(row, status="running", owner=me(), beat_at=now, waiting=())
    try:
        store.append(row.id, [entry], row=ours)
    except BaseException:
        release(row.id)
        raise
    return Taken(ours, (*record, entry))
