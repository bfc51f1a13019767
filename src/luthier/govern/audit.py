"""The audit log: a port, the chain that every log writes, the log in files, and one in memory.

A log that failed once stays failed: after a line that may be torn nothing is appended, and every later call
is refused. A new process begins a new segment.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from luthier._version import __version__
from luthier.clock import SystemClock
from luthier.errors import AuditError
from luthier.govern.checkpoints import AFTER, EVERY
from luthier.govern.reading import FileSegments, unnamed
from luthier.govern.records import FIRST, VERSION, Record, SegmentOpened, write_line
from luthier.tools.threads import in_thread

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from luthier.clock import Clock
    from luthier.govern.checkpoints import CheckpointFile
    from luthier.govern.keys import AuditKey
    from luthier.govern.reading import Segments


class AuditLog(Protocol):
    """Where the gate writes down what it does.

    One that has `waits` set may make its writers wait for others: it is written to from any thread.
    """

    def write(self, *records: Record) -> None:
        """Append records, in one go. Raises AuditError when not all are surely written, and then always."""

    def close(self) -> None:
        """No more is coming. Harmless when repeated."""


async def written_down(audit: AuditLog, *records: Record) -> None:
    """Append records; nobody else of the loop waits for a log that waits for others.

    Raises as `write` does. Cancelled, it returns when they are written or cannot be.
    """
    if not getattr(audit, "waits", False):
        audit.write(*records)
        return
    writing = asyncio.ensure_future(in_thread(partial(audit.write, *records), name="luthier-audit"))
    try:
        await asyncio.shield(writing)
    except asyncio.CancelledError:
        await asyncio.wait({writing})
        if not writing.cancelled():
            writing.exception()  # nobody is there to be told
        raise


class Sink(Protocol):
    """What takes the lines of one segment."""

    def begin(self, now: float) -> str:
        """Begin a segment and give its name. Raises OSError."""

    def append(self, lines: Sequence[bytes]) -> None:
        """Take lines, each with its newline, whole. Raises OSError."""

    def end(self) -> None:
        """No more is coming. Never fails."""


class ChainedAudit:
    """A segment of the log: lines chained with the key, and checkpoints of them elsewhere.

    The key is asked for with the first record. `where` is what errors call the log; `policies` is the hash of
    those in force.
    """

    waits = False

    def __init__(
        self,
        sink: Sink,
        segments: Segments,
        *,
        key: Callable[[], AuditKey],
        checkpoints: CheckpointFile | None = None,
        clock: Clock | None = None,
        where: str,
        policies: str = "",
    ) -> None:
        self._sink = sink
        self._segments = segments
        self._ask = key
        self._key: AuditKey | None = None
        self._checkpoints = checkpoints
        self._clock = clock or SystemClock()
        self._where = where
        self._policies = policies
        self._segment = ""
        self._seq = 0
        self._prev = FIRST
        self._vouched = 0  # lines that the last checkpoint knows of
        self._vouched_at = 0.0
        self._now = 0.0  # of the last line
        self._at = ""
        self._second = -1
        self._stamp = ""
        self._broken = ""
        self._turn = threading.Lock()  # a line follows from the one before

    def write(self, *records: Record) -> None:
        with self._turn:
            key = self._key or self._begin()
            self._append(records, key)
            if self._seq - self._vouched >= EVERY or abs(self._now - self._vouched_at) >= AFTER:
                self._vouch(key)

    def close(self) -> None:
        with self._turn:
            try:
                if self._key is not None and self._seq > self._vouched and not self._broken:
                    self._vouch(self._key)
            finally:
                self._break("it is closed")

    def _begin(self) -> AuditKey:
        if self._broken:
            raise self._error()
        try:
            key = self._ask()
            before = unnamed(self._segments)
            self._segment = self._sink.begin(self._clock.now())
        except AuditError as error:
            self._break(error.message)
            raise
        except OSError as error:
            raise self._break(str(error)) from error
        self._key = key
        opened = SegmentOpened(
            version=VERSION,
            luthier=__version__,
            pid=os.getpid(),
            key=key.id,
            before=before,
            policies=self._policies,
        )
        self._append((opened,), key)
        self._vouch(key)
        return key

    def _append(self, records: Sequence[Record], key: AuditKey) -> None:
        if self._broken:
            raise self._error()
        self._now = now = self._clock.now()
        second = int(now)
        if second != self._second:
            self._second = second
            self._stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
        self._at = at = f"{self._stamp}.{int((now - second) * 1e6):06d}Z"
        lines = []
        for record in records:
            line, self._prev = write_line(record, self._seq, at, self._prev, key)
            self._seq += 1
            lines.append(line)
        try:
            self._sink.append(lines)
        except OSError as error:
            raise self._break(str(error)) from error

    def _vouch(self, key: AuditKey) -> None:
        self._vouched, self._vouched_at = self._seq, self._now
        if self._checkpoints is None:
            return
        try:
            self._checkpoints.add(key, segment=self._segment, count=self._seq, head=self._prev, at=self._at)
        except AuditError as error:
            self._break(error.message)
            raise

    def _break(self, why: str) -> AuditError:
        self._broken = self._broken or why
        self._sink.end()
        return self._error()

    def _error(self) -> AuditError:
        return AuditError(
            f"The audit log in {self._where} cannot be written: {self._broken.rstrip('.')}.",
            hint="Nothing is called without it: make room or fix the permissions, then start again.",
        )


class FileSink:
    """A file of lines in `directory`; what is appended at once is one write.

    `fsync`: a line is on the disk when it is taken, at the price of the disk's time.
    """

    def __init__(self, directory: Path, *, fsync: bool = False) -> None:
        self._directory = directory
        self._fsync = fsync
        self._file = -1
        self.path: Path | None = None

    def begin(self, now: float) -> str:
        self._directory.mkdir(parents=True, exist_ok=True)
        self._file, self.path = _new_segment(self._directory, now)
        return self.path.name

    def append(self, lines: Sequence[bytes]) -> None:
        whole = b"".join(lines)
        written = os.write(self._file, whole)
        if self._fsync:
            os.fsync(self._file)
        if written != len(whole):
            raise OSError("the disk took only a part of a line")

    def end(self) -> None:
        file, self._file = self._file, -1
        if file >= 0:
            with suppress(OSError):  # it may have been closed underneath us
                os.close(file)


class FileAudit(ChainedAudit):
    """The log in files: one segment of it in `directory`, begun with the first record."""

    def __init__(
        self,
        directory: Path | str,
        *,
        key: Callable[[], AuditKey],
        checkpoints: CheckpointFile | None = None,
        clock: Clock | None = None,
        fsync: bool = False,
        policies: str = "",
    ) -> None:
        self._file = FileSink(Path(directory), fsync=fsync)
        super().__init__(
            self._file,
            FileSegments(directory),
            key=key,
            checkpoints=checkpoints,
            clock=clock,
            where=str(directory),
            policies=policies,
        )

    @property
    def path(self) -> Path | None:
        """The file, once it is begun."""
        return self._file.path


_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


def segment_names(now: float) -> tuple[str, ...]:
    """What a segment that this process begins now may be called, in the order to be tried."""
    stem = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now)) + f"-{os.getpid()}"
    return (f"{stem}.jsonl", *(f"{stem}-{number}.jsonl" for number in range(2, 1000)))


def _new_segment(directory: Path, now: float) -> tuple[int, Path]:
    names = segment_names(now)
    for name in names:
        try:
            return os.open(directory / name, _FLAGS, 0o600), directory / name
        except FileExistsError:
            continue
    raise FileExistsError(f"too many segments of the name {names[0]}")


class MemoryAudit:
    """The log as a list: a double. `fails` names the kinds of records that it cannot write."""

    def __init__(self, *, fails: str | tuple[str, ...] = ()) -> None:
        self.records: list[Record] = []
        self._fails = (fails,) if isinstance(fails, str) else fails
        self._broken = False

    def write(self, *records: Record) -> None:
        if self._broken or any(record.__struct_config__.tag in self._fails for record in records):
            self._broken = True
            raise AuditError("The audit log cannot be written: it was made to fail.")
        self.records.extend(records)

    def close(self) -> None:
        self._broken = True
