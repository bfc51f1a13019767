"""What clients get wrong, or do wrong on purpose, where the protocol is spoken: no fault of ours."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest

from tests.serve.house import greeter
from tests.serve.test_http import CI, asked, connected, opened, served

if TYPE_CHECKING:
    from pathlib import Path

    from luthier.serve import Service

ACCEPT = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
MODERN = {"MCP-Protocol-Version": "2026-07-28"}
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


def call(arguments: Any = None, *, name: Any = "greeting", id: Any = 1, **more: Any) -> dict[str, Any]:
    params = {"name": name, "arguments": {"name": "Ada"} if arguments is None else arguments, **more}
    return {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}


DEEP = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"greeting","arguments":' + (
    b'{"a":' * 3000 + b"1" + b"}" * 3000 + b"}}"
)
BODIES = [
    b"",
    b"{",
    b"[]",
    b"null",
    b"1",
    b"\xff\xfe",
    b"[" * 100_000,
    DEEP,
    json.dumps([call(), call()]).encode(),
    json.dumps({"id": 1, "method": "tools/call"}).encode(),
    json.dumps({"jsonrpc": "1.0", "id": 1, "method": "tools/list"}).encode(),
    json.dumps({"jsonrpc": "2.0", "id": {}, "method": "tools/list"}).encode(),
    json.dumps({"jsonrpc": "2.0", "id": 1, "method": 5}).encode(),
    json.dumps({"jsonrpc": "2.0", "id": 1, "method": "x" * 100_000}).encode(),
    json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": []}).encode(),
    json.dumps(call(name=None)).encode(),
    json.dumps(call(name={"a": 1})).encode(),
    json.dumps(call([])).encode(),
    json.dumps(call({"name": "\ud800"})).encode(),
    json.dumps(call({"name": 10**400})).encode(),
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"greeting","arguments":{"name":NaN}}}',
    json.dumps(call(_meta={"progressToken": {"a": 1}})).encode(),
    json.dumps(call(requestState=1)).encode(),
    json.dumps(call(inputResponses=[])).encode(),
    json.dumps({"jsonrpc": "2.0", "id": 9, "result": {}}).encode(),
    json.dumps({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 77}}).encode(),
    json.dumps({"jsonrpc": "2.0", "method": "notifications/progress", "params": {}}).encode(),
]


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_no_body_is_a_fault_of_ours(tmp_path: Path, era: str) -> None:
    async with served(tmp_path) as url:
        headers = await opened(url) if era == "legacy" else {}
        for body in BODIES:
            more = {**ACCEPT, **headers, **(MODERN if era == "modern" else {})}
            if era == "modern":
                more |= {"Mcp-Method": "tools/call", "Mcp-Name": "greeting"}
            async with asyncio.timeout(20):
                status, _, _ = await asked(f"{url}/mcp", "POST", data=body, headers=more)
            assert status < 500, (body[:120], status)
        async with connected(url, CI, "auto") as peer:
            assert not (await peer.call_tool("greeting", {"name": "Ada"})).is_error


@pytest.mark.parametrize("path", ["/mcp", "/mcp/tools/greeting"])
@pytest.mark.parametrize("pieces", [False, True])
async def test_a_body_that_is_too_large_starts_nothing(tmp_path: Path, path: str, pieces: bool) -> None:  # noqa: FBT001
    server = greeter()

    async def told() -> Any:
        for _ in range(64):
            yield b" " * 1024

    async with served(tmp_path, server=server, serve={"max_body_bytes": 4096}) as url:
        data: Any = told() if pieces else b" " * 65536
        status, _, _ = await asked(f"{url}{path}", "POST", data=data, headers=ACCEPT)
    assert (status, server.connections) == (413, 0)


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_two_sessions_with_the_same_ids_get_each_their_own(tmp_path: Path, mode: str) -> None:
    async with served(tmp_path) as url, connected(url, CI, mode) as one, connected(url, CI, mode) as two:
        results = await asyncio.gather(
            *(
                peer.call_tool("greeting", {"name": f"{who}{number}"})
                for number in range(10)
                for who, peer in (("a", one), ("b", two))
            )
        )
    said = [result.structured_content["said"] for result in results if result.structured_content]
    assert said == [f"Hello, {who}{number}" for number in range(10) for who in "ab"]


async def test_an_id_that_is_at_work_is_not_given_twice(tmp_path: Path) -> None:
    made: list[Service] = []
    async with served(tmp_path, made=made) as url:
        headers = {**ACCEPT, **await opened(url)}
        stuck = call({}, name="stuck", id=7, _meta={"progressToken": 1})
        async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {CI}"}) as session:
            async with session.post(f"{url}/mcp", json=stuck, headers=headers) as first:
                assert await first.content.readany()
                for id, code in ((7, 400), (8, 200)):
                    status, body, _ = await asked(f"{url}/mcp", "POST", json=call(id=id), headers=headers)
                    assert status == code
                    assert ("not answered yet" in str(body)) is (code == 400)
        async with asyncio.timeout(20):  # once the first is over, the id is free
            while (await asked(f"{url}/mcp", "POST", json=call(id=7), headers=headers))[0] != 200:
                await made[0].idle()


async def test_sessions_are_so_many_and_no_more(tmp_path: Path) -> None:
    async with served(tmp_path, most_sessions=3) as url:
        sessions = [await opened(url) for _ in range(3)]
        about = {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "x", "version": "1"},
        }
        hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about}
        status, _, _ = await asked(f"{url}/mcp", "POST", json=hello, headers=ACCEPT)
        assert status in (429, 503)
        listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
        assert (await asked(f"{url}/mcp", "POST", json=listing, headers={**ACCEPT, **sessions[0]}))[0] == 200
        assert (await asked(f"{url}/mcp", "DELETE", headers=sessions[0]))[0] == 200
        assert await opened(url)
