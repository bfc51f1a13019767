"""The store when others hold it for too long and when its disk is full: calls end in their time, as a no."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
import textwrap
from asyncio.subprocess import PIPE
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from luthier import Refused, Runtime
from luthier.errors import AuditError
from luthier.govern import AuditKey, read_audit
from luthier.store import Database, SqlSegments, SqlState
from luthier.testing import MemoryAudit, MemoryServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DATABASE = "kept.db"
BOUND = 30.0
"""Seconds: what the store has for an answer, SQLite's own patience, and a machine that is shared."""


def opened(root: Path, server: MemoryServer, guards: tuple[Any, ...] = (), **project: Any) -> Runtime:
    """A runtime whose audit log is not in the store, unless the project says so."""
    entry = {"command": "python", "args": ["none.py"]}
    return Runtime.open(
        {"mcpServers": {"lute": entry}, "store": f"sqlite:///{DATABASE}", **project},
        root=root,
        transports={"lute": server.transport},
        audit=None if "audit" in project else MemoryAudit(),
        guards=guards,
    )


@contextmanager
def held(root: Path) -> Iterator[None]:
    """Somebody else is writing, and does not come to an end."""
    with closing(Database(f"sqlite:///{DATABASE}", root)) as database:
        SqlState(database).put("other", "one", 1)  # there is a store
    with closing(sqlite3.connect(root / DATABASE, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield


async def test_what_needs_no_write_goes_on_while_another_process_holds_the_store(tmp_path: Path) -> None:
    server = MemoryServer("lute", {"play": "a note"})
    async with opened(tmp_path, server) as rt:
        await rt.call("mcp://lute/play")  # pins it
    async with opened(tmp_path, server) as rt:
        with held(tmp_path):
            async with asyncio.timeout(BOUND):
                assert (await rt.call("mcp://lute/play")).content == "a note"


async def test_a_first_use_that_cannot_be_pinned_in_time_is_refused_and_later_works(tmp_path: Path) -> None:
    server = MemoryServer("lute", {"play": "a note"})
    async with opened(tmp_path, server) as rt:
        with held(tmp_path):
            async with asyncio.timeout(BOUND):
                with pytest.raises(Refused) as caught:
                    await rt.call("mcp://lute/play")
            assert caught.value.rule == "guard failed: StoreError"
            assert "`luthier doctor`" in caught.value.hint or "cannot be used" in caught.value.hint
            assert server.calls == []
        async with asyncio.timeout(BOUND):
            assert (await rt.call("mcp://lute/play")).content == "a note"


async def test_what_cannot_be_audited_in_time_is_not_called(tmp_path: Path) -> None:
    server = MemoryServer("lute", {"play": "a note"})
    async with opened(tmp_path, server) as rt:
        await rt.call("mcp://lute/play")  # pins it
    server.calls.clear()
    keys = {"key_file": str(tmp_path / "key"), "checkpoints": str(tmp_path / "checkpoints")}
    async with opened(tmp_path, server, audit={"sink": "store", **keys}) as rt:
        with held(tmp_path):
            async with asyncio.timeout(BOUND):
                with pytest.raises(AuditError, match="database is locked"):
                    await rt.call("mcp://lute/play")
        assert server.calls == []


HOLDER = """
    import sqlite3, sys

    other = sqlite3.connect(sys.argv[1], isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    print(flush=True)
    sys.stdin.read()
"""


async def test_others_go_on_while_a_call_waits_for_a_log_that_another_process_holds(tmp_path: Path) -> None:
    server, began = MemoryServer("lute", {"play": "a note"}), asyncio.Event()

    async def about(call: Any, inner: Any) -> Any:
        began.set()
        return await inner(call)

    async with opened(tmp_path, server) as rt:
        await rt.call("mcp://lute/play")  # pins it
        keys = {"key_file": str(tmp_path / "key"), "checkpoints": str(tmp_path / "checkpoints")}
        audit = {"sink": "store", **keys}
        async with opened(tmp_path, server, audit=audit, guards=(about,)) as kept:
            program = ("-c", textwrap.dedent(HOLDER), str(tmp_path / DATABASE))
            holder = await asyncio.create_subprocess_exec(sys.executable, *program, stdin=PIPE, stdout=PIPE)
            assert holder.stdin is not None
            assert holder.stdout is not None
            assert await holder.stdout.readline()
            waiting = asyncio.create_task(kept.call("mcp://lute/play"))
            await began.wait()
            assert (await rt.call("mcp://lute/play")).content == "a note"
            assert not waiting.done()
            holder.stdin.close()
            async with asyncio.timeout(BOUND):
                assert (await waiting).content == "a note"
                assert await holder.wait() == 0


FULL_DISK = """
    import resource, sys
    from pathlib import Path
    from luthier.errors import AuditError, StoreError
    from luthier.govern import AuditKey, Intent
    from luthier.store import Database, SqlAudit, SqlState

    database = Database("sqlite:///kept.db", Path(sys.argv[1]))
    state, audit = SqlState(database), SqlAudit(database, key=lambda: AuditKey(bytes(range(32))))
    state.put("pins", "lute", "before")
    audit.write(Intent(call="0", uri="mcp://a/b"))
    size = max(file.stat().st_size for file in Path(sys.argv[1]).iterdir())
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + int(sys.argv[2]), resource.RLIM_INFINITY))
    try:
        state.put("pins", "lute", "x" * 5_000_000)
    except StoreError as error:
        print("store:", error.message)
    written = 0
    try:
        while True:
            audit.write(Intent(call=str(written), uri="mcp://a/b", sent="x" * 1000))
            written += 1
    except AuditError as error:
        print("audit:", written, error.message)
    print("reads:", state.get("pins", "lute"))
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    state.put("pins", "lute", "after")
    try:
        audit.write(Intent(call="after", uri="mcp://a/b"))
    except AuditError:
        print("stays failed")
"""


@pytest.mark.parametrize("room", [0, 20_000])
def test_a_full_disk_changes_nothing_stops_the_log_for_good_and_is_got_over(
    room: int, tmp_path: Path
) -> None:
    program = [sys.executable, "-c", textwrap.dedent(FULL_DISK), str(tmp_path), str(room)]
    done = subprocess.run(program, capture_output=True, text=True, timeout=50, check=True)
    store, audit, reads, last = done.stdout.splitlines()
    assert store.startswith("store: The store ")
    assert "cannot be used" in store
    written = int(audit.split()[1])
    assert reads == "reads: before"
    assert last == "stays failed"
    with closing(Database(f"sqlite:///{DATABASE}", tmp_path)) as database:
        assert SqlState(database).get("pins", "lute") == "after"
        trail = read_audit(SqlSegments(database), AuditKey(bytes(range(32))))
    assert (trail.faults, trail.torn) == ((), ())
    assert len(trail.records) == written + 2
