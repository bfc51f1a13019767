"""Reading the audit log back: every segment checked line by line, and segments against each other."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import msgspec

from luthier.errors import Fault
from luthier.govern.records import FIRST, Before, Record, SegmentOpened, read_line

if TYPE_CHECKING:
    from collections.abc import Iterable

_TAILS = (4 * 1024, 256 * 1024)  # the second holds the longest line that we write many times over

NEWEST = 64
"""How many segments a new one looks back at; what older ones say is vouched for by those."""


class Segment(msgspec.Struct, frozen=True):
    """One file of the log. A fault names its line; `torn`: the last line was not finished."""

    name: str
    records: tuple[Record, ...]
    faults: tuple[Fault, ...]
    torn: bool = False


class Trail(msgspec.Struct, frozen=True):
    """The log as read, oldest first. No faults and no torn line: nothing was changed, taken out or put in."""

    records: tuple[Record, ...]
    faults: tuple[Fault, ...]
    torn: tuple[
        str, ...
    ] = ()  # segments whose last line was not finished, as after a crash or on a full disk


def segments(directory: Path | str) -> list[Path]:
    """The files of the log, oldest first; none where there is no log."""
    files = (path for path in Path(directory).glob("*.jsonl") if path.is_file())  # a pipe would have no end
    return sorted(files, key=lambda path: path.stem)


def read_segment(path: Path) -> Segment:
    """Read and check one file. Raises OSError when it cannot be read."""
    *lines, rest = path.read_bytes().split(b"\n")
    records: list[Record] = []
    faults: list[Fault] = []
    prev = FIRST
    for number, line in enumerate(lines, 1):
        try:
            record = read_line(line)
        except ValueError as error:
            faults.append(Fault(str(error), str(path), number, 1))
            prev = ""
            continue
        faults.extend(Fault(said, str(path), number, 1) for said in _misplaced(record, number, prev))
        records.append(record)
        prev = record.hash
    if not lines:
        faults.append(Fault("it holds no record", str(path)))
    return Segment(path.name, tuple(records), tuple(faults), torn=bool(rest))


def _misplaced(record: Record, number: int, prev: str) -> Iterable[str]:
    if isinstance(record, SegmentOpened) != (number == 1):
        yield "a segment begins with one record of kind segment, and only there"
    if record.seq != number - 1:
        yield f"its number is {record.seq}, not {number - 1}: lines were taken out or put in"
    if prev and record.prev != prev:  # after a faulty line nobody knows
        yield "it does not follow from the line before: lines were taken out, put in or moved"


def read_audit(directory: Path | str) -> Trail:
    """The whole log of a directory, checked."""
    read = [read_segment(path) for path in segments(directory)]
    return _joined(read, [*_missing(Path(directory), read)])


def tail(directory: Path | str, count: int) -> Trail:
    """The last `count` records, read from as few segments as hold them; these are checked whole."""
    read: list[Segment] = []
    missing = count
    for path in reversed(segments(directory)):
        if missing <= 0:
            break
        read.insert(0, read_segment(path))
        missing -= len(read[0].records)
    trail = _joined(read, [])
    return msgspec.structs.replace(trail, records=trail.records[-count:] if count > 0 else ())


def _joined(read: list[Segment], more: list[Fault]) -> Trail:
    return Trail(
        tuple(record for segment in read for record in segment.records),
        (*(fault for segment in read for fault in segment.faults), *more),
        tuple(segment.name for segment in read if segment.torn),
    )


def _missing(directory: Path, read: list[Segment]) -> Iterable[Fault]:
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
                yield Fault(said, str(directory / before.segment))


def unnamed(directory: Path) -> tuple[Before, ...]:
    """The segments whose present end no other segment names yet, among the newest. Raises OSError."""
    ends: list[Before] = []
    named: set[Before] = set()
    for path in segments(directory)[-NEWEST:]:
        with path.open("rb") as file:
            first = _record(file.readline().rstrip(b"\n"))
            ends.append(Before(path.name, _last_hash(file)))
        if isinstance(first, SegmentOpened):
            named.update(first.before)
    return tuple(end for end in ends if end not in named)


def _last_hash(file: BinaryIO) -> str:
    """The hash of the last whole line; empty if there is none."""
    size = file.seek(0, os.SEEK_END)
    for length in _TAILS:
        file.seek(max(size - length, 0))
        *lines, _ = file.read().split(b"\n")
        record = _record(lines[-1]) if lines else None
        if record is not None:
            return record.hash
    return ""


def _record(line: bytes) -> Record | None:
    try:
        return read_line(line)
    except ValueError:
        return None
