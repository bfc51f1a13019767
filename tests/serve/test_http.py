"""Over HTTP: the SDK's client with a token, the REST dialect, and those who are kept out."""

from __future__ import annotations

import asyncio
import socket
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import aiohttp
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from luthier.errors import LuthierError, SpecError
from luthier.serve import Listening, Service
from luthier.serve.listening import address_of, bind
from luthier.testing import MemoryAudit
from luthier.trace import Trace
from tests.serve.house import SECRET, given_up, greeter, house

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

CLIENTS = {"ci": "${env.CI}", "boss": "${env.BOSS}"}
CI, BOSS = "c" * 40, "b" * 40


@asynccontextmanager
async def served(root: Path, **parts: Any) -> AsyncIterator[str]:
    """The address that the house is served at."""
    serve = {"clients": CLIENTS, **parts.pop("serve", {})}
    made = parts.pop("made", [])
    more = {name: parts.pop(name) for name in ("most_sessions",) if name in parts}
    async with house(root, serve=serve, **parts) as runtime:
        made.append(Service(runtime))
        listening = Listening.on("127.0.0.1:0", made[0], runtime.project, runtime.environ, **more)
        serving = asyncio.create_task(listening.serve())
        try:
            yield f"http://{listening.address}"
        finally:
            serving.cancel()
            with suppress(asyncio.CancelledError):
                await serving


@asynccontextmanager
async def connected(
    url: str, token: str, mode: Any, headers: dict[str, str] | None = None
) -> AsyncIterator[Client]:
    said = {**(headers or {}), "Authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(headers=said) as http:
        async with Client(streamable_http_client(f"{url}/mcp", http_client=http), mode=mode) as peer:
            yield peer


async def asked(url: str, method: str = "GET", token: str | None = CI, **more: Any) -> tuple[int, Any, Any]:
    """Status, body and headers of one plain request."""
    headers = {**({"Authorization": f"Bearer {token}"} if token else {}), **more.pop("headers", {})}
    async with aiohttp.ClientSession() as session:
        async with session.request(method, url, headers=headers, **more) as reply:
            kind = reply.content_type
            body = await (reply.json() if kind == "application/json" else reply.text())
            return reply.status, body, reply.headers


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_the_official_client_lists_and_calls(tmp_path: Path, mode: str) -> None:
    told = []

    async def notice(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, total, message))

    async with served(tmp_path) as url, connected(url, CI, mode) as peer:
        names = [tool.name for tool in (await peer.list_tools()).tools]
        result = await peer.call_tool("greeting", {"name": "Ada"}, progress_callback=notice)
        with pytest.raises(MCPError, match="Unknown tool"):
            await peer.call_tool("hidden", {"name": "Ada"})
    assert names == ["greeting", "stuck", "telling"]
    assert result.structured_content == {"said": "Hello, Ada"}
    assert [done for done, _, _ in told] == [1, 2]


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_call_that_its_client_gives_up_is_called_off(tmp_path: Path, mode: str) -> None:
    made: list[Service] = []
    async with served(tmp_path, made=made) as url, connected(url, CI, mode) as peer:
        await given_up(peer)
        await made[0].idle()  # the call would never end by itself


ABOUT = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}


async def opened(url: str) -> dict[str, str]:
    """The headers of a session of the old kind."""
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": ABOUT}
    accept = {"Accept": "application/json, text/event-stream"}
    _, _, headers = await asked(f"{url}/mcp", "POST", json=hello, headers=accept)
    session = {**accept, "Mcp-Session-Id": headers["Mcp-Session-Id"]}
    ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert (await asked(f"{url}/mcp", "POST", json=ready, headers=session))[0] == 202
    return session


async def test_an_old_session_that_goes_away_in_a_call_has_it_called_off(tmp_path: Path) -> None:
    made: list[Service] = []
    async with served(tmp_path, made=made) as url:
        call = {"name": "stuck", "arguments": {}, "_meta": {"progressToken": 1}}
        body = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}
        headers = {**await opened(url), "Authorization": f"Bearer {CI}"}
        async with aiohttp.ClientSession() as session:
            async with session.post(f"{url}/mcp", json=body, headers=headers) as reply:
                assert await reply.content.readany()  # it is at work
        await made[0].idle()  # it would never end by itself


async def test_a_session_is_of_the_client_that_opened_it(tmp_path: Path) -> None:
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": ABOUT}
    accept = {"Accept": "application/json, text/event-stream"}
    async with served(tmp_path) as url:
        status, _, headers = await asked(f"{url}/mcp", "POST", json=hello, headers=accept)
        assert status == 200
        session = {**accept, "Mcp-Session-Id": headers["Mcp-Session-Id"]}
        listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
        status, _, _ = await asked(f"{url}/mcp", "POST", BOSS, json=listing, headers=session)
        assert status == 404
        status, _, _ = await asked(f"{url}/mcp", "POST", CI, json=listing, headers=session)
        assert status == 200


@pytest.mark.parametrize("path", ["/mcp", "/mcp/tools", "/mcp/tools/greeting", "/", "/anything"])
async def test_every_path_asks_for_a_token_first(tmp_path: Path, path: str) -> None:
    async with served(tmp_path) as url:
        for token in (None, "wrong"):
            status, body, headers = await asked(url + path, "POST", token)
            failed = "MCP authentication failed" if path.startswith("/mcp") else "Unauthorized"
            assert (status, body["error"]) == (401, failed)
            assert headers["WWW-Authenticate"].startswith("Bearer")
        status, _, _ = await asked(url + path, headers={"Host": "evil.example.com"})
        assert status == 403


async def test_the_health_says_more_to_a_client(tmp_path: Path) -> None:
    async with served(tmp_path) as url:
        assert (await asked(f"{url}/health", token=None))[:2] == (200, {"status": "ok"})
        _, body, _ = await asked(f"{url}/health/ready")
        assert (await asked(f"{url}/health", token="wrong"))[0] == 401
    assert (body["status"], body["broken"]) == ("ok", [])


async def test_rest_lists_what_the_client_may_call(tmp_path: Path) -> None:
    async with served(tmp_path) as url:
        _, body, _ = await asked(f"{url}/mcp/tools")
        _, more, _ = await asked(f"{url}/mcp/tools", token=BOSS)
    assert [tool["name"] for tool in body["tools"]] == ["greeting", "stuck", "telling"]
    assert [tool["name"] for tool in more["tools"]] == ["greeting", "hidden", "stuck", "telling"]
    assert body["tools"][0]["inputSchema"]["required"] == ["name"]


@pytest.mark.parametrize("way", ["rest", "legacy", "auto", "meta"])
async def test_a_call_belongs_to_the_trace_of_its_caller(tmp_path: Path, way: str) -> None:
    server, trace = greeter(), Trace.fresh()
    async with served(tmp_path, server=server) as url:
        if way == "rest":
            body = {"arguments": {"name": "Bo"}}
            await asked(f"{url}/mcp/tools/greeting", "POST", json=body, headers=trace.meta)
        else:
            said = {} if way == "meta" else trace.meta
            async with connected(url, CI, "auto" if way == "meta" else way, headers=said) as peer:
                meta: Any = trace.meta if way == "meta" else None
                await peer.call_tool("greeting", {"name": "Bo"}, meta=meta)
    (call,) = [message for message in server.received if message["method"] == "tools/call"]
    assert call["params"]["_meta"]["traceparent"] == trace.parent


async def test_rest_calls(tmp_path: Path) -> None:
    async with served(tmp_path) as url:
        status, body, _ = await asked(
            f"{url}/mcp/tools/greeting", "POST", json={"name": "greeting", "arguments": {"name": "Bo"}}
        )
        assert status == 200
        assert (body["isError"], body["structuredContent"]) == (False, {"said": "Hello, Bo"})
        status, body, _ = await asked(f"{url}/mcp/tools/telling", "POST")
        assert (status, body["isError"]) == (200, True)
        assert SECRET not in str(body)


@pytest.mark.parametrize("name", ["hidden", "absent"])
async def test_rest_says_the_same_of_what_is_absent_and_what_is_forbidden(tmp_path: Path, name: str) -> None:
    async with served(tmp_path) as url:
        found = await asked(f"{url}/mcp/tools/{name}", "POST")
    assert found[:2] == (404, {"error": "Ensemble not found", "ensemble": name})


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 400),
        (b"[]", 400),
        (b'{"arguments": []}', 400),
        (b"\xff", 400),
        (b"[" * 100_000, 400),
        (b'{"arguments": {"name": 1}}', 400),
        (b" " * 5000, 413),
    ],
)
async def test_a_bad_body_starts_nothing(tmp_path: Path, body: bytes, status: int) -> None:
    server = greeter()
    most = 4096 if status == 413 else 10**6
    async with served(tmp_path, server=server, serve={"max_body_bytes": most}) as url:
        headers = {"Content-Type": "application/json"}
        found, _, _ = await asked(f"{url}/mcp/tools/greeting", "POST", data=body, headers=headers)
        other, _, _ = await asked(f"{url}/mcp/tools/greeting", "POST", data=b"{}")
    assert (found, other, server.connections) == (status, 415, 0)


async def test_the_token_of_a_caller_goes_nowhere(tmp_path: Path) -> None:
    server, audit = greeter(), MemoryAudit()
    async with served(tmp_path, server=server, audit=audit) as url:
        await asked(f"{url}/mcp/tools/greeting", "POST", json={"arguments": {"name": "Bo"}})
    assert CI not in str(server.received)
    assert CI not in str(audit.records)
    assert all(CI.encode() not in file.read_bytes() for file in (tmp_path / ".luthier").glob("luthier.db*"))


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("8080", "no address"),
        ("127.0.0.1:x", "no address"),
        ("127.0.0.1:65536", "no address"),
        (":8080", "no address"),
        ("example.com:80", "no IP address"),
        ("0.0.0.0:0", "development"),
        ("192.0.2.1:0", "development"),
    ],
)
async def test_an_address_that_is_not_to_be_listened_on(tmp_path: Path, address: str, why: str) -> None:
    async with house(tmp_path, serve={"clients": CLIENTS}) as runtime:
        with pytest.raises(SpecError, match=why):
            Listening.on(address, Service(runtime), runtime.project, runtime.environ)


def test_an_answer_in_pieces_does_not_wait_for_the_other_side() -> None:
    with bind("127.0.0.1:0") as bound, socket.create_connection(bound.getsockname()):
        accepted, _ = bound.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_addresses_are_taken_apart() -> None:
    assert address_of("localhost:80") == ("127.0.0.1", 80)
    assert address_of("[::1]:8080") == ("::1", 8080)


async def test_without_a_token_nothing_is_listened_on(tmp_path: Path) -> None:
    async with house(tmp_path) as runtime:
        with pytest.raises(SpecError, match="Nobody has a token"):
            Listening.on("127.0.0.1:0", Service(runtime), runtime.project, runtime.environ)


async def test_an_address_in_use_says_so(tmp_path: Path) -> None:
    async with served(tmp_path) as url, house(tmp_path, serve={"clients": CLIENTS}) as runtime:
        address = url.removeprefix("http://")
        with pytest.raises(LuthierError, match="cannot be listened on"):
            Listening.on(address, Service(runtime), runtime.project, runtime.environ)
