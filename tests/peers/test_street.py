"""Servers that people run by HTTP: the reference server for Node in both its modes, and mcp-proxy."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from luthier.events import CallProgressed, ServerReady
from tests.faults.bench import LEGACY, Bench
from tests.peers.standing import free_port, standing
from tests.servers_real.street import NODE_SERVERS

if TYPE_CHECKING:
    from collections.abc import Iterator

MCP_PROXY = os.environ.get("LUTHIER_MCP_PROXY", "")
node = pytest.mark.skipif(not NODE_SERVERS, reason="LUTHIER_NODE_SERVERS is not set: no Node here")
proxied = pytest.mark.skipif(not MCP_PROXY, reason="LUTHIER_MCP_PROXY is not set: no mcp-proxy here")


@pytest.fixture(scope="module", params=["streamableHttp", "sse"])
def everything(request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of the reference server."""
    mode, port = request.param, free_port()
    script = Path(NODE_SERVERS) / "node_modules" / ".bin" / "mcp-server-everything"
    with standing(["node", str(script), mode], port, env=os.environ | {"PORT": str(port)}):
        yield f"http://127.0.0.1:{port}/{'sse' if mode == 'sse' else 'mcp'}"


@node
async def test_everything_is_understood(everything: str, tmp_path: Path) -> None:
    bench = Bench(tmp_path, "plain")
    entry = bench.read({"url": everything, "tool_timeout_ms": 900}, id="all")
    async with bench.house(entry) as house:
        assert {"echo", "get-sum", "get-tiny-image"} <= set(await house.names("all"))
        at_once = await asyncio.gather(
            *(house.call("echo", server="all", message=f"☃ {n}") for n in range(8))
        )
        assert [reply.content for reply in at_once] == [f"Echo: ☃ {n}" for n in range(8)]
        weather = await house.call("get-structured-content", server="all", location="New York")
        assert weather.notes == ()
        assert {"temperature", "conditions", "humidity"} <= set(weather.content)
        image = await house.call("get-tiny-image", server="all")
        assert "image" in [block["type"] for block in image.blocks]
        assert (await house.call("get-sum", server="all", a="one", b=2)).is_error
        long = await house.call("trigger-long-running-operation", server="all", duration=1.6, steps=4)
        assert not long.is_error
        assert [event.progress for event in house.watcher.of(CallProgressed)] == [1, 2, 3, 4]
        assert [event.protocol for event in house.watcher.of(ServerReady)] == [LEGACY]


@pytest.fixture(scope="module")
def proxy() -> Iterator[int]:
    """The port of mcp-proxy before a server on pipes."""
    port = free_port()
    tools = Path(MCP_PROXY) / "bin"
    command = [str(tools / "mcp-proxy"), "--port", str(port), "--pass-environment"]
    with standing([*command, str(tools / "mcp-server-time")], port):
        yield port


@proxied
@pytest.mark.parametrize(
    "said",
    [
        {"path": "mcp", "transport": "http"},
        {"path": "mcp/", "transport": "http"},
        {"path": "sse", "transport": "sse"},
        {"path": "mcp", "transport": "auto"},
        {"path": "sse", "transport": "auto"},
    ],
    ids=lambda said: f"{said['transport']}-{said['path']}",
)
async def test_a_server_on_pipes_is_reached_through_a_proxy(
    proxy: int, said: dict[str, Any], tmp_path: Path
) -> None:
    bench = Bench(tmp_path, "plain")
    url = f"http://127.0.0.1:{proxy}/{said['path']}"
    entry = bench.read({"url": url, "transport": said["transport"]}, id="time")
    async with bench.house(entry) as house:
        assert await house.names("time") == ["get_current_time", "convert_time"]
        zones = ("Asia/Tokyo", "America/Lima", "Africa/Nairobi")
        replies = await asyncio.gather(
            *(house.call("get_current_time", server="time", timezone=zone) for zone in zones)
        )
        assert [reply.content["timezone"] for reply in replies] == list(zones)
        assert (await house.call("get_current_time", server="time", timezone="Nowhere/Atlantis")).is_error
