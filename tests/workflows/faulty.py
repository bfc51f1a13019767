"""A store of runs of which one operation fails, and no other, as a disk or a network may."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, TypeVar

from luthier.errors import StoreError
from luthier.testing import FaultyRuns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from luthier.workflows import Entry, RunRow, RunStore

T = TypeVar("T")

ALL = 10_000
"""More entries than any drill makes."""


class FaultyOnce(FaultyRuns):
    """Its `at`th operation fails; `late`: after it was done, so that only the word of it is lost."""

    def __init__(self, store: RunStore, at: int, *, late: bool = False) -> None:
        super().__init__(store, ALL)
        self._at = at
        self._late = late
        self._lock = threading.Lock()
        self.operations = 0

    @property
    def struck(self) -> bool:
        return self.operations >= self._at

    def _do(self, operation: Callable[[], T]) -> T:
        with self._lock:
            self.operations += 1
            mine = self.operations == self._at
        if mine and not self._late:
            raise StoreError("The store fails once, as the drill wants it.")
        done = operation()
        if mine:
            raise StoreError("The store did it and could not say so, as the drill wants it.")
        return done

    def create(self, row: RunRow, entries: Sequence[Entry] = ()) -> None:
        self._do(lambda: self.store.create(row, entries))

    def append(self, run: str, entries: Sequence[Entry], *, row: RunRow | None = None) -> None:
        self._do(lambda: self.store.append(run, entries, row=row))

    def row(self, run: str) -> RunRow | None:
        return self._do(lambda: self.store.row(run))

    def read(self, run: str) -> tuple[Entry, ...]:
        return self._do(lambda: self.store.read(run))

    def below(self, root: str) -> tuple[RunRow, ...]:
        return self._do(lambda: self.store.below(root))

    def stop(self, run: str) -> None:
        self._do(lambda: self.store.stop(run))

    def stopped(self, runs: Iterable[str]) -> frozenset[str]:
        return self._do(lambda: self.store.stopped(runs))

    def beat(self, owner: str, now: float) -> None:
        self._do(lambda: self.store.beat(owner, now))
