"""What a runtime keeps in the project's database, and which servers it finds there."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from luthier import Refused, Runtime, SpecError
from luthier.connect import MemoryState
from luthier.errors import NotFoundError, StoreError, UnresolvedReferenceError
from luthier.redaction import redact
from luthier.spec import ServerEntry
from luthier.store import Database, SqlServers, SqlState
from luthier.testing import MemoryServer
from tests.uncounted import uncounted

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

ENTRY = {"command": "python", "args": ["none.py"]}


def opened(root: Path, **project: object) -> Runtime:
    lute = MemoryServer("lute", {"play": lambda _: "la"})
    return Runtime.open(
        {"servers": {"lute": ENTRY}, **project}, root=root, transports={"lute": lute.transport}, environ={}
    )


async def play(runtime: Runtime) -> None:
    async with runtime as rt:
        assert not (await rt.call("mcp://lute/play")).is_error


async def test_what_was_learned_and_pinned_is_in_the_database(tmp_path: Path) -> None:
    await play(opened(tmp_path))
    with closing(Database(root=tmp_path)) as database:
        state = SqlState(database)
        assert [value["era"] for value in state.list("eras").values()] == ["2026-07-28"]
        assert list(state.list("pins")) == ["lute"]
        before = state.revision()
        await play(opened(tmp_path))
        assert state.revision() == before, "what is known is not written again"


async def test_the_store_of_the_project_is_used_and_its_reference_expanded(
    postgres_url: str, tmp_path: Path
) -> None:
    lute = MemoryServer("lute", {"play": lambda _: "la"})
    source: Mapping[str, object] = {"servers": {"lute": ENTRY}, "store": "${env.TEAM}"}
    await play(
        Runtime.open(
            source, root=tmp_path, transports={"lute": lute.transport}, environ={"TEAM": postgres_url}
        )
    )
    with closing(Database(postgres_url)) as database:
        assert list(SqlState(database).list("pins")) == ["lute"]
    assert not (tmp_path / ".luthier" / "luthier.db").exists()


def test_a_store_that_cannot_be_told_is_said_at_once(tmp_path: Path) -> None:
    with pytest.raises(UnresolvedReferenceError, match="variable TEAM is not set"):
        opened(tmp_path, store="${env.TEAM}")
    with pytest.raises(StoreError, match="neither the path of a SQLite file"):
        opened(tmp_path, store="${env.TEAM:-elsewhere}")


def test_the_password_of_the_store_is_a_secret(tmp_path: Path) -> None:
    opened(tmp_path, store="postgresql://me:${env.PW:-hu%2Fsh.hush}@/x")
    assert "hush" not in redact("it is hu%2Fsh.hush or hu/sh.hush")


async def test_a_project_without_a_folder_keeps_its_state_in_memory() -> None:
    runtime = Runtime.open({"servers": {"lute": ENTRY}})
    assert isinstance(runtime.state, MemoryState)
    await runtime.close()


async def test_the_file_of_earlier_versions_moves_into_the_database(tmp_path: Path) -> None:
    old = tmp_path / ".luthier" / "state.json"
    old.parent.mkdir()
    old.write_text('{"servers": {"lute:1": {"era": "2025-06-18"}}}', encoding="utf-8")
    await opened(tmp_path).close()
    assert not old.exists()
    with closing(Database(root=tmp_path)) as database:
        assert SqlState(database).get("eras", "lute:1") == {"era": "2025-06-18", "transport": ""}


async def test_a_database_that_is_broken_keeps_calls_from_being_made(tmp_path: Path) -> None:
    (tmp_path / "x.db").write_text("this is no database" * 100, encoding="utf-8")
    async with opened(tmp_path, store="sqlite:///x.db") as rt:
        with pytest.raises(Refused, match="cannot be read, so nothing is called"):
            await rt.call("mcp://lute/play")


# Servers that are registered in the database


@pytest.fixture
def registered(tmp_path: Path) -> Path:
    """A folder whose database has a good server and a faulty one."""
    with closing(Database(root=tmp_path)) as database:
        servers = SqlServers(database)
        servers.add(ServerEntry(id="lute", command="python", args=("none.py",)))
        servers.add(ServerEntry(id="harp", command="python"))
        with database.writing() as connection:
            connection.exec_driver_sql("UPDATE mcp_servers SET entry = '{\"url\": 7}' WHERE id = 'harp'")
            connection.commit()
    return tmp_path


async def test_without_a_file_the_servers_of_the_database_are_there(registered: Path) -> None:
    lute = MemoryServer("lute", {"play": lambda _: "la"})
    async with Runtime.open(root=registered, transports={"lute": lute.transport}) as rt:
        assert (await rt.call("mcp://lute/play")).content == "la"
        with pytest.raises(
            SpecError, match=r"row 'harp' of mcp_servers in .*: servers\.harp\.url: `url` must be text"
        ):
            await rt.call("mcp://harp/play")
        with pytest.raises(SpecError, match="row 'harp'"):
            await rt.connect("harp")
        with pytest.raises(NotFoundError):
            await rt.call("mcp://drum/play")


async def test_the_file_is_what_counts_where_there_is_one(registered: Path) -> None:
    (registered / "luthier.yaml").write_text("servers: {drum: {command: uvx}}\n", encoding="utf-8")
    runtime = Runtime.open(registered)
    assert list(runtime.project.servers) == ["drum"]
    assert runtime.project.broken == {}
    await runtime.close()


def luthier(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "luthier", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )


def test_the_commands_know_the_servers_of_the_database(registered: Path) -> None:
    done = luthier(registered, "servers", "list", "--json")
    assert '"lute"' in done.stdout
    assert "row 'harp' of mcp_servers" in done.stderr
    assert done.returncode == 2
    done = luthier(registered, "servers", "show", "harp")
    assert "`url` must be text" in done.stderr
    assert done.returncode == 2
    assert luthier(registered, "servers", "add", "drum", "--command", "uvx", "--arg", "drum").returncode == 0
    assert luthier(registered, "servers", "remove", "harp").returncode == 0
    with closing(sqlite3.connect(registered / ".luthier" / "luthier.db")) as connection:
        found = connection.execute("SELECT id FROM mcp_servers ORDER BY id").fetchall()
    assert found == [("drum",), ("lute",)]


def test_a_look_into_the_store_loads_no_sqlalchemy(registered: Path) -> None:
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from luthier import Runtime\n"
        "rt = Runtime.open(root=Path())\n"
        "assert list(rt.project.servers) == ['lute']\n"
        "assert rt.state.get('pins', 'lute') is None and rt.state.revision() > 0\n"
        "print({'sqlalchemy', 'alembic', 'psycopg'} & set(sys.modules))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=registered, capture_output=True, text=True, timeout=50, check=False,
        env=uncounted(),
    )  # fmt: skip
    assert (done.stdout.strip(), done.stderr) == ("set()", "")


# A store that several projects share


@pytest.mark.parametrize("said", ["name: {}\n", ""])
async def test_two_projects_with_one_store_do_not_pin_over_each_other(tmp_path: Path, said: str) -> None:
    projects = []
    for name, tool in (("here", "play"), ("there", "sing")):
        (tmp_path / name).mkdir()
        file = tmp_path / name / "luthier.yaml"
        file.write_text(
            f"{said}store: sqlite:///../shared.db\nservers: {{lute: {{command: python, args: [x.py]}}}}\n"
        )
        lute = MemoryServer("lute", {tool: lambda _: "la"})
        projects.append((file, lute, f"mcp://lute/{tool}"))
    for _ in range(2):
        for file, lute, uri in projects:
            async with Runtime.open(file, transports={"lute": lute.transport}, environ={}) as rt:
                assert (await rt.call(uri)).content == "la"
                assert list(rt.state.list("pins")) == ["lute"]
    with closing(Database("sqlite:///shared.db", tmp_path)) as database:
        assert len(SqlState(database).list("pins")) == 2
