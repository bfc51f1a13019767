"""Servers by HTTP that are killed in the middle of a call: no hang, no second write, and well afterwards."""

from __future__ import annotations

import asyncio
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
