"""Real servers from PyPI, in both eras: time, git and fetch."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from luthier.errors import ConnectionLostError
from tests.faults.bench import LEGACY, MODERN, Bench, lives, marked, until
from tests.servers_real.street import COMMANDS, ERAS, fields, spoken

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

era = pytest.mark.parametrize(("pin", "speaks"), ERAS.values(), ids=ERAS)
fewer = pytest.mark.parametrize("pin", [LEGACY, None], ids=["pinned-legacy", "auto"])  # they start slowly


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    found = Bench(tmp_path, "plain")
    yield found
    found.kill_leftovers()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with two commits and one file that is not added."""
    folder = tmp_path / "repository"
    folder.mkdir()

    def git(*arguments: str) -> None:
        name = ["-c", "user.name=Ann", "-c", "user.email=ann@example.com", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", *name, *arguments], cwd=folder, check=True, capture_output=True, timeout=20)

    git("init", "--initial-branch=main")
    for name in ("one", "two"):
        (folder / name).write_text(name)
        git("add", name)
        git("commit", "--message", f"Add {name}")
    (folder / "three").write_text("three")
    return folder


def project(bench: Bench, **servers: dict[str, Any]) -> dict[str, Any]:
    return {"mcpServers": servers, "allowed_commands": list(COMMANDS)}


@era
async def test_time_lists_answers_structured_and_refuses_what_it_does_not_know(
    bench: Bench, pin: str | None, speaks: str
) -> None:
    entry = bench.read(fields(bench, "mcp-server-time", "--local-timezone", "UTC", protocol=pin), id="time")
    async with bench.house(entry, allowed_commands=COMMANDS) as house:
        manifest = await house.manifest("time")
        assert [tool.name for tool in manifest.tools] == ["get_current_time", "convert_time"]
        assert all(tool.output_schema for tool in manifest.tools)
        now = await house.call("get_current_time", server="time", timezone="Europe/Berlin")
        assert now.content["timezone"] == "Europe/Berlin"
        assert now.notes == ()
        cities = ("Asia/Tokyo", "America/Lima", "Africa/Nairobi")
        at_once = await asyncio.gather(
            *(house.call("get_current_time", server="time", timezone=city) for city in cities)
        )
        assert [reply.content["timezone"] for reply in at_once] == list(cities)
        unknown = await house.call("get_current_time", server="time", timezone="Nowhere/Atlantis")
        assert unknown.is_error
        assert "Nowhere/Atlantis" in unknown.blocks[0]["text"]
        assert spoken(house) == [speaks]


async def test_a_killed_server_fails_the_call_in_hand_and_is_started_again(bench: Bench) -> None:
    entry = bench.read(fields(bench, "mcp-server-time", "--local-timezone", "UTC"), id="time")
    async with bench.house(entry, allowed_commands=COMMANDS) as house:
        assert not (await house.call("get_current_time", server="time", timezone="UTC")).is_error
        (first,) = marked(bench.mark)
        os.kill(first, signal.SIGSTOP)
        call = asyncio.create_task(house.call("get_current_time", server="time", timezone="UTC"))
        await asyncio.sleep(0)
        os.kill(first, signal.SIGKILL)
        with pytest.raises(ConnectionLostError) as raised:
            await call
        assert raised.value.exit_status == -signal.SIGKILL
        await until(lambda: not lives(first), what="the killed server is gone")
        assert not (await house.call("get_current_time", server="time", timezone="UTC")).is_error
        (second,) = marked(bench.mark)
        assert second != first


@fewer
async def test_git_reads_a_repository_through_the_gate(
    bench: Bench, repository: Path, pin: str | None
) -> None:
    entry = fields(bench, "mcp-server-git", "--repository", str(repository), protocol=pin)
    async with bench.runtime(project=project(bench, git=entry)) as rt:
        path = str(repository)
        log = await rt.call("mcp://git/git_log", repo_path=path, max_count=None)  # the server refuses a null
        assert not log.is_error, log.content
        assert "Add one" in str(log.content)
        assert "Add two" in str(log.content)
        last = await rt.call("mcp://git/git_log", repo_path=path, max_count=1)
        assert "Add one" not in str(last.content)
        status = await rt.call("mcp://git/git_status", repo_path=path)
        assert "three" in str(status.content)
        added = await rt.call("mcp://git/git_add", repo_path=path, files='["three"]')  # text, for an array
        assert not added.is_error, added.content
        nowhere = await rt.call("mcp://git/git_status", repo_path=str(repository.parent))
        assert nowhere.is_error


@fewer
async def test_fetch_refuses_loopback_as_its_own_error(bench: Bench, pin: str | None) -> None:
    entry = bench.read(fields(bench, "mcp-server-fetch", protocol=pin), id="fetch")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/secret"
        async with bench.house(entry, allowed_commands=COMMANDS) as house:
            reply = await house.call("fetch", server="fetch", url=url)
            assert reply.is_error
            assert reply.blocks[0]["text"]
            assert spoken(house) == [pin or MODERN]
        with pytest.raises(BlockingIOError):
            listener.accept()
