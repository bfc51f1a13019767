"""Servers by HTTP and hosts of ours, killed under a call: no hang, no second write, well afterwards."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from typing import TYPE_CHECKING

import pytest

from luthier.errors import ConnectionLostError, WireError
from tests.faults.bench import LEGACY, MODERN, Bench, until
from tests.peers.standing import SERVERS, free_port, standing

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("transport", "protocol"),
    [("json", LEGACY), ("json", MODERN), ("events", LEGACY), ("events", MODERN), ("sse", LEGACY)],
)
async def test_a_server_killed_under_a_call_is_reached_again_and_the_call_is_not_repeated(
    transport: str, protocol: str, tmp_path: Path
) -> None:
    port, notes = free_port(), tmp_path / "notes"
    command = [sys.executable, str(SERVERS / "official.py"), transport, str(port), str(notes)]
    path, kind = ("sse", "sse") if transport == "sse" else ("mcp", "http")
    said = {
        "url": f"http://127.0.0.1:{port}/{path}",
        "transport": kind,
        "protocol": protocol,
        "max_retries": 0,
    }
    bench = Bench(tmp_path, "plain")
    async with bench.house(bench.read(said, id="peer")) as house:
        with standing(command, port) as pid:
            assert (await house.call("echo", server="peer", text="well")).blocks[0]["text"] == "well"
            calls = [
                asyncio.create_task(house.call("wait", server="peer", name=f"w{n}", timeout=30))
                for n in range(4)
            ]
            await until(lambda: notes.exists() and len(notes.read_text().splitlines()) == len(calls))
            os.kill(pid, signal.SIGKILL)
            outcomes = await asyncio.gather(*calls, return_exceptions=True)
            for outcome in outcomes:
                assert isinstance(outcome, ConnectionLostError)
                assert outcome.sent
        (outcome,) = await asyncio.gather(
            house.call("echo", server="peer", text="gone", timeout=5), return_exceptions=True
        )
        assert isinstance(outcome, WireError)
        with standing(command, port):
            assert (await house.call("echo", server="peer", text="back")).blocks[0]["text"] == "back"
    assert sorted(notes.read_text().split()[1::2]) == ["w0", "w1", "w2", "w3"]


async def test_a_host_killed_under_a_call_wrote_once_and_its_successor_does_not_repeat_it(
    tmp_path: Path,
) -> None:
    port, notes = free_port(), tmp_path / "notes"
    command = [sys.executable, str(SERVERS / "official.py"), "events", str(port), str(notes)]
    project = tmp_path / "project"
    (project / "ensembles").mkdir(parents=True)
    peer = {"url": f"http://127.0.0.1:{port}/mcp"}
    (project / "luthier.yaml").write_text(json.dumps({"mcpServers": {"peer": peer}}))
    step = {"name": "write", "operation": "tools", "config": {"mcp": "peer", "tool": "wait"}}
    retrying = {"input": {"name": "w0"}, "retry": {"maxAttempts": 5, "initialDelay": 1}}
    (project / "ensembles" / "once.yaml").write_text(
        json.dumps({"ensemble": "once", "agents": [step | retrying]})
    )

    with standing(command, port):
        host = await luthier(project, "run", "once")
        await until(lambda: notes.exists() and "waiting w0\n" in notes.read_text())
        host.kill()
        await asyncio.wait_for(host.wait(), 20)
        successor = await luthier(project, "call", "mcp://peer/echo", "-a", "text=back")
        said, errors = await asyncio.wait_for(successor.communicate(), 40)
        assert (successor.returncode, b"back" in said) == (0, True), errors
    assert notes.read_text().count("waiting") == 1
    told = await luthier(project, "audit", "tail", "--json")
    records = json.loads((await asyncio.wait_for(told.communicate(), 40))[0])["records"]
    kinds = [(record["kind"], record["uri"]) for record in records if "uri" in record]
    assert ("intent", "mcp://peer/wait") in kinds
    assert ("outcome", "mcp://peer/wait") not in kinds  # how it ended is known to nobody, and said by nobody


async def luthier(project: Path, *words: str) -> asyncio.subprocess.Process:
    """One of our commands, in a process of its own."""
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "luthier", *words, cwd=project, stdout=pipe, stderr=pipe
    )
