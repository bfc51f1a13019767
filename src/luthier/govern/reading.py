"""Reading the audit log back: segments line by line, against each other and against checkpoints."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Protocol

import msgspec

from luthier.errors import Fault
from luthier.govern.records import FIRST, VERSION, Before, Record, SegmentOpened, read_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from luthier.govern.checkpoints import Checkpoint, CheckpointFile
    from luthier.govern.keys import AuditKey

_TAILS = (4 * 1024, 256 * 1024)  # the second holds the longest line that we write many times over

NEWEST = 64
"""How many segments a new one looks back at; what older ones say is vouched for by those."""


class Segments(Protocol):
    """Where the segments of a log are kept."""

    def names(self) -> list[str]:
        """What they are called, oldest first; none where there is no log. Raises OSError."""

    def read(self, name: str) -> bytes:
        """One of them, whole. Raises OSError."""

    def ends(self, name: str) -> tuple[bytes, bytes]:
        """Its first line and the last whole one, without newlines; empty if there is none. Raises OSError."""

    def place(self, name: str) -> str:
        """What people call it."""


class FileSegments:
    """The files of a directory."""

    def __init__(self, directory: Path | str) -> None:
        self._directory = Path(directory)

    def names(self) -> list[str]:
        found = (
            path for path in self._directory.glob("*.jsonl") if path.is_file()
        )  # a pipe would have no end
        return [path.name for path in sorted(found, key=lambda path: path.stem)]

    def read(self, name: str) -> bytes:
        return (self._directory / name).read_bytes()

    def ends(self, name: str) -> tuple[bytes, bytes]:
        with (self._directory / name).open("rb") as file:
            return file.readline().rstrip(b"\n"), _last_line(file)

    def place(self, name: str) -> str:
        return str(self._directory / name)


def _last_line(file: BinaryIO) -> bytes:
    """The last whole line that is a record; empty if there is none."""
    size = file.seek(0, os.SEEK_END)
    for length in _TAILS:
        file.seek(max(size - length, 0))
        *lines, _ = file.read().split(b"\n")
        if lines and _record(lines[-1]) is not None:
            return lines[-1]
    return b""


class Segment(msgspec.Struct, frozen=True):
    """One segment of the log. A fault names its line; `torn`: the last line was not finished."""

    name: str
    records: tuple[Record, ...]
    faults: tuple[Fault, ...]
    torn: bool = False


class Trail(msgspec.Struct, frozen=True):
    """The log as read, oldest first. No faults and no torn line: nothing was changed, taken out or put in.

    `torn` are segments whose last line was not finished, as after a crash or on a full disk. `checked` is
    False where the key was not there to check anything with.
    """

    records: tuple[Record, ...]
    faults: tuple[Fault, ...]
    torn: tuple[str, ...] = ()
    segments: int = 0
    checkpoints: int = 0
    checked: bool = True


def read_segment(segments: Segments, name: str, key: AuditKey | None) -> Segment:
    """Read and check one segment. Raises OSError when it cannot be read."""
    *lines, rest = segments.read(name).split(b"\n")
    place = segments.place(name)
    records: list[Record] = []
    faults: list[Fault] = []
    prev = FIRST
    if not lines:
        faults.append(Fault("it holds no record", place))
    if said := _foreign(lines[:1], key):
        return Segment(name, (), (Fault(said, place, 1, 1),), torn=bool(rest))
    for number, line in enumerate(lines, 1):
        try:
            record = read_line(line, key)
        except ValueError as error:
            faults.append(Fault(str(error), place, number, 1))
            prev = ""
            continue
        faults.extend(Fault(said, place, number, 1) for said in _misplaced(record, number, prev))
        records.append(record)
        prev = record.hash
    return Segment(name, tuple(records), tuple(faults), torn=bool(rest))


def _foreign(head: Sequence[bytes], key: AuditKey | None) -> str:
    """Why a segment cannot be read at all: then one fault says it, and not one for each line."""
    for line in head:
        record = _record(line)
        if not isinstance(record, SegmentOpened):
            continue
        if record.version != VERSION:
            return f"it is of format {record.version}, and this version reads format {VERSION}"
        if key is not None and record.key != key.id:
            return f"it was written with the key {record.key}, and the key at hand is {key.id}"
    return ""


def _misplaced(record: Record, number: int, prev: str) -> Iterable[str]:
    if isinstance(record, SegmentOpened) != (number == 1):
        yield "a segment begins with one record of kind segment, and only there"
    if record.seq != number - 1:
        yield f"its number is {record.seq}, not {number - 1}: lines were taken out or put in"
    if prev and record.prev != prev:  # after a faulty line nobody knows
        yield "it does not follow from the line before: lines were taken out, put in or moved"


def read_audit(segments: Segments, key: AuditKey | None) -> Trail:
    """The whole log, each segment checked by itself and against the others."""
    read = [read_segment(segments, name, key) for name in segments.names()]
    return _joined(read, [*_missing(segments, read)], key, 0)


def verify(segments: Segments, key: AuditKey, checkpoints: CheckpointFile) -> Trail:
    """The whole log, checked against its checkpoints too. Raises OSError.

    The log may be written meanwhile: it holds at least what the checkpoints know that are read first, and
    those that are read last know of all its segments.
    """
    first, _ = checkpoints.read(key.public)
    read = [read_segment(segments, name, key) for name in segments.names()]
    last, faults = checkpoints.read(key.public)
    faults += [*_missing(segments, read), *_cut(segments, read, first), *_unknown(segments, read, last)]
    return _joined(read, faults, key, len(last))


def tail(segments: Segments, key: AuditKey | None, count: int) -> Trail:
    """The last `count` records, read from as few segments as hold them; these are checked whole."""
    read: list[Segment] = []
    missing = count
    for name in reversed(segments.names()):
        if missing <= 0:
            break
        read.insert(0, read_segment(segments, name, key))
        missing -= len(read[0].records)
    trail = _joined(read, [], key, 0)
    return msgspec.structs.replace(trail, records=trail.records[-count:] if count > 0 else ())


def _joined(read: list[Segment], more: list[Fault], key: AuditKey | None, checkpoints: int) -> Trail:
    return Trail(
        tuple(record for segment in read for record in segment.records),
        (*(fault for segment in read for fault in segment.faults), *more),
        tuple(segment.name for segment in read if segment.torn),
        len(read),
        checkpoints,
        key is not None,
    )


def _missing(segments: Segments, read: list[Segment]) -> Iterable[Fault]:
    hashes = {segment.name: {record.hash for record in segment.records} | {""} for segment in read}
    for segment in read:
        for record in segment.records[:1]:
            for before in record.before if isinstance(record, SegmentOpened) else ():
                if before.segment not in hashes:
                    said = f"{segment.name} names it as an earlier segment, and it is gone"
                elif before.hash not in hashes[before.segment]:
                    said = f"{segment.name} names a line of it that is gone: it was cut or rewritten"
                else:
                    continue
                yield Fault(said, segments.place(before.segment))


def _cut(segments: Segments, read: list[Segment], checkpoints: Sequence[Checkpoint]) -> Iterable[Fault]:
    """What checkpoints know of and the log does not have."""
    there = {segment.name: segment.records for segment in read}
    newest: dict[str, Checkpoint] = {}
    for checkpoint in checkpoints:
        known = newest.get(checkpoint.segment)
        if known is None or checkpoint.count >= known.count:
            newest[checkpoint.segment] = checkpoint
    for name, last in newest.items():
        records = there.get(name)
        if records is None:
            said = f"it had {last.count} lines at {last.at}, and it is gone"
        elif not any(record.hash == last.head for record in records[last.count - 1 : last.count]):
            said = f"it had {last.count} lines at {last.at}, and these are not they: it was cut or rewritten"
        else:
            continue
        yield Fault(said, segments.place(name))


def _unknown(segments: Segments, read: list[Segment], checkpoints: Sequence[Checkpoint]) -> Iterable[Fault]:
    """Segments that no checkpoint knows of. One that only opened may have ended before it had one."""
    known = {checkpoint.segment for checkpoint in checkpoints}
    for segment in read:
        if segment.name not in known and len(segment.records) > 1:
            yield Fault(
                "no checkpoint knows of it: it was put here, or its checkpoints were taken away",
                segments.place(segment.name),
            )


def unnamed(segments: Segments) -> tuple[Before, ...]:
    """The segments whose present end no other segment names yet, among the newest. Raises OSError."""
    ends: list[Before] = []
    named: set[Before] = set()
    for name in segments.names()[-NEWEST:]:
        first, last = map(_record, segments.ends(name))
        ends.append(Before(name, last.hash if last else ""))
        if isinstance(first, SegmentOpened):
            named.update(first.before)
    return tuple(end for end in ends if end not in named)


def _record(line: bytes) -> Record | None:
    """A line as it stands: whether it was changed is for who reads the log to find out."""
    try:
        return read_line(line, None)
    except ValueError:
        return None
