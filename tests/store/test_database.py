"""The database: made for its owner only, brought up to date once, never torn, and clear about its faults."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing, suppress
from typing import TYPE_CHECKING

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from luthier.errors import SpecError, StoreError
from luthier.spec import ServerEntry
from luthier.store import DEFAULT, Database, SqlServers, SqlState
from luthier.store.address import Address
from luthier.store.schema import VERSIONS
from luthier.store.sql import MIGRATIONS, TABLES, SqlEngine, upgrade
from tests.store.writers import count, write_forever

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SPAWN = multiprocessing.get_context("spawn")
GIT = ServerEntry(id="git", name="git", command="uvx")


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest) -> str:
    return DEFAULT if request.param == "sqlite" else str(request.getfixturevalue("postgres_url"))


@pytest.fixture
def database(url: str, tmp_path: Path) -> Iterator[Database]:
    database = Database(url, tmp_path)
    yield database
    database.close()


# Made and brought up to date


def test_looking_makes_nothing(tmp_path: Path) -> None:
    database = Database(root=tmp_path)
    assert SqlState(database).get("pins", "git") is None
    assert SqlState(database).revision() == 0
    assert SqlServers(database).load().entries == {}
    assert list(tmp_path.iterdir()) == []


def test_the_files_are_their_owners_only(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with closing(Database(root=tmp_path)) as database:
            SqlState(database).put("pins", "git", 1)
            files = list((tmp_path / ".luthier").iterdir())
            assert {file.stat().st_mode & 0o777 for file in files} == {0o600}
            assert {file.name for file in files} == {"luthier.db", "luthier.db-wal", "luthier.db-shm"}
    finally:
        os.umask(before)
    assert [file.name for file in (tmp_path / ".luthier").iterdir()] == ["luthier.db"]


def test_sqlite_logs_ahead_and_takes_turns(tmp_path: Path) -> None:
    with closing(Database(root=tmp_path)) as database, database.writing() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert connection.exec_driver_sql("PRAGMA busy_timeout").scalar() == 10_000


def test_a_new_file_that_another_process_writes_is_waited_for(tmp_path: Path) -> None:
    file = tmp_path / "new.db"
    file.touch()
    with closing(sqlite3.connect(file)) as other, closing(Database("sqlite:///new.db", tmp_path)) as database:
        other.executescript("BEGIN IMMEDIATE")
        writing = threading.Thread(target=SqlState(database).put, args=("pins", "git", 1))
        writing.start()
        writing.join(0.3)
        assert writing.is_alive()
        other.rollback()
        writing.join()
        assert SqlState(database).get("pins", "git") == 1


def test_reading_sees_what_another_wrote_and_so_does_the_revision(url: str, tmp_path: Path) -> None:
    with closing(Database(url, tmp_path)) as one, closing(Database(url, tmp_path)) as other:
        mine, theirs = SqlState(one), SqlState(other)
        assert mine.revision() == 0
        theirs.put("pins", "git", 1)
        assert mine.get("pins", "git") == 1
        before = mine.revision()
        SqlServers(other).add(GIT)
        assert mine.revision() > before


def test_what_was_closed_is_opened_again(database: Database) -> None:
    state = SqlState(database)
    state.put("pins", "git", 1)
    database.close()
    assert state.get("pins", "git") == 1


def test_the_scripts_make_the_tables_that_the_code_makes(url: str, tmp_path: Path) -> None:
    address = Address.of(url.replace(".luthier/", ""), tmp_path)
    engine = sa.create_engine(address.url or f"sqlite:///{address.file}")
    with engine.begin() as connection:
        upgrade(connection)
        assert compare_metadata(MigrationContext.configure(connection), TABLES) == []
    engine.dispose()
    with closing(Database(url.replace(".luthier/", ""), tmp_path)) as database:
        assert SqlState(database).revision() == 0
        SqlState(database).put("pins", "git", 1)
        assert SqlState(database).revision() == 1
    scripts = ScriptDirectory(str(MIGRATIONS))
    assert tuple(script.revision for script in scripts.walk_revisions())[::-1] == VERSIONS


def test_what_the_scripts_have_not_done_yet_is_done_by_them(url: str, tmp_path: Path) -> None:
    address = Address.of(url.replace(".luthier/", ""), tmp_path)
    engine = sa.create_engine(address.url or f"sqlite:///{address.file}")
    with engine.begin() as connection:
        connection.execute(sa.text("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)"))
    engine.dispose()
    with closing(Database(url.replace(".luthier/", ""), tmp_path)) as database:
        SqlState(database).put("pins", "git", 1)
        assert SqlState(database).get("pins", "git") == 1


def test_tables_of_a_later_version_are_not_touched(database: Database, url: str, tmp_path: Path) -> None:
    SqlState(database).put("pins", "git", 1)
    with database.writing() as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '9999'"))
        connection.commit()
    with closing(Database(url, tmp_path)) as again:
        state = SqlState(again)
        for use in (lambda: state.get("a", "b"), lambda: state.put("a", "b", 1), state.revision):
            with pytest.raises(StoreError, match=r"are of version 9999, and this Luthier .* pip install"):
                use()


def test_tables_that_are_half_made_are_made_whole(url: str, tmp_path: Path) -> None:
    file = tmp_path / ".luthier" / "luthier.db"
    file.parent.mkdir()
    file.touch()
    with closing(Database(url, tmp_path)) as database:
        assert SqlState(database).list("pins") == {}
        SqlState(database).put("pins", "git", 1)
        assert SqlState(database).list("pins") == {"git": 1}


# Rows that are faulty


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "row 'bad' of mcp_servers in the store .*: this is not JSON"),
        ("[]", "row 'bad' of mcp_servers in the store .*: servers.bad: the server `bad` must be a mapping"),
        ('{"command": 1}', "servers.bad.command: `command` must be text"),
        ('{"command": "uvx", "odd": 1}', "unknown key `odd`"),
    ],
)
def test_a_faulty_row_costs_itself_only_and_says_what_is_wrong(
    database: Database, text: str, said: str
) -> None:
    store = SqlServers(database)
    store.add(GIT)
    store.add(ServerEntry(id="bad", command="uvx"))
    with database.writing() as connection:
        connection.execute(sa.text("UPDATE mcp_servers SET entry = :text WHERE id = 'bad'"), {"text": text})
        connection.commit()
    found = store.load()
    assert found.entries == {"git": GIT}
    for get in (store.get, found.get):
        with pytest.raises(SpecError, match=said):
            get("bad")
    store.replace(ServerEntry(id="bad", name="bad", command="npx"))
    assert list(store.load().entries) == ["git", "bad"]


# Several processes


def test_concurrent_writers_lose_nothing_from_the_first_on(url: str, tmp_path: Path) -> None:
    writers = [SPAWN.Process(target=count, args=(url, tmp_path, number)) for number in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(50)
    assert [writer.exitcode for writer in writers] == [0, 0, 0]
    with closing(Database(url, tmp_path)) as database:
        assert SqlState(database).get("counts", "all") == 24
        assert len(SqlServers(database).load().entries) == 24


def test_a_writer_that_is_killed_leaves_a_store_that_can_be_read_and_written(
    url: str, tmp_path: Path
) -> None:
    writer = SPAWN.Process(target=write_forever, args=(url, tmp_path))
    writer.start()
    with closing(Database(url, tmp_path)) as database:
        state = SqlState(database)
        while state.revision() < 3:  # bounded by the time of a test
            os.sched_yield()
        os.kill(writer.pid or 0, signal.SIGKILL)
        writer.join(10)
        text, number = state.get("counts", "big") or ("", 0)
        assert (len(text), number >= 3) == (100_000, True)
        state.put("counts", "big", 1)
        assert state.get("counts", "big") == 1


# What cannot be used


def test_a_folder_that_cannot_be_made_is_told_of(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    state = SqlState(Database("sqlite:///file/x/luthier.db", tmp_path))
    assert state.get("pins", "git") is None
    with pytest.raises(
        StoreError, match=r"The store .*/file/x/luthier\.db cannot be used: Not a directory\. See"
    ):
        state.put("pins", "git", 1)


def test_a_file_that_is_no_database_is_told_of(tmp_path: Path) -> None:
    (tmp_path / "x.db").write_text("this is a text and no database\n" * 100, encoding="utf-8")
    state = SqlState(Database("sqlite:///x.db", tmp_path))
    for use in (lambda: state.get("a", "b"), lambda: state.put("a", "b", 1), state.revision):
        with pytest.raises(StoreError, match=r"x\.db cannot be used: file is not a database"):
            use()


def test_a_folder_in_the_place_of_the_file_is_told_of(tmp_path: Path) -> None:
    (tmp_path / "x.db").mkdir()
    with pytest.raises(StoreError, match="cannot be used: unable to open database file"):
        SqlState(Database("sqlite:///x.db", tmp_path)).get("a", "b")


def test_a_write_that_fails_says_why_and_changes_nothing(database: Database) -> None:
    state = SqlState(database)
    state.put("pins", "git", 1)
    before = state.revision()
    with database.writing() as connection:
        connection.execute(sa.text("ALTER TABLE state RENAME TO other"))
        connection.commit()
    with pytest.raises(StoreError, match="cannot be used: ") as caught:
        state.put("pins", "git", "a value that is nobody's business")
    assert "nobody" not in str(caught.value)
    assert state.revision() == before + 1


def test_a_server_that_is_not_there_is_told_of_without_the_password(tmp_path: Path) -> None:
    database = Database(f"postgresql://me:hush@/team?host={tmp_path}", tmp_path)
    with pytest.raises(StoreError, match=r"postgresql:///team cannot be used: .*No such file") as caught:
        SqlState(database).get("a", "b")
    assert "hush" not in f"{caught.value} {caught.value.hint} {database.address.shown}"


WITHOUT_DRIVER = """
import sys
import threading
sys.modules["psycopg"] = None
from pathlib import Path
from luthier.store import Database, SqlState
SqlState(Database("postgresql://me@localhost/team", Path())).get("a", "b")
"""


def test_a_driver_that_is_missing_is_named_with_the_command_that_installs_it() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_DRIVER], capture_output=True, text=True, timeout=50, check=False
    )
    assert "StoreError" in done.stderr
    assert "Run: pip install 'luthier[postgres]'" in done.stderr


# Addresses


@pytest.mark.parametrize(
    ("url", "file"),
    [
        (DEFAULT, "/house/.luthier/luthier.db"),
        ("sqlite:////var/lib/x.db", "/var/lib/x.db"),
        ("sqlite:///a b/ü%20.db", "/house/a b/ü%20.db"),
    ],
)
def test_a_path_is_relative_to_the_project(url: str, file: str, tmp_path: Path) -> None:
    assert str(Address.of(url, tmp_path.__class__("/house")).file) == file


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+psycopg"])
def test_postgresql_is_spoken_to_with_psycopg(scheme: str, tmp_path: Path) -> None:
    address = Address.of(f"{scheme}://me:hush@db.example:5433/team", tmp_path)
    assert address.url == "postgresql+psycopg://me:hush@db.example:5433/team"
    assert address.shown == "the store postgresql://db.example/team"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql:///team?host=/run/x", "the store postgresql:///team"),
        ("postgresql://[::1/team", "the store in PostgreSQL"),
    ],
)
def test_a_store_is_shown_without_what_may_be_secret(url: str, shown: str, tmp_path: Path) -> None:
    assert Address.of(url, tmp_path).shown == shown


def test_the_home_of_nobody_is_a_folder_of_the_project(tmp_path: Path) -> None:
    assert Address.of("sqlite:///~nobody-here/x.db", tmp_path).file == tmp_path / "~nobody-here" / "x.db"


@pytest.mark.parametrize(
    "url",
    ["", "luthier.db", "mysql://x/y", "sqlite://", "sqlite:///:memory:", "sqlite:///a?b=c", "sqlite:///a\0b"],
)
def test_what_is_no_address_is_told_of(url: str, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="neither the path of a SQLite file nor the URL of PostgreSQL"):
        Address.of(url, tmp_path)


@pytest.mark.parametrize("url", ["postgresql://[::1]:port/team", "postgresql://db.example:port/team"])
def test_a_url_that_cannot_be_read_is_told_of(url: str, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be used: its URL cannot be read"):
        SqlEngine(Address.of(url, tmp_path))


def test_a_path_of_any_name_is_that_file(tmp_path: Path) -> None:
    with closing(Database("sqlite:///a b/ü%20#?.db".replace("?", ""), tmp_path)) as database:
        SqlState(database).put("a", "b", 1)
        assert SqlState(database).get("a", "b") == 1
    with closing(sqlite3.connect(tmp_path / "a b" / "ü%20#.db")) as connection:
        assert connection.execute("SELECT value FROM state").fetchall() == [("1",)]


def test_who_closes_it_waits_for_what_is_being_read_and_leaves_no_connection(
    url: str, tmp_path: Path
) -> None:
    database = Database(url, tmp_path)
    state = SqlState(database)
    state.put("pins", "git", {})
    stop = threading.Event()
    seen: list[object] = []

    def read() -> None:
        while not stop.is_set():
            with suppress(StoreError):  # it was closed between two steps
                seen.append(state.get("pins", "git"))

    reader = threading.Thread(target=read)
    reader.start()
    for _ in range(20):
        database.close()
    stop.set()
    reader.join(timeout=30)
    database.close()
    gc.collect()  # a connection that nobody closed would be told of here, and fail the test
    assert seen
    assert all(value == {} for value in seen)
