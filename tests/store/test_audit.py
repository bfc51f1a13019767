"""The audit log in the store: read back, verified, and stopped when the store fails, in both databases."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import sqlalchemy as sa

from luthier.clock import FakeClock
from luthier.errors import AuditError
from luthier.govern import AuditKey, CheckpointFile, Intent, Outcome, SegmentOpened, Trail, read_audit, verify
from luthier.store import DEFAULT, Database, SqlAudit, SqlSegments, SqlState
from luthier.store.sql import AUDIT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

KEY = AuditKey(bytes(range(32)))


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    url = DEFAULT if request.param == "sqlite" else str(request.getfixturevalue("postgres_url"))
    database = Database(url, tmp_path)
    yield database
    database.close()


@pytest.fixture
def checkpoints(tmp_path: Path) -> CheckpointFile:
    return CheckpointFile(tmp_path / "elsewhere.jsonl")


def work(database: Database, checkpoints: CheckpointFile, calls: int = 5) -> None:
    log = SqlAudit(database, key=lambda: KEY, checkpoints=checkpoints, clock=FakeClock())
    for number in range(calls):
        log.write(Intent(call=f"c{number}", uri="mcp://bank/pay", arguments="ab" * 32))
        log.write(Outcome(call=f"c{number}", uri="mcp://bank/pay", outcome="ok", duration=1.0))
    log.close()


def verified(database: Database, checkpoints: CheckpointFile) -> Trail:
    return verify(SqlSegments(database), KEY, checkpoints)


def test_records_come_back_and_segments_name_those_before_them(
    database: Database, checkpoints: CheckpointFile
) -> None:
    work(database, checkpoints)
    work(database, checkpoints)
    trail = verified(database, checkpoints)
    assert (trail.faults, trail.torn, trail.segments) == ((), (), 2)
    opened = [record for record in trail.records if isinstance(record, SegmentOpened)]
    assert [len(record.before) for record in opened] == [0, 1]
    assert len(trail.records) == 22


def test_a_store_without_a_log_is_an_empty_log(database: Database, checkpoints: CheckpointFile) -> None:
    assert SqlSegments(database).names() == []
    assert SqlSegments(database).ends("none") == (b"", b"")
    assert verified(database, checkpoints).records == ()


def test_writing_the_log_wakes_nobody_who_watches_the_store(
    database: Database, checkpoints: CheckpointFile
) -> None:
    state = SqlState(database)
    state.put("pins", "git", {})
    before = state.revision()
    work(database, checkpoints)
    assert state.revision() == before


LATER = AUDIT.c.number == 4
EDITS: dict[str, Callable[[], list[sa.Executable]]] = {
    "edit": lambda: [AUDIT.update().where(LATER).values(line=sa.func.replace(AUDIT.c.line, "bank", "bonk"))],
    "delete": lambda: [AUDIT.delete().where(LATER)],
    "truncate": lambda: [AUDIT.delete().where(AUDIT.c.number > 6)],
    "reorder": lambda: [
        AUDIT.update().where(LATER).values(number=99),
        AUDIT.update().where(AUDIT.c.number == 5).values(number=4),
        AUDIT.update().where(AUDIT.c.number == 99).values(number=5),
    ],
    "empty": lambda: [AUDIT.delete()],
}


@pytest.mark.parametrize("name", EDITS)
def test_rows_that_somebody_touched_are_found(
    name: str, database: Database, checkpoints: CheckpointFile
) -> None:
    work(database, checkpoints)
    with database.writing() as connection:
        for edit in EDITS[name]():
            connection.execute(edit)
        connection.commit()
    faults = verified(database, checkpoints).faults
    assert faults
    assert all("table audit, segment " in fault.place for fault in faults)


def test_a_store_that_fails_stops_the_log_for_good(database: Database, checkpoints: CheckpointFile) -> None:
    log = SqlAudit(database, key=lambda: KEY, checkpoints=checkpoints, clock=FakeClock())
    log.write(Intent(call="c", uri="mcp://bank/pay"))
    with database.writing() as connection:
        AUDIT.drop(connection)
        connection.commit()
    for _ in range(2):
        with pytest.raises(AuditError, match="cannot be written"):
            log.write(Intent(call="c", uri="mcp://bank/pay"))
    log.close()
    with pytest.raises(AuditError, match="cannot be written"):
        log.write(Intent(call="c", uri="mcp://bank/pay"))


def test_a_store_that_cannot_be_made_lets_nothing_be_written(tmp_path: Path) -> None:
    (tmp_path / ".luthier").write_text("a file where a folder should be")
    log = SqlAudit(Database(root=tmp_path), key=lambda: KEY, fsync=True)
    with pytest.raises(AuditError, match="cannot be used"):
        log.write(Intent(call="c", uri="mcp://bank/pay"))


def test_lines_that_must_be_on_the_disk_are_written_all_the_same(tmp_path: Path) -> None:
    database = Database(root=tmp_path)
    log = SqlAudit(database, key=lambda: KEY, fsync=True)
    log.write(Intent(call="c", uri="mcp://bank/pay"))
    log.close()
    assert len(read_audit(SqlSegments(database), KEY).records) == 2
    database.close()
