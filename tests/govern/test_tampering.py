"""What somebody does to the log without its key is found, and where; the figure is printed."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from luthier.clock import FakeClock
from luthier.errors import AuditError
from luthier.govern import AuditKey, CheckpointFile, FileAudit, FileSegments, Intent, Outcome, Trail, verify
from luthier.govern.checkpoints import AFTER, EVERY

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

KEY = AuditKey(bytes(range(32)))
CALLS = 10


class Desk:
    """A log with its checkpoints elsewhere, as a process writes them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "log"
        self.checkpoints = CheckpointFile(folder / "elsewhere" / "checkpoints.jsonl")
        self.clock = FakeClock()

    def log(self, key: AuditKey = KEY, checkpoints: CheckpointFile | None = None) -> FileAudit:
        kept = checkpoints or self.checkpoints
        return FileAudit(self.folder, key=lambda: key, checkpoints=kept, clock=self.clock)

    def work(self, calls: int = CALLS) -> Path:
        """The calls of one process, from its start to its end."""
        log = self.log()
        write(log, calls)
        log.close()
        assert log.path is not None
        return log.path

    def verified(self) -> Trail:
        return verify(FileSegments(self.folder), KEY, self.checkpoints)

    def places(self) -> list[str]:
        return [fault.place for fault in self.verified().faults]


def write(log: FileAudit, calls: int) -> None:
    for number in range(calls):
        log.write(Intent(call=f"c{number}", uri="mcp://bank/pay", arguments="ab" * 32))
        log.write(Outcome(call=f"c{number}", uri="mcp://bank/pay", outcome="ok", duration=1.0))


Lines = list[bytes]
EDITS: dict[str, Callable[[Lines, Lines], Lines]] = {
    "edit a line": lambda lines, _: [*lines[:5], lines[5].replace(b"bank", b"bonk"), *lines[6:]],
    "delete a line": lambda lines, _: [*lines[:5], *lines[6:]],
    "insert a line": lambda lines, forged: [*lines[:5], forged[5], *lines[5:]],
    "reorder lines": lambda lines, _: [*lines[:5], lines[6], lines[5], *lines[7:]],
    "truncate the tail": lambda lines, _: lines[:-3],
    "rewrite all": lambda _, forged: forged,
    "replace by nothing": lambda _lines, _: [],
}


@pytest.mark.parametrize("which", [0, 1], ids=["of an earlier process", "of the last process"])
@pytest.mark.parametrize("name", EDITS)
def test_each_edit_of_the_log_is_found_in_the_segment_where_it_was_made(
    name: str, which: int, tmp_path: Path
) -> None:
    desk = Desk(tmp_path)
    paths = [desk.work(), desk.work()]
    assert desk.verified().faults == ()
    edited(desk, paths[which], EDITS[name])
    assert str(paths[which]) in "\n".join(desk.places())


def edited(desk: Desk, path: Path, edit: Callable[[Lines, Lines], Lines]) -> None:
    """The file as somebody leaves it who knows the format and has another key."""
    aside = desk.folder / "aside"
    forger = FileAudit(aside, key=AuditKey.fresh, clock=desk.clock)
    write(forger, CALLS)
    forger.close()
    assert forger.path is not None
    forged = forger.path.read_bytes().splitlines(keepends=True)
    shutil.rmtree(aside)
    path.write_bytes(b"".join(edit(path.read_bytes().splitlines(keepends=True), forged)))


def test_seven_of_seven_kinds_of_edits_are_found(tmp_path: Path, figure: Callable[[str], None]) -> None:
    found = 0
    for number, edit in enumerate(EDITS.values()):
        desk = Desk(tmp_path / str(number))
        path = desk.work()
        edited(desk, path, edit)
        found += bool(desk.verified().faults)
    figure(f"G9: {found} of {len(EDITS)} kinds of tampering with the audit log found")
    assert found == len(EDITS) == 7


@pytest.mark.parametrize("what", ["one segment", "the whole log"])
def test_what_was_taken_away_is_named(what: str, tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    path = desk.work()
    if what == "one segment":
        path.unlink()
    else:
        shutil.rmtree(desk.folder)
    (fault,) = desk.verified().faults
    assert fault.place == str(path)
    assert "it had 21 lines at 2001-09-09T01:46:40.000000Z, and it is gone" in fault.message


def test_a_segment_of_another_log_with_the_same_key_is_found(tmp_path: Path) -> None:
    desk, other = Desk(tmp_path / "a"), Desk(tmp_path / "b")
    desk.work()
    foreign = other.work()
    shutil.copy(foreign, desk.folder / "20300101T000000Z-1.jsonl")
    (fault,) = desk.verified().faults
    assert fault.place.endswith("20300101T000000Z-1.jsonl")
    assert "no checkpoint knows of it" in fault.message


def test_a_log_whose_checkpoints_were_taken_away_does_not_pass(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.work()
    desk.checkpoints.path.unlink()
    (fault,) = desk.verified().faults
    assert "its checkpoints were taken away" in fault.message


@pytest.mark.parametrize(
    "edit",
    [
        lambda line: line.replace(b'"count":21', b'"count":18'),
        lambda line: line.replace(b'"count"', b'"amount"'),
        lambda line: line[:-6] + b'0000"}',
        lambda line: line.replace(KEY.public.encode(), AuditKey.fresh().public.encode()),
        lambda _line: b"\xff",
    ],
    ids=["count", "shape", "signature", "signer", "not text"],
)
def test_a_checkpoint_that_was_changed_is_named_and_vouches_for_nothing(
    edit: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    desk = Desk(tmp_path)
    desk.work()
    lines = desk.checkpoints.path.read_bytes().splitlines()
    desk.checkpoints.path.write_bytes(b"\n".join([*lines[:-1], edit(lines[-1])]) + b"\n")
    assert desk.places() == [f"{desk.checkpoints.path}:{len(lines)}:1"]


def test_a_checkpoint_that_was_not_finished_is_passed_over(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.work()
    whole = desk.checkpoints.path.read_bytes()
    desk.checkpoints.path.write_bytes(whole + whole[:50])
    assert desk.verified().faults == ()


async def test_a_busy_log_is_vouched_for_every_so_many_lines_and_a_slow_one_every_so_often(
    tmp_path: Path,
) -> None:
    desk = Desk(tmp_path)
    log = desk.log()
    write(log, EVERY)  # twice as many records
    most = 2 * EVERY + 1
    assert [checkpoint.count for checkpoint in desk.checkpoints.read(KEY.public)[0]] == [1, 1 + EVERY, most]
    await desk.clock.advance(AFTER)
    write(log, 1)
    assert [checkpoint.count for checkpoint in desk.checkpoints.read(KEY.public)[0]][3:] == [most + 1]
    log.close()
    assert [checkpoint.count for checkpoint in desk.checkpoints.read(KEY.public)[0]][4:] == [most + 2]
    log.close()
    assert len(desk.checkpoints.read(KEY.public)[0]) == 5


def test_a_log_that_is_written_while_it_is_checked_is_sound(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.work()
    running = desk.log()
    write(running, 5)
    assert desk.verified().faults == ()


def test_checkpoints_that_cannot_be_written_stop_the_log(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    (tmp_path / "file").write_text("")
    log = desk.log(checkpoints=CheckpointFile(tmp_path / "file" / "checkpoints.jsonl"))
    for _ in range(2):
        with pytest.raises(AuditError, match="checkpoints of the audit log cannot be written"):
            write(log, 1)
    log.close()


def test_checkpoints_that_cannot_be_written_at_the_end_say_so(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    log = desk.log()
    write(log, 1)
    desk.checkpoints.path.unlink()
    desk.checkpoints.path.mkdir()
    with pytest.raises(AuditError, match="checkpoints"):
        log.close()
    log.close()


def test_without_checkpoints_the_chain_alone_is_kept(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    log = FileAudit(desk.folder, key=lambda: KEY, clock=desk.clock)
    write(log, EVERY)
    log.close()
    assert not desk.checkpoints.path.exists()


def test_a_segment_of_another_key_or_format_is_one_fault_and_not_one_a_line(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    path = desk.work()
    other = AuditKey.fresh()
    trail = verify(FileSegments(desk.folder), other, CheckpointFile(tmp_path / "none"))
    assert [fault.message for fault in trail.faults] == [
        f"it was written with the key {KEY.id}, and the key at hand is {other.id}"
    ]
    path.write_bytes(path.read_bytes().replace(b'"version":2', b'"version":1'))
    assert any("it is of format 1" in fault.message for fault in desk.verified().faults)
