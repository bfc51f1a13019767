"""The reference servers for Node: everything, filesystem, memory. They speak 2025-11-25 only."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from typing import TYPE_CHECKING, Any

import pytest

from luthier.errors import ConnectionLostError
from luthier.events import CallProgressed
from tests.faults.bench import LEGACY, Bench, lives, marked, until
from tests.servers_real.street import COMMANDS, NODE_SERVERS, node, spoken

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# Node is no part of what Luthier needs: scripts/test installs these servers where it finds Node and npm.
pytestmark = pytest.mark.skipif(not NODE_SERVERS, reason="LUTHIER_NODE_SERVERS is not set: no Node here")


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    found = Bench(tmp_path, "plain")
    yield found
    found.kill_leftovers()


@pytest.mark.parametrize("pin", [None, LEGACY], ids=["auto", "pinned-legacy"])
async def test_everything_is_understood(bench: Bench, pin: str | None) -> None:
    entry = node(bench, "everything", "stdio", env={"OWN": "mine"}, protocol=pin, tool_timeout_ms=900)
    async with bench.house(bench.read(entry, id="all"), allowed_commands=COMMANDS) as house:
        # It tells of a changed list right after the connection stands.
        assert {"echo", "get-sum", "get-tiny-image"} <= set(await house.names("all"))
        assert (await house.call("echo", server="all", message="hello ☃")).content == "Echo: hello ☃"

        # Structured output, and every kind of block.
        weather = await house.call("get-structured-content", server="all", location="New York")
        assert weather.notes == ()
        assert {"temperature", "conditions", "humidity"} <= set(weather.content)
        image = await house.call("get-tiny-image", server="all")
        assert "image" in [block["type"] for block in image.blocks]
        links = await house.call("get-resource-links", server="all", count=3)
        assert [block["type"] for block in links.blocks].count("resource_link") == 3
        inside = await house.call("get-resource-reference", server="all", resourceType="Text", resourceId=1)
        assert "resource" in [block["type"] for block in inside.blocks]
        annotated = await house.call(
            "get-annotated-message", server="all", messageType="error", includeImage=True
        )
        assert annotated.blocks[0]["annotations"]["priority"] == 1

        # Its own error, the environment, and progress beyond the plain time of a call.
        wrong = await house.call("get-sum", server="all", a="one", b=2)
        assert wrong.is_error
        env = (await house.call("get-env", server="all")).content
        assert env["OWN"] == "mine"
        long = await house.call("trigger-long-running-operation", server="all", duration=1.6, steps=4)
        assert not long.is_error
        assert [event.progress for event in house.watcher.of(CallProgressed)] == [1, 2, 3, 4]
        assert spoken(house) == [LEGACY]


async def test_filesystem_keeps_to_its_folder(bench: Bench) -> None:
    folder = bench.root / "files"
    folder.mkdir()
    servers = {"fs": node(bench, "filesystem", str(folder))}
    project = {"mcpServers": servers, "allowed_commands": list(COMMANDS)}
    async with bench.runtime(project=project) as rt:
        path = folder / "a.txt"
        written = await rt.call("mcp://fs/write_file", path=str(path), content="one\u2028line\n")
        assert not written.is_error, written.content
        assert path.read_text(encoding="utf-8") == "one\u2028line\n"
        read = await rt.call("mcp://fs/read_text_file", path=str(path), head=None)
        assert read.structured == {"content": "one\u2028line\n"}
        assert read.reply.notes == ()
        outside = await rt.call("mcp://fs/read_text_file", path="/etc/hostname")
        assert outside.is_error


def entity(name: str) -> dict[str, Any]:
    return {"entities": [{"name": name, "entityType": "thing", "observations": ["seen"]}]}


def remembered(file: Path) -> list[str]:
    """The names of all entities in the server's file, doubles and all."""
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    return [json.loads(line)["name"] for line in lines if line]


async def test_memory_gets_each_write_once_and_one_at_a_time(bench: Bench) -> None:
    file = bench.root / "memory.jsonl"
    entry = node(bench, "memory", env={"MEMORY_FILE_PATH": str(file)}, max_concurrent_calls=1)
    async with bench.house(bench.read(entry, id="memory"), allowed_commands=COMMANDS) as house:
        # It reads and writes its file without a lock: what comes at once is lost unless it is let in singly.
        names = [f"n{n}" for n in range(12)]
        await asyncio.gather(
            *(house.call("create_entities", server="memory", **entity(name)) for name in names)
        )
        assert sorted(remembered(file)) == sorted(names)
        graph = await house.call("read_graph", server="memory")
        assert len(graph.content["entities"]) == len(names)
        assert graph.notes == ()


async def test_a_write_that_was_lost_is_not_written_behind_ones_back(bench: Bench) -> None:
    file = bench.root / "memory.jsonl"
    entry = node(bench, "memory", env={"MEMORY_FILE_PATH": str(file)})
    async with bench.house(bench.read(entry, id="memory"), allowed_commands=COMMANDS) as house:
        await house.call("create_entities", server="memory", **entity("before"))
        (first,) = marked(bench.mark)
        os.kill(first, signal.SIGSTOP)  # the request is sent, and never read
        call = asyncio.create_task(house.call("create_entities", server="memory", **entity("lost")))
        await asyncio.sleep(0)
        os.kill(first, signal.SIGKILL)
        with pytest.raises(ConnectionLostError) as raised:
            await call
        assert raised.value.sent
        await until(lambda: not lives(first), what="the killed server is gone")
        await house.call("create_entities", server="memory", **entity("after"))
        assert remembered(file) == ["before", "after"]
        assert len(list(marked(bench.mark))) == 1
