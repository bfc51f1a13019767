"""The audit log: what is written can be read, what was touched is found, and what cannot be written stops."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from luthier.clock import FakeClock
from luthier.errors import AuditError
from luthier.govern import (
    AuditKey,
    FileAudit,
    FileSegments,
    Intent,
    MemoryAudit,
    Outcome,
    Record,
    Segment,
    SegmentOpened,
    Tag,
    Trail,
    Verdict,
    read_audit,
    read_segment,
    tail,
)

RECORDS: list[Record] = [
    Verdict(
        call="c1",
        uri="mcp://git/git_log",
        verdict="allowed",
        principals=("operator", "ensemble:digest"),
        run="r1",
        step="log",
        arguments="ab" * 32,
        names=("repo_path", 'odd "name"\n'),
        label=Tag("untrusted", "private", ("web/fetch#c0",)),
    ),
    Intent(call="c1", uri="mcp://git/git_log", arguments="ab" * 32),
    Outcome(call="c1", uri="mcp://git/git_log", outcome="ok", duration=1.5, result="cd" * 32, size=17),
    Verdict(call="c2", uri="mcp://git/x", verdict="refused", reason="denied", rule="allowed_agents"),
]


KEY = AuditKey(bytes(range(32)))


def log(directory: Path, *, clock: FakeClock | None = None, fsync: bool = False) -> FileAudit:
    return FileAudit(directory, key=lambda: KEY, clock=clock or FakeClock(), fsync=fsync)


def read(directory: Path) -> Trail:
    return read_audit(FileSegments(directory), KEY)


def one(path: Path) -> Segment:
    return read_segment(FileSegments(path.parent), path.name, KEY)


def end(directory: Path, count: int) -> Trail:
    return tail(FileSegments(directory), KEY, count)


def written(directory: Path, records: list[Record] = RECORDS, clock: FakeClock | None = None) -> Path:
    audit = log(directory, clock=clock)
    for record in records:
        audit.write(record)
    audit.close()
    assert audit.path is not None
    return audit.path


def test_records_come_back_as_they_were_written_after_a_line_that_opens_the_segment(tmp_path: Path) -> None:
    path = written(tmp_path)
    trail = read(tmp_path)
    assert trail.faults == ()
    assert trail.torn == ()
    opened, *others = trail.records
    assert isinstance(opened, SegmentOpened)
    assert (opened.version, opened.pid, opened.before) == (2, os.getpid(), ())
    assert [str(record) for record in others] == [
        str(_as_written(record, number, trail.records)) for number, record in enumerate(RECORDS, 1)
    ]
    assert re.fullmatch(rf"20010909T014640Z-{os.getpid()}\.jsonl", path.name)
    assert path.stat().st_mode & 0o777 == 0o600


def _as_written(record: Record, number: int, all_of_them: tuple[Record, ...]) -> Record:
    found = all_of_them[number]
    return type(record)(
        **{name: getattr(record, name) for name in record.__struct_fields__ if name not in _BY_THE_LOG},
        **{name: getattr(found, name) for name in _BY_THE_LOG},
    )


_BY_THE_LOG = ("seq", "at", "prev", "hash")


def test_every_line_is_json_of_its_own_and_carries_the_hash_of_the_one_before(tmp_path: Path) -> None:
    lines = written(tmp_path).read_bytes().splitlines()
    before = "0" * 64
    for number, line in enumerate(lines):
        found = json.loads(line)
        assert found["seq"] == number
        assert found["prev"] == before
        body = line[: -len(',"hash":""}') - 64] + b"}"
        assert found["hash"] == KEY.mac(body)
        before = found["hash"]


def test_times_are_utc_to_the_microsecond(tmp_path: Path) -> None:
    clock = FakeClock(1_800_000_000.25)
    written(tmp_path, clock=clock)
    assert {record.at for record in read(tmp_path).records} == {"2027-01-15T08:00:00.250000Z"}


def test_nothing_is_written_before_the_first_record(tmp_path: Path) -> None:
    log(tmp_path / "audit").close()
    assert not (tmp_path / "audit").exists()
    assert read(tmp_path / "audit").records == ()


def before(path: Path) -> dict[str, str]:
    """What a segment says of those before it."""
    opened = one(path).records[0]
    assert isinstance(opened, SegmentOpened)
    return {named.segment: named.hash for named in opened.before}


def last_hash(path: Path) -> str:
    return one(path).records[-1].hash


def test_a_new_segment_names_those_before_it_whose_end_nobody_names_yet(tmp_path: Path) -> None:
    clock = FakeClock()
    first = written(tmp_path, clock=clock)
    second = written(tmp_path, clock=clock)  # in the same second, by the same process
    third = written(tmp_path, clock=FakeClock(1_000_000_001.0))
    assert before(first) == {}
    assert before(second) == {first.name: last_hash(first)}
    assert before(third) == {second.name: last_hash(second)}
    trail = read(tmp_path)
    assert trail.faults == ()
    assert len(trail.records) == 15


def test_segments_of_processes_that_ran_at_once_are_all_named_by_the_next(tmp_path: Path) -> None:
    clock = FakeClock()
    logs = [log(tmp_path, clock=clock) for _ in range(3)]
    for record in RECORDS:
        for each in logs:
            each.write(record)
    last = written(tmp_path, clock=FakeClock(1_000_000_001.0))
    assert set(before(last)) == {each.path.name for each in logs if each.path}
    assert read(tmp_path).faults == ()


def test_of_very_many_segments_the_newest_are_looked_at(tmp_path: Path) -> None:
    for second in range(70):
        written(tmp_path, RECORDS[:1], clock=FakeClock(1_000_000_000.0 + second))
    trail = read(tmp_path)
    assert trail.faults == ()
    heads = [record for record in trail.records if isinstance(record, SegmentOpened)]
    assert [len(head.before) for head in heads] == [0] + [1] * 69


def test_the_end_of_a_segment_is_found_behind_long_lines(tmp_path: Path) -> None:
    long = Verdict(call="c", uri="mcp://a/b", verdict="allowed", names=("x" * 10_000,))
    first = written(tmp_path, [long])
    assert before(written(tmp_path, clock=FakeClock(1_000_000_001.0))) == {first.name: last_hash(first)}


def test_a_name_that_is_taken_a_thousand_times_stops_the_log(tmp_path: Path) -> None:
    stem = f"20010909T014640Z-{os.getpid()}"
    for suffix in ("", *(f"-{number}" for number in range(2, 1000))):
        (tmp_path / f"{stem}{suffix}.jsonl").touch()
    with pytest.raises(AuditError, match="too many segments"):
        log(tmp_path, clock=FakeClock()).write(RECORDS[0])


def test_a_segment_that_went_on_after_it_was_named_is_sound(tmp_path: Path) -> None:
    one, other = log(tmp_path, clock=FakeClock()), log(tmp_path, clock=FakeClock(1_000_000_001.0))
    one.write(RECORDS[0])
    other.write(RECORDS[0])
    one.write(RECORDS[1])
    assert read(tmp_path).faults == ()


@pytest.mark.parametrize("edit", ["delete it", "empty it", "cut its tail", "rewrite it"])
def test_what_was_done_to_an_earlier_segment_is_told_by_the_later_one(edit: str, tmp_path: Path) -> None:
    first = written(tmp_path)
    written(tmp_path, clock=FakeClock(1_000_000_001.0))
    match edit:
        case "delete it":
            first.unlink()
        case "empty it":
            first.write_bytes(b"")
        case "cut its tail":
            first.write_bytes(b"".join(first.read_bytes().splitlines(keepends=True)[:-1]))
        case _:
            first.unlink()
            written(tmp_path, RECORDS[:2]).rename(first)
    faults = read(tmp_path).faults
    assert faults
    assert all(str(first) in fault.place for fault in faults)


def test_a_torn_last_line_is_reported_and_is_not_fatal(tmp_path: Path) -> None:
    path = written(tmp_path)
    path.write_bytes(path.read_bytes()[:-20])
    trail = read(tmp_path)
    assert trail.torn == (path.name,)
    assert trail.faults == ()
    assert len(trail.records) == len(RECORDS)
    written(tmp_path, clock=FakeClock(1_000_000_001.0))
    assert read(tmp_path).faults == ()


def test_a_segment_torn_in_its_first_line_has_nothing_to_name(tmp_path: Path) -> None:
    path = written(tmp_path)
    path.write_bytes(path.read_bytes()[:30])
    assert [fault.message for fault in read(tmp_path).faults] == ["it holds no record"]
    later = written(tmp_path, clock=FakeClock(1_000_000_001.0))
    assert before(later) == {path.name: ""}


@pytest.mark.parametrize(
    "edit",
    [
        lambda lines: lines[:2] + lines[3:],
        lambda lines: [*lines[:2], lines[3], lines[2], *lines[4:]],
        lambda lines: [*lines[:2], lines[1], *lines[2:]],
        lambda lines: lines[1:],
        lambda lines: [*lines, lines[-1]],
        lambda lines: [*lines[:3], b"\n", *lines[3:]],
        lambda lines: [*lines[:3], b"{}\n", *lines[3:]],
        lambda lines: [*lines[:3], lines[3].replace(b'"ok"', b'"no"'), *lines[4:]],
        lambda lines: [lines[0], *lines],
    ],
    ids=["delete", "reorder", "repeat", "behead", "repeat last", "blank", "insert", "edit", "second head"],
)
def test_lines_taken_out_put_in_moved_or_edited_are_found(edit: object, tmp_path: Path) -> None:
    path = written(tmp_path)
    assert callable(edit)
    path.write_bytes(b"".join(edit(path.read_bytes().splitlines(keepends=True))))
    assert read(tmp_path).faults


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300)
@given(st.data())
def test_any_edit_of_any_byte_is_found(tmp_path: Path, data: st.DataObject) -> None:
    path = tmp_path / "20300101T000000Z-1.jsonl"
    sound = _sound_segment(tmp_path)
    at = data.draw(st.integers(0, len(sound) - 1))
    byte = data.draw(st.integers(0, 255).filter(lambda byte: byte != sound[at]))
    path.write_bytes(sound[:at] + bytes([byte]) + sound[at + 1 :])
    segment = one(path)
    assert segment.faults or segment.torn
    path.write_bytes(sound)
    assert one(path).faults == ()


def _sound_segment(directory: Path) -> bytes:
    made = directory / "made"
    if not made.exists():
        written(made)
    return next(made.iterdir()).read_bytes()


@given(
    st.lists(
        st.builds(
            Verdict,
            call=st.text(),
            uri=st.text(),
            verdict=st.sampled_from(["allowed", "refused", "failed"]),
            rule=st.text(),
            names=st.lists(st.text(), max_size=3).map(tuple),
            attempt=st.integers(1, 2**60),
        )
        | st.builds(Outcome, call=st.text(), uri=st.text(), outcome=st.text(), duration=st.floats(0, 1e12)),
        max_size=8,
    )
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
def test_whatever_is_written_is_read_back_as_one_line_each(tmp_path: Path, records: list[Record]) -> None:
    audit = log(tmp_path)
    for record in [RECORDS[0], *records]:
        audit.write(record)
    audit.close()
    assert audit.path is not None
    segment = one(audit.path)
    assert (segment.faults, segment.torn) == ((), False)
    for record, found in zip(records, segment.records[2:], strict=True):
        assert str(_as_written(record, 0, (found,))) == str(found)
    audit.path.unlink()


def test_the_tail_is_read_over_segments_from_the_end(tmp_path: Path) -> None:
    for second in range(3):
        written(tmp_path, clock=FakeClock(1_000_000_000.0 + second))
    whole = read(tmp_path).records
    for count in (1, 5, 7, 15, 100):
        assert end(tmp_path, count).records == whole[-count:]
    assert end(tmp_path, 0).records == ()
    assert end(tmp_path / "none", 5).records == ()


def test_the_tail_tells_what_is_wrong_with_the_segments_it_reads(tmp_path: Path) -> None:
    path = written(tmp_path)
    path.write_bytes(path.read_bytes().replace(b"allowed", b"refused", 1))
    assert [fault.line for fault in end(tmp_path, 2).faults] == [2]


# Faults of the disk


def test_a_file_descriptor_closed_underneath_stops_the_log_for_good(tmp_path: Path) -> None:
    audit = log(tmp_path)
    audit.write(RECORDS[0])
    descriptor = _descriptor_of(tmp_path)
    os.close(descriptor)
    with pytest.raises(AuditError, match="Bad file descriptor"):
        audit.write(RECORDS[1])
    with pytest.raises(AuditError, match="Bad file descriptor"):
        audit.write(RECORDS[2])
    assert len(read(tmp_path).records) == 2


def _descriptor_of(directory: Path) -> int:
    found = [
        link for link in Path("/proc/self/fd").iterdir() if str(link.resolve()).startswith(str(directory))
    ]
    assert len(found) == 1
    return int(found[0].name)


def test_a_place_where_nothing_can_be_made_stops_the_log(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    audit = log(tmp_path / "file" / "audit")
    for _ in range(2):
        with pytest.raises(AuditError, match="Nothing is called without it"):
            audit.write(RECORDS[0])


def test_a_closed_log_takes_nothing(tmp_path: Path) -> None:
    audit = log(tmp_path)
    audit.write(RECORDS[0])
    audit.close()
    audit.close()
    with pytest.raises(AuditError, match="it is closed"):
        audit.write(RECORDS[1])


def test_what_is_synced_is_written_all_the_same(tmp_path: Path) -> None:
    audit = log(tmp_path, fsync=True)
    audit.write(RECORDS[0])
    assert len(read(tmp_path).records) == 2


FULL_DISK = """
    import resource, sys
    from luthier.errors import AuditError
    from luthier.govern import AuditKey, FileAudit, Intent

    audit = FileAudit(sys.argv[1], key=lambda: AuditKey(bytes(range(32))))
    audit.write(Intent(call="0", uri="mcp://a/b"))
    size = audit.path.stat().st_size
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + int(sys.argv[2]), resource.RLIM_INFINITY))
    taken = 0
    try:
        while True:
            audit.write(Intent(call=str(taken), uri="mcp://a/b"))
            taken += 1
    except AuditError as error:
        print(taken, error.message)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    try:
        audit.write(Intent(call="after", uri="mcp://a/b"))
    except AuditError:
        print("stays failed")
"""


@pytest.mark.parametrize(("room", "why"), [(0, "File too large"), (50, "only a part of a line"), (700, "")])
def test_a_full_disk_stops_the_log_for_good_and_leaves_at_most_one_torn_line(
    room: int, why: str, tmp_path: Path
) -> None:
    program = [sys.executable, "-c", textwrap.dedent(FULL_DISK), str(tmp_path), str(room)]
    done = subprocess.run(program, capture_output=True, text=True, timeout=30, check=True)
    first, second = done.stdout.splitlines()
    taken = int(first.split()[0])
    assert why in first
    assert second == "stays failed"
    trail = read(tmp_path)
    assert len(trail.records) == taken + 2
    assert trail.faults == ()
    assert len(trail.torn) == (1 if room else 0)


def test_a_dead_process_leaves_a_log_that_reads(tmp_path: Path) -> None:
    program = textwrap.dedent("""
        import os, signal, sys
        from luthier.govern import AuditKey, FileAudit, Intent
        audit = FileAudit(sys.argv[1], key=lambda: AuditKey(bytes(range(32))))
        audit.write(Intent(call="1", uri="mcp://a/b"))
        os.kill(os.getpid(), signal.SIGKILL)
    """)
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], timeout=30, check=False)
    assert done.returncode == -9
    trail = read(tmp_path)
    assert [type(record) for record in trail.records] == [SegmentOpened, Intent]
    assert (trail.faults, trail.torn) == ((), ())


# The double


def test_the_double_keeps_records_until_it_is_to_fail_and_then_stays_failed() -> None:
    audit = MemoryAudit(fails="outcome")
    audit.write(RECORDS[0])
    audit.write(RECORDS[1])
    with pytest.raises(AuditError):
        audit.write(RECORDS[2])
    with pytest.raises(AuditError):
        audit.write(RECORDS[0])
    assert audit.records == RECORDS[:2]


def test_the_closed_double_takes_nothing() -> None:
    audit = MemoryAudit()
    audit.close()
    with pytest.raises(AuditError):
        audit.write(RECORDS[0])
