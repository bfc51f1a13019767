"""`luthier mock` as other clients find it: a real server over pipes and HTTP, with faults on request."""

from __future__ import annotations

import asyncio
import select
import signal
import subprocess
import sys
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from luthier import Runtime
from luthier.clock import FakeClock, SystemClock
from luthier.errors import LuthierError, NotFoundError, WireError
from luthier.testing.mock_file import read_mock_file
from luthier.testing.mock_server import MockOffering, mock_listening
from tests.testing.test_mock_file import TRAFFIC

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

BOUND = 30.0
FILE = """\
server: github
tools:
  get_issue:
    description: One issue.
    inputSchema: {type: object, properties: {number: {type: integer}}, required: [number]}
    returns: {number: 7, title: It burns}
  say: {echoes: true}
  next: {sequence: [{returns: first}, {is_error: gone}, {echoes: true}]}
  broken: {fails: out of order}
  slow: {delay: 20000, returns: late}
  slow_echo: {delay: 20000, echoes: true}
  silent: {hangs: true}
  dead: {crashes: true}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mock.yaml"
    path.write_text(FILE)
    return path


@asynccontextmanager
async def listening(file: Path, **parts: Any) -> AsyncIterator[str]:
    """The mock over HTTP, in this process."""
    found = read_mock_file(file)
    serving = mock_listening(MockOffering(found, clock=SystemClock(), **parts), found.name, "127.0.0.1:0")
    task = asyncio.create_task(serving.serve())
    try:
        yield f"http://{serving.address}/mcp"
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def offering(file: Path, **parts: Any) -> MockOffering:
    return MockOffering(read_mock_file(file), **{"clock": FakeClock(), **parts})


async def called(mock: MockOffering, name: str, **arguments: Any) -> Any:
    return await (await mock.begin("anybody", name, arguments, lambda _: None))


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_the_official_client_uses_it_over_pipes(file: Path, mode: Any) -> None:
    command = StdioServerParameters(command=sys.executable, args=["-m", "luthier", "mock", str(file)])
    async with asyncio.timeout(BOUND), Client(command, mode=mode) as peer:
        tools = {tool.name: tool for tool in (await peer.list_tools()).tools}
        assert tools["get_issue"].description == "One issue."
        result = await peer.call_tool("get_issue", {"number": 7})
        assert result.structured_content == {"number": 7, "title": "It burns"}
        assert (await peer.call_tool("get_issue", {"number": "seven"})).is_error
        with pytest.raises(MCPError, match="out of order"):
            await peer.call_tool("broken", {})


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_the_official_client_uses_it_over_http(file: Path, mode: Any) -> None:
    async with asyncio.timeout(BOUND), listening(file) as url:
        async with Client(streamable_http_client(url), mode=mode) as peer:
            assert len((await peer.list_tools()).tools) == 8
            assert (await peer.call_tool("say", {"a": 1})).structured_content == {"a": 1}
            with pytest.raises(MCPError, match="Unknown tool"):
                await peer.call_tool("none", {})


async def test_our_own_client_uses_it_and_sees_its_failures(file: Path) -> None:
    async with listening(file, fail_every=2) as url:
        async with asyncio.timeout(BOUND), Runtime.open({"mcpServers": {"github": {"url": url}}}) as rt:
            assert (await rt.call("mcp://github/say", a=1)).content == {"a": 1}
            with pytest.raises(WireError, match="call 2 fails"):
                await rt.call("mcp://github/say", a=1)
            assert (await rt.call("mcp://github/say", a=1)).content == {"a": 1}


async def test_a_sequence_goes_on_with_its_last_answer(file: Path) -> None:
    mock = offering(file)
    answers = [await called(mock, "next", n=n) for n in range(4)]
    assert [answer.is_error for answer in answers] == [False, True, False, False]
    assert [answer.blocks[0]["text"] for answer in answers] == ["first", "gone", '{"n":2}', '{"n":3}']


@pytest.mark.parametrize("name", ["slow", "slow_echo"])
async def test_answers_come_late_by_latency_and_delay(file: Path, name: str) -> None:
    clock = FakeClock()
    mock = offering(file, clock=clock, latency=5.0)
    task = await mock.begin("anybody", name, {}, lambda _: None)
    await clock.advance(24)
    assert not task.done()
    await clock.advance(1)
    assert (await task).blocks


async def test_a_call_without_an_answer_ends_with_the_server(file: Path) -> None:
    mock = offering(file)
    task = await mock.begin("anybody", "silent", {}, lambda _: None)
    await mock.close()
    assert task.cancelled()


async def test_a_crash_ends_the_server(file: Path) -> None:
    crashes: list[bool] = []
    mock = offering(file, crash=lambda: crashes.append(True))
    with pytest.raises(MCPError, match="crashed"):
        await called(mock, "dead")
    assert crashes == [True]


async def test_arguments_are_judged_by_the_schema_before_anything_else(file: Path) -> None:
    mock = offering(file)
    assert (await called(mock, "get_issue", number="seven")).is_error
    assert (await called(mock, "get_issue", number=7)).structured == {"number": 7, "title": "It burns"}
    with pytest.raises(MCPError, match="out of order"):
        await called(mock, "broken")


async def test_what_it_was_asked_is_told(file: Path) -> None:
    heard: list[Any] = []
    mock = offering(file, heard=lambda name, arguments: heard.append((name, arguments)))
    await called(mock, "say", a=1)
    assert heard == [("say", {"a": 1})]
    with pytest.raises(NotFoundError):
        await called(mock, "none")


async def test_a_recording_answers_and_says_what_it_does_not_have(tmp_path: Path) -> None:
    file = tmp_path / "x.jsonl"
    file.write_text(TRAFFIC)
    mock = offering(file)
    for _ in range(3):
        assert (await called(mock, "search", q="a")).blocks == [{"type": "text", "text": "1"}]
    with pytest.raises(MCPError, match="not recorded"):
        await called(mock, "search", q="b")


@pytest.mark.parametrize("address", ["0.0.0.0:0", "192.0.2.1:80", "[::]:0"])
def test_it_listens_on_this_machine_only(file: Path, address: str) -> None:
    with pytest.raises(LuthierError, match="on this machine only"):
        mock_listening(offering(file), "github", address)


def test_the_command_serves_over_http_until_it_is_stopped(file: Path) -> None:
    words = [sys.executable, "-m", "luthier", "mock", str(file), "--http", "127.0.0.1:0", "--latency", "1"]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert select.select([process.stderr], [], [], BOUND)[0]
        url = process.stderr.readline().removeprefix("mocking github at ").strip()
        asyncio.run(_asked(url))
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=BOUND)
    assert process.returncode == 130
    assert 'say {"a":1}' in said


async def _asked(url: str) -> None:
    async with asyncio.timeout(BOUND), Client(streamable_http_client(url)) as peer:
        assert (await peer.call_tool("say", {"a": 1})).structured_content == {"a": 1}


async def test_a_crash_of_the_command_is_a_lost_connection(file: Path) -> None:
    servers = {"github": {"command": "python", "args": ["-m", "luthier", "mock", str(file)]}}
    async with asyncio.timeout(BOUND), Runtime.open({"mcpServers": servers}) as rt:
        with pytest.raises(WireError, match="70"):
            await rt.call("mcp://github/dead")
