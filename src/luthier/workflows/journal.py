"""The journal of durable runs: what happened is written before anything is done because of it.

A driver hands over the entries of each of its turns, and goes on; only before something leaves the process it
waits until all before that is written. One thread writes for all runs, and what has come together meanwhile
is one transaction a run. A write that fails stops the run and all around it before the next effect: what was
written stays, and the run can be resumed from there.
"""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from queue import SimpleQueue
from typing import TYPE_CHECKING

from luthier.errors import LuthierError, StoreError
from luthier.redaction import logger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from luthier.workflows.record import Entry
    from luthier.workflows.runs import RunRow, RunStore

_log = logger("luthier.workflows")


class _Batch:
    """Entries of one run for one transaction, none perhaps; `future` waits until all before it is written."""

    __slots__ = ("entries", "future", "ledger", "new", "row", "run")

    def __init__(
        self,
        ledger: Ledger,
        run: str,
        entries: list[Entry],
        row: RunRow | None,
        *,
        new: bool,
        future: asyncio.Future[None] | None = None,
    ) -> None:
        self.ledger = ledger
        self.run = run
        self.entries = entries
        self.row = row
        self.new = new
        self.future = future


class Writer:
    """The thread that writes. It begins with the first thing to write, and ends with `close`."""

    def __init__(self, store: RunStore) -> None:
        self.store = store
        self._queue: SimpleQueue[_Batch | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def put(self, item: _Batch) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="luthier-journal", daemon=True)
            self._thread.start()
        self._queue.put(item)

    def close(self) -> None:
        """Write what is left, and end. Not on the loop: it waits for the thread."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._queue.put(None)
            thread.join()

    def _work(self) -> None:
        while True:
            batches: dict[str, _Batch] = {}
            waiting: dict[Ledger, list[asyncio.Future[None]]] = {}
            last = False
            for item in self._taken():
                if item is None:
                    last = True
                    continue
                if item.future is not None:
                    waiting.setdefault(item.ledger, []).append(item.future)
                batch = batches.setdefault(item.run, item)
                if batch is not item:
                    batch.entries += item.entries
                    batch.row = item.row or batch.row
            for batch in batches.values():
                self._write(batch)
            for ledger, futures in waiting.items():
                ledger.passed(futures)
            if last:
                return

    def _taken(self) -> Iterator[_Batch | None]:
        yield self._queue.get()
        for _ in range(self._queue.qsize()):  # nobody else takes from it
            yield self._queue.get_nowait()

    def _write(self, batch: _Batch) -> None:
        if batch.ledger.fault is not None or not (batch.entries or batch.row):
            return
        try:
            if batch.new and batch.row is not None:
                self.store.create(batch.row, batch.entries)
            else:
                self.store.append(batch.run, batch.entries, row=batch.row)
        except LuthierError as error:
            batch.ledger.fail(error)
        except Exception as error:  # noqa: BLE001  (given to whoever drives the run)
            batch.ledger.fail(StoreError(f"The record cannot be written: {type(error).__name__}: {error}"))


class Ledger:
    """The records of a durable run and of all runs inside it, as they are written. On one loop.

    `resumed`: it is gone on with. `leaving`: the process stops, and the run stays as it is.
    """

    def __init__(self, writer: Writer, *, resumed: bool = False) -> None:
        self.writer = writer
        self.resumed = resumed
        self.leaving = False
        self.fault: LuthierError | None = None
        self._loop = asyncio.get_running_loop()
        self._heard: set[Callable[[LuthierError], None]] = set()

    def hear(self, told: Callable[[LuthierError], None]) -> None:
        """Be told of a write that failed, on the loop."""
        self._heard.add(told)

    def forget(self, told: Callable[[LuthierError], None]) -> None:
        self._heard.discard(told)

    # By the writer's thread:

    def fail(self, fault: LuthierError) -> None:
        self.fault = fault
        self._call(self._tell)

    def passed(self, futures: list[asyncio.Future[None]]) -> None:
        self._call(self._settle, futures)

    def _call(self, function: Callable[..., None], *arguments: object) -> None:
        with suppress(RuntimeError):  # the loop has ended meanwhile: nobody waits
            self._loop.call_soon_threadsafe(function, *arguments)

    # On the loop:

    def _tell(self) -> None:
        if self.fault is not None:
            for told in tuple(self._heard):
                told(self.fault)

    def _settle(self, futures: list[asyncio.Future[None]]) -> None:
        for future in futures:
            if future.done():
                continue
            if self.fault is None:
                future.set_result(None)
            else:
                future.set_exception(self.fault)


class Journal:
    """The record of one durable run, as its driver writes it. `new`: it has no row yet."""

    def __init__(self, ledger: Ledger, row: RunRow, *, new: bool) -> None:
        self.ledger = ledger
        self.row = row
        self._new = new
        self._fresh: list[Entry] = []
        self._handed = 0  # batches
        self._sure = 0  # those of them that are known to be written

    @property
    def leaving(self) -> bool:
        """Whether the run is to stay as it is: the process stops, or nothing can be written any more."""
        return self.ledger.leaving or self.ledger.fault is not None

    def add(self, entry: Entry) -> None:
        self._fresh.append(entry)

    def hand_over(self, entries: Iterable[Entry]) -> None:
        """A whole record at once."""
        self._fresh.extend(entries)
        self.flush(self.row)

    def flush(self, row: RunRow | None = None) -> None:
        """Hand over what is there, and how the run stands from now on."""
        if row is not None:
            self.row = row
        if self._fresh or row is not None:
            self._hand_over(row)

    def _hand_over(self, row: RunRow | None, future: asyncio.Future[None] | None = None) -> None:
        entries, self._fresh = self._fresh, []
        if self._new:
            row = self.row
        batch = _Batch(self.ledger, self.row.id, entries, row, new=self._new, future=future)
        self.ledger.writer.put(batch)
        self._new = False
        self._handed += 1

    async def written(self) -> None:
        """Wait until all of it is written. Raises StoreError and RunLostError."""
        if self.ledger.fault is not None:
            raise self.ledger.fault
        if self._fresh or self._sure < self._handed:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._hand_over(None, future)
            handed = self._handed
            await future
            self._sure = max(self._sure, handed)
