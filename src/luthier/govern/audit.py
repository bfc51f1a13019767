"""The audit log: a port, the log in files, and one in memory; every write is one line and one system call.

A log that failed once stays failed: after a line that may be torn nothing is appended, and every later call
is refused. A new process begins a new segment.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from luthier._version import __version__
from luthier.clock import SystemClock
from luthier.errors import AuditError
from luthier.govern.reading import unnamed
from luthier.govern.records import FIRST, VERSION, Record, SegmentOpened, write_line

if TYPE_CHECKING:
    from luthier.clock import Clock


class AuditLog(Protocol):
    """Where the gate writes down what it does."""

    def write(self, record: Record) -> None:
        """Append one record. Raises AuditError when it is not surely written, and from then on always."""

    def close(self) -> None:
        """No more is coming. Harmless when repeated."""


class FileAudit:
    """A segment of the log in `directory`, begun with its first record.

    `fsync`: a record is on the disk when `write` returns, at the price of the disk's time.
    """

    def __init__(self, directory: Path | str, *, clock: Clock | None = None, fsync: bool = False) -> None:
        self._directory = Path(directory)
        self._clock = clock or SystemClock()
        self._fsync = fsync
        self._file = -1
        self._seq = 0
        self._prev = FIRST
        self._second = -1
        self._stamp = ""
        self._broken = ""
        self.path: Path | None = None

    def write(self, record: Record) -> None:
        if self._file < 0:
            self._begin()
        now = self._clock.now()
        second = int(now)
        if second != self._second:
            self._second = second
            self._stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
        at = f"{self._stamp}.{int((now - second) * 1e6):06d}Z"
        line, self._prev = write_line(record, self._seq, at, self._prev)
        self._seq += 1
        try:
            written = os.write(self._file, line)
            if self._fsync:
                os.fsync(self._file)
        except OSError as error:
            raise self._break(str(error)) from error
        if written != len(line):
            raise self._break("the disk took only a part of a line")

    def close(self) -> None:
        self._break("it is closed")

    def _begin(self) -> None:
        if self._broken:
            raise self._error()
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            before = unnamed(self._directory)
            self._file, self.path = _new_segment(self._directory, self._clock.now())
        except OSError as error:
            raise self._break(str(error)) from error
        self.write(SegmentOpened(version=VERSION, luthier=__version__, pid=os.getpid(), before=before))

    def _break(self, why: str) -> AuditError:
        self._broken = self._broken or why
        file, self._file = self._file, -1
        if file >= 0:
            with suppress(OSError):  # it may have been closed underneath us
                os.close(file)
        return self._error()

    def _error(self) -> AuditError:
        return AuditError(
            f"The audit log in {self._directory} cannot be written: {self._broken}.",
            hint="Nothing is called without it: make room or fix the permissions, then start again.",
        )


_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


def _new_segment(directory: Path, now: float) -> tuple[int, Path]:
    stem = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now)) + f"-{os.getpid()}"
    for suffix in ("", *(f"-{number}" for number in range(2, 1000))):
        path = directory / f"{stem}{suffix}.jsonl"
        try:
            return os.open(
                path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600
            ), path
        except FileExistsError:
            continue
    raise FileExistsError(f"too many segments of the name {stem}")


class MemoryAudit:
    """The log as a list: a double. `fails` names the kinds of records that it cannot write."""

    def __init__(self, *, fails: str | tuple[str, ...] = ()) -> None:
        self.records: list[Record] = []
        self._fails = (fails,) if isinstance(fails, str) else fails
        self._broken = False

    def write(self, record: Record) -> None:
        if self._broken or record.__struct_config__.tag in self._fails:
            self._broken = True
            raise AuditError("The audit log cannot be written: it was made to fail.")
        self.records.append(record)

    def close(self) -> None:
        self._broken = True
