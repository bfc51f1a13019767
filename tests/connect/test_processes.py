"""The manager over real processes: launched from entries, crashing, silent, stubborn, and always ended."""

from __future__ import annotations

import asyncio
import json
import os
import time
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from luthier.connect import ConnectionManager, MemoryState, ServerRegistry, StoredLearned
from luthier.errors import CallTimeoutError, ConnectError, ConnectionLostError
from luthier.events import Observers, ServerFailed, ServerNoise, ServerReady, ServerStopped
from luthier.spec import ServerEntry
from tests.connect.kit import Notebook, call, wanted
from tests.faults.bench import Journal, until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

ROOT = Path(__file__).parent.parent.parent
ENVIRON = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}


def faulty(id: str, mode: str, *arguments: str, **fields: Any) -> ServerEntry:
    args = ("-m", "tests.faults.faulty_stdio", mode, *arguments)
    return ServerEntry(id=id, command="python", args=args, **{"max_retries": 0, "timeout": 20.0, **fields})


@asynccontextmanager
async def managing(
    *entries: ServerEntry, notebook: Notebook | None = None, **options: Any
) -> AsyncIterator[ConnectionManager]:
    manager = ConnectionManager(
        ServerRegistry(entries, root=ROOT),
        observers=Observers([notebook] if notebook else []),
        **{"environ": ENVIRON, **options},
    )
    try:
        yield manager
    finally:
        await manager.close_all()


async def pid(manager: ConnectionManager, server: str) -> int:
    return int(str((await call(manager, wanted(server, "pid"))).content))


async def comes_true(condition: Callable[[], Awaitable[bool]]) -> bool:
    """Whether it holds within 10 s."""
    for _ in range(1000):
        if await condition():
            return True
        await asyncio.sleep(0.01)
    return False


async def gone(process: int) -> bool:
    """Whether the process ends within 10 s; who only waits to be reaped has ended."""

    async def ended() -> bool:
        return not is_running(process)

    return await comes_true(ended)


def is_running(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


async def test_a_server_is_started_from_its_entry_with_its_own_environment_and_folder(tmp_path: Path) -> None:
    entry = faulty("git", "environment", "--flag", env={"TOKEN": "${SECRET}"})
    async with managing(entry, environ={**ENVIRON, "SECRET": "canary", "OTHER": "x"}) as manager:
        reply = await call(manager, wanted("git", "act"))
    seen = reply.content
    assert seen["args"] == ["--flag"]
    assert seen["cwd"] == str(ROOT)
    assert seen["env"]["TOKEN"] == "canary"
    assert not {"SECRET", "OTHER"} & set(seen["env"])
    assert set(seen["env"]) <= {"TOKEN", *ENVIRON, "LC_CTYPE"}


async def test_an_unset_reference_fails_its_server_alone() -> None:
    async with managing(
        faulty("broken", "plain", env={"TOKEN": "${env.NO_SUCH_VARIABLE}"}), faulty("good", "plain")
    ) as manager:
        with pytest.raises(ConnectError, match="NO_SUCH_VARIABLE"):
            await manager.manifest("broken")
        assert await pid(manager, "good") > 0


async def test_a_server_that_dies_at_its_start_is_one_readable_error_with_status_and_last_words() -> None:
    async with managing(faulty("lute", "exit_at_start")) as manager:
        with pytest.raises(ConnectError) as caught:
            await manager.manifest("lute")
    error = caught.value
    assert (error.server, error.exit_status) == ("lute", 3)
    assert "unable to open database file" in error.stderr_tail


async def test_a_server_that_dies_at_its_first_starts_is_started_again(tmp_path: Path) -> None:
    notebook = Notebook()
    journal = {"FAULTY_JOURNAL": str(tmp_path / "journal")}
    entry = faulty("lute", "crash_loop", "4", max_retries=3, env=journal)
    async with managing(entry, notebook=notebook) as manager:
        assert await pid(manager, "lute") > 0
    failures = notebook.of(ServerFailed)
    assert failures
    assert all(failure.retry_in is not None and failure.retry_in <= 1.0 for failure in failures)


async def test_a_server_that_never_says_a_word_is_given_up_in_its_time_and_ended() -> None:
    async with managing(faulty("lute", "silent_start", timeout=0.5)) as manager:
        began = time.monotonic()
        with pytest.raises(ConnectError, match="did not answer within"):
            await manager.manifest("lute")
        assert time.monotonic() - began < 10


async def test_a_server_that_crashes_in_a_call_fails_it_at_once_and_is_started_again_for_the_next() -> None:
    notebook = Notebook()
    async with managing(faulty("lute", "dies_in_call"), notebook=notebook) as manager:
        first = await pid(manager, "lute")
        began = time.monotonic()
        with pytest.raises(ConnectionLostError) as caught:
            await call(manager, wanted("lute", "act"))
        assert time.monotonic() - began < 10
        assert caught.value.sent
        assert "out of cheese" in caught.value.stderr_tail
        assert await pid(manager, "lute") != first
    assert len(notebook.of(ServerReady)) == 2


async def test_calls_are_many_at_once_and_no_more_than_the_server_can_take() -> None:
    async with managing(faulty("one", "crowd", max_concurrent_calls=3), faulty("all", "crowd")) as manager:
        for server, most in (("one", 3), ("all", 20)):
            calls = [call(manager, wanted(server, "act", id=str(number))) for number in range(20)]
            replies = await asyncio.gather(*calls)
            assert max(int(str(reply.content)) for reply in replies) <= most
            if server == "one":
                assert max(int(str(reply.content)) for reply in replies) == most


async def test_a_stuck_call_ends_in_its_time_and_the_server_goes_on() -> None:
    async with managing(faulty("lute", "waits_for_release")) as manager:
        await manager.manifest("lute")
        with pytest.raises(CallTimeoutError) as caught:
            await call(manager, wanted("lute", "act", timeout=0.3))
        assert caught.value.sent
        assert await pid(manager, "lute") > 0


async def test_what_is_no_message_is_told_as_noise_and_costs_nothing() -> None:
    notebook = Notebook()
    async with managing(faulty("lute", "banner"), notebook=notebook) as manager:
        assert await pid(manager, "lute") > 0
    assert notebook.of(ServerNoise)


async def test_a_server_that_grows_is_read_again_and_a_broken_list_costs_no_known_tool() -> None:
    notebook = Notebook()
    async with managing(faulty("lute", "changing", protocol="2025-11-25"), notebook=notebook) as manager:
        await call(manager, wanted("lute", "grow"))

        async def grown() -> bool:
            return (await manager.manifest("lute")).find("grown0") is not None

        assert await comes_true(grown)
        assert (await call(manager, wanted("lute", "grown0"))).content == "grown"
        await call(manager, wanted("lute", "break_list"))

        async def kept() -> bool:
            await manager.manifest("lute")
            return any("old one is kept" in event.message for event in notebook.of(ServerNoise))

        assert await comes_true(kept)
        assert (await call(manager, wanted("lute", "grown0"))).content == "grown"


async def test_a_bad_definition_is_dropped_with_a_reason_and_the_rest_is_kept() -> None:
    notebook = Notebook()
    async with managing(faulty("lute", "bad_tools"), notebook=notebook) as manager:
        manifest = await manager.manifest("lute")
    assert manifest.find("pid") is not None
    assert manifest.dropped
    assert any("was dropped" in event.message for event in notebook.of(ServerNoise))


async def test_the_era_is_learned_so_that_the_next_start_does_not_ask(tmp_path: Path) -> None:
    state = MemoryState()
    for _ in range(2):
        learned = StoredLearned(state)
        async with managing(faulty("lute", "plain"), learned=learned) as manager:
            await manager.connect("lute")
        learned.save()
    assert list(state.list("eras").values())


@pytest.mark.parametrize("mode", ["plain", "ignore_eof", "ignore_term", "grandchild"])
async def test_closing_ends_every_server_within_its_bound_however_stubborn(mode: str, tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    notebook = Notebook()
    entry = faulty("lute", mode, env={"FAULTY_JOURNAL": str(journal)})
    async with managing(entry, notebook=notebook) as manager:
        process = await pid(manager, "lute")
        began = time.monotonic()
        await manager.close_all()
        assert time.monotonic() - began < 8.5
        assert await gone(process)
    notes = [json.loads(line) for line in journal.read_text().splitlines()] if journal.exists() else []
    workers = [note["worker"] for note in notes if "worker" in note]
    assert len(workers) == (1 if mode == "grandchild" else 0)
    for worker in workers:
        assert await gone(worker)
    assert [event.reason for event in notebook.of(ServerStopped)] == [""]


async def test_closing_ends_while_servers_start_wait_crash_and_hang_all_at_once(tmp_path: Path) -> None:
    journals = {id: Journal(tmp_path / id) for id in ("silent0", "silent1", "stuck")}
    env = {id: {"FAULTY_JOURNAL": str(journal.path)} for id, journal in journals.items()}
    notebook = Notebook()
    entries = [
        *(faulty(id, "silent_start", env=env[id]) for id in ("silent0", "silent1")),
        *(faulty(f"dying{n}", "exit_at_start", max_retries=10) for n in range(2)),
        faulty("stubborn", "ignore_term"),
        faulty("stuck", "waits_for_release", env=env["stuck"]),
    ]
    async with managing(*entries, notebook=notebook) as manager:
        stuck = asyncio.create_task(call(manager, wanted("stuck", "act")))
        process = await pid(manager, "stubborn")
        starting = [
            asyncio.create_task(manager.manifest(entry.id))
            for entry in entries
            if entry.id.startswith(("silent", "dying"))
        ]
        await journals["stuck"].called("act")
        await until(lambda: all(journal.starts() for journal in journals.values()))
        await until(lambda: {event.server for event in notebook.of(ServerFailed)} == {"dying0", "dying1"})
        began = time.monotonic()
        await manager.close_all()
        assert time.monotonic() - began < 10
        for task in (stuck, *starting):
            assert isinstance(task.exception(), ConnectError | ConnectionLostError)
        assert await gone(process)
        assert {manager.state(entry.id) for entry in entries} == {"closed"}


async def test_reconnecting_starts_another_process_and_ends_the_first() -> None:
    async with managing(faulty("lute", "plain")) as manager:
        first = await pid(manager, "lute")
        await manager.reconnect("lute")
        assert await gone(first)
        assert await pid(manager, "lute") != first


async def test_a_call_that_is_cancelled_is_cancelled_at_the_server_and_the_next_one_works(
    tmp_path: Path,
) -> None:
    journal = Journal(tmp_path / "journal")
    entry = faulty("lute", "waits_for_release", env={"FAULTY_JOURNAL": str(journal.path)})
    async with managing(entry) as manager:
        await manager.manifest("lute")
        stuck = asyncio.create_task(call(manager, wanted("lute", "act")))
        await journal.called("act")
        stuck.cancel()
        with pytest.raises(asyncio.CancelledError):
            await stuck
        (asked,) = journal.heard("tools/call")
        (told,) = await journal.hears("notifications/cancelled")
        assert told["params"]["requestId"] == asked["id"]
        assert await pid(manager, "lute") > 0
