"""A store of runs that fails, or ends the process, once it has taken so many entries: for drills."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

from luthier.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from luthier.workflows import Entry, RunRow, RunStore
    from luthier.workflows.runs import Wanted


class FaultyRuns:
    """Keeps runs in another store until it has taken `last` entries, those of all runs counted together.

    What comes then with the last of them is cut off behind it. From then on every write raises StoreError;
    with `kill` the process is killed at once, as nobody can prevent it (SIGKILL).
    """

    def __init__(self, store: RunStore, last: int, *, kill: bool = False) -> None:
        self.store = store
        self.left = last
        self._kill = kill

    def create(self, row: RunRow, entries: Sequence[Entry] = ()) -> None:
        whole = self._taken(entries)
        if self.left >= 0 and whole:
            self.store.create(row, whole)
        self._end(cut=len(whole) < len(entries))

    def append(self, run: str, entries: Sequence[Entry], *, row: RunRow | None = None) -> None:
        whole = self._taken(entries)
        cut = len(whole) < len(entries)
        if whole or (not entries and self.left > 0):
            self.store.append(run, whole, row=None if cut else row)
        self._end(cut=cut)

    def _taken(self, entries: Sequence[Entry]) -> Sequence[Entry]:
        whole = entries[: max(self.left, 0)]
        self.left -= len(whole)
        return whole

    def _end(self, *, cut: bool) -> None:
        if self.left > 0 and not cut:
            return
        if self._kill:
            os.kill(os.getpid(), signal.SIGKILL)
        if cut:
            raise StoreError("The store takes no more, as the drill wants it.")

    def row(self, run: str) -> RunRow | None:
        return self.store.row(run)

    def read(self, run: str) -> tuple[Entry, ...]:
        return self.store.read(run)

    def list(self, wanted: Wanted) -> tuple[RunRow, ...]:
        return self.store.list(wanted)

    def below(self, root: str) -> tuple[RunRow, ...]:
        return self.store.below(root)

    def prune(self, root: str) -> int:
        return self.store.prune(root)

    def stop(self, run: str) -> None:
        self.store.stop(run)

    def stopped(self, runs: Iterable[str]) -> frozenset[str]:
        return self.store.stopped(runs)

    def beat(self, owner: str, now: float) -> None:
        self.store.beat(owner, now)
