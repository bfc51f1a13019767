"""Calls answered in one piece: which they are, whose session they are made in, and what becomes of others."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
from multidict import CIMultiDict

from luthier.clock import settle
from luthier.serve import Service, modern
from luthier.serve.direct import LISTEN, PATIENCE, VOUCHED, Direct
from luthier.serve.messages import Messages
from luthier.testing import FakeClock, MemoryServer, MemoryState
from luthier.trace import PARENT, Trace
from luthier.wire import Hang
from tests.serve.house import ENSEMBLES, greeter, house
from tests.serve.test_bad_requests import META, MODERN
from tests.serve.test_http import BOSS, CI, asked, served

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

TOOLS = {
    "greet": "mcp://greeter/greet",
    "odd": "mcp://greeter/odd",
    "hang": "mcp://greeter/hang",
    "fail": "mcp://greeter/fail",
}
ACCEPT = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
ABOUT = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
ADA = {"name": "greet", "arguments": {"name": "Ada"}}
EVENTS = "text/event-stream"
VERSION_KEY, CAPABILITIES_KEY = META


def alone(name: str) -> dict[str, str]:
    """The headers of a call that is a request by itself."""
    return {**ACCEPT, **MODERN, "Mcp-Method": "tools/call", "Mcp-Name": name}


def message(method: str, params: Any = None, id: Any = 2) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params or {}}


def cancelled(id: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}


async def posted(url: str, body: Any, headers: dict[str, str], token: str = CI) -> tuple[int, str, Any]:
    """Status, kind and message; of a stream its last one."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    status, text, got = await asked(f"{url}/mcp", "POST", token, data=data, headers=headers)
    kind = got.get("Content-Type", "").partition(";")[0]
    if kind == "text/event-stream":
        text = json.loads(next(line[5:] for line in text.splitlines()[::-1] if line.startswith("data:")))
    return status, kind, text


async def opened(url: str, version: str = "2025-11-25") -> dict[str, str]:
    """The headers of a session."""
    about = {**ABOUT, "protocolVersion": version}
    _, _, got = await asked(f"{url}/mcp", "POST", json=message("initialize", about), headers=ACCEPT)
    return {**ACCEPT, "Mcp-Session-Id": got["Mcp-Session-Id"], "MCP-Protocol-Version": version}


@pytest.mark.parametrize("name", ["greet", "odd", "fail", "greeting", "telling"])
@pytest.mark.parametrize("era", [None, modern.VERSION])
async def test_a_call_in_one_piece_gives_what_the_sdk_gives(
    tmp_path: Path, name: str, era: str | None
) -> None:
    arguments = ADA["arguments"] if name.startswith("greet") else {}
    meta = META if era else {}
    call = {"name": name, "arguments": arguments, "_meta": meta}
    async with served(tmp_path, serve={"tools": TOOLS}) as url:
        headers = alone(name) if era else await opened(url)
        direct = await posted(url, message("tools/call", call), headers)
        told = {**call, "_meta": {**meta, "progressToken": "p"}}
        streamed = await posted(url, message("tools/call", told), headers)
    assert direct[:2] == (200, "application/json")
    for found in (direct, streamed):
        found[2]["result"]["_meta"].pop("luthier/run", None)
    assert direct[2] == streamed[2]


@pytest.mark.parametrize(
    ("version", "kind"),
    [
        ("2025-11-25", "application/json"),
        ("2025-06-18", "application/json"),
        ("2025-03-26", "text/event-stream"),
    ],
)
async def test_what_a_revision_may_be_told_otherwise_the_sdk_tells(
    tmp_path: Path, version: str, kind: str
) -> None:
    async with served(tmp_path, serve={"tools": TOOLS}) as url:
        status, got, body = await posted(url, message("tools/call", ADA), await opened(url, version))
    assert (status, got) == (200, kind)
    assert body["result"]["content"] == [{"type": "text", "text": "Hello, Ada"}]


async def test_a_tool_that_a_pattern_fits_is_called_by_its_name(tmp_path: Path) -> None:
    async with served(tmp_path, serve={"tools": ["mcp://greeter/g*", "mcp://greeter/fail"]}) as url:
        session = await opened(url)
        _, body, _ = await asked(f"{url}/mcp/tools")
        names = [tool["name"] for tool in body["tools"] if "greeter" in tool["name"]]
        calls = [message("tools/call", {**ADA, "name": name}) for name in names]
        found = [await posted(url, call, session) for call in calls]
    assert [kind for _, kind, _ in found] == ["application/json"] * 2
    assert sorted(answer["result"]["content"][0]["text"] for _, _, answer in found) == ["Hello, Ada", "no"]


@pytest.mark.parametrize(
    ("step", "kind"),
    [
        ({"operation": "transform", "config": {"value": 1}}, "application/json"),
        ({"operation": "ensemble", "config": {"ensemble": "greeting"}, "input": ADA["arguments"]}, EVENTS),
        (
            {"operation": "hitl", "config": {"prompt": "?"}, "condition": "${false}"},
            EVENTS,
        ),
    ],
)
async def test_a_run_that_may_ask_something_is_told_of_by_a_stream(
    tmp_path: Path, step: dict[str, Any], kind: str
) -> None:
    ensemble = {"ensemble": "one", "trigger": {"type": "mcp"}, "agents": [{"name": "a", **step}]}
    async with served(tmp_path, ensembles=[*ENSEMBLES, ensemble]) as url:
        status, got, _ = await posted(url, message("tools/call", {"name": "one"}), await opened(url))
    assert (status, got) == (200, kind)


MISMATCH, INVALID, UNSUPPORTED = -32020, -32602, -32022


@pytest.mark.parametrize(
    ("headers", "params", "status", "code"),
    [
        ({}, {}, 200, None),
        ({"Mcp-Method": "tools/list"}, {}, 400, MISMATCH),
        ({"Mcp-Method": None}, {}, 400, MISMATCH),
        ({"Mcp-Name": "other"}, {}, 400, MISMATCH),
        ({"Mcp-Name": None}, {}, 400, MISMATCH),
        ({"Mcp-Name": "=?base64?Z3JlZXQ=?="}, {}, 200, None),
        ({}, {"_meta": {}}, 400, INVALID),
        ({}, {"_meta": {**META, VERSION_KEY: "2026-07-29"}}, 400, MISMATCH),
        ({}, {"_meta": {**META, CAPABILITIES_KEY: 5}}, 400, INVALID),
        ({}, {"arguments": [1]}, 400, INVALID),
        ({}, {"name": "absent"}, 400, MISMATCH),
        ({"Mcp-Name": "absent"}, {"name": "absent"}, 400, INVALID),
        ({}, {"requestState": "made up"}, 400, INVALID),
        ({"MCP-Protocol-Version": "2026-07-29"}, {}, 400, MISMATCH),
    ],
)
async def test_a_request_by_itself_is_held_to_what_the_protocol_says_of_it(
    tmp_path: Path, headers: dict[str, Any], params: dict[str, Any], status: int, code: int | None
) -> None:
    server = greeter()
    async with served(tmp_path, serve={"tools": TOOLS}, server=server) as url:
        sent = {name: value for name, value in {**alone("greet"), **headers}.items() if value is not None}
        call = message("tools/call", {**ADA, "_meta": META, **params})
        found, kind, body = await posted(url, call, sent)
    assert (found, kind, body.get("error", {}).get("code")) == (status, "application/json", code)
    called = [one for one in server.received if one.get("method") == "tools/call"]
    assert len(called) == (status == 200)


async def test_a_header_that_stands_twice_is_refused(tmp_path: Path) -> None:
    async with served(tmp_path, serve={"tools": TOOLS}) as url:
        headers = [*alone("greet").items(), ("Mcp-Name", "greet"), ("Authorization", f"Bearer {CI}")]
        call = message("tools/call", {**ADA, "_meta": META})
        async with aiohttp.ClientSession() as session:
            async with session.post(f"{url}/mcp", json=call, headers=CIMultiDict(headers)) as reply:
                assert (reply.status, (await reply.json())["error"]["code"]) == (400, MISMATCH)


@pytest.mark.parametrize("told", [False, True])
@pytest.mark.parametrize(
    ("header", "status"), [("Ada", 200), ("=?base64?QWRh?=", 200), ("Bo", 400), (None, 400)]
)
async def test_headers_that_repeat_arguments_must_agree_with_them(
    tmp_path: Path, header: str | None, status: int, *, told: bool
) -> None:
    schema = {"type": "object", "properties": {"name": {"type": "string", "x-mcp-header": "Who"}}}
    server = MemoryServer("greeter", {"greet": "Hello"}, schemas={"greet": schema})
    silent = MemoryServer("silent", {"x": 1})
    parts = {"serve": {"tools": [*TOOLS.values(), "mcp://silent/x"]}}
    async with served(tmp_path, server=server, **parts) as url:
        meta = {**META, **({"progressToken": 1} if told else {})}
        headers = {**alone("greeter__greet"), **({"Mcp-Param-Who": header} if header else {})}
        call = {**ADA, "name": "greeter__greet", "_meta": meta}
        for kinds in (ACCEPT["Accept"], "*/*"):
            found, _, body = await posted(url, message("tools/call", call), {**headers, "Accept": kinds})
            assert (found, body.get("error", {}).get("code")) == (status, None if status == 200 else MISMATCH)
    assert silent.connections == 0


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (b"{", {}),
        (b"[" * 100_000, {}),
        (message("tools/call", {"name": "absent"}), {}),
        (message("tools/call", {"arguments": {}}), {}),
        (message("tools/call", {**ADA, "arguments": [1]}), {}),
        (message("tools/call", {**ADA, "surplus": 1}), {}),
        (message("tools/call", ADA, id=None), {}),
        (message("tools/call", ADA, id=1.5), {}),
        (message("tools/call", ADA), {"Accept": "application/json"}),
        (message("tools/call", ADA), {"Content-Type": "text/plain"}),
        (message("tools/call", ADA), {"MCP-Protocol-Version": "2024-11-05"}),
        (message("tools/list"), {}),
        (cancelled("nothing"), {}),
    ],
)
async def test_what_is_odd_or_other_is_answered_by_the_sdk(
    tmp_path: Path, body: Any, headers: dict[str, str]
) -> None:
    async with served(tmp_path, serve={"tools": TOOLS}) as url:
        session = {**await opened(url), **headers}
        found = await posted(url, body, session)
        # In the revision of 2025-03-26 all goes to the SDK.
        older = {**session, "MCP-Protocol-Version": headers.get("MCP-Protocol-Version", "2025-03-26")}
        assert found == await posted(url, body, older)


@pytest.mark.parametrize("where", ["meta", "headers"])
async def test_the_trace_of_a_caller_goes_along(tmp_path: Path, where: str) -> None:
    server, trace = greeter(), Trace.fresh()
    call = {**ADA, "_meta": {PARENT: trace.parent}} if where == "meta" else ADA
    async with served(tmp_path, server=server, serve={"tools": TOOLS}) as url:
        session = {**await opened(url), **({PARENT: trace.parent} if where == "headers" else {})}
        _, kind, _ = await posted(url, message("tools/call", call), session)
    made = next(one for one in server.received if one.get("method") == "tools/call")
    assert (kind, made["params"]["_meta"][PARENT]) == ("application/json", trace.parent)


async def test_arguments_that_do_not_fit_are_refused_in_both_ways(tmp_path: Path) -> None:
    async with served(tmp_path, serve={"tools": TOOLS}) as url:
        call = message("tools/call", {"name": "greet", "arguments": {}})
        status, kind, body = await posted(url, call, await opened(url))
    assert (status, kind, body["result"]["isError"]) == (200, "application/json", True)


async def test_a_session_is_of_its_client_until_it_ends(tmp_path: Path) -> None:
    call = message("tools/call", ADA)
    async with served(tmp_path, serve={"tools": TOOLS}) as url:
        session = await opened(url)
        assert (await posted(url, call, session))[1] == "application/json"
        assert (await posted(url, call, session, BOSS))[0] == 404
        assert (await posted(url, call, session))[0] == 200
        assert (await asked(f"{url}/mcp", "DELETE", headers=session))[0] == 200
        assert (await posted(url, call, session))[0] == 404
        assert (await posted(url, call, {**session, "Mcp-Session-Id": "made-up"}))[0] == 404


class Exchange:
    """A request, as a server of ASGI makes it, and what was sent for it."""

    def __init__(self, app: Any, session: str, body: Any, *, headers: Any = None) -> None:
        self.sent: list[dict[str, Any]] = []
        headers = headers or {**ACCEPT, "Mcp-Session-Id": session, "MCP-Protocol-Version": "2025-11-25"}
        scope = {
            "type": "http",
            "method": "POST",
            "path": "/mcp",
            "user": SimpleNamespace(display_name="ci"),
            "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
        }
        self._given = [{"type": "http.request", "body": json.dumps(body).encode()}]
        self.left = asyncio.Event()
        self.task = asyncio.create_task(app(scope, self._receive, self._send))

    async def _receive(self) -> dict[str, Any]:
        if self._given:
            return self._given.pop(0)
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Any) -> None:
        self.sent.append(message)

    @property
    def kind(self) -> bytes:
        kind: bytes = dict(self.sent[0]["headers"])[b"content-type"]
        return kind


@asynccontextmanager
async def before_the_sdk(
    root: Path, clock: FakeClock, *, loaded: bool = True
) -> AsyncIterator[tuple[Messages, Service, list[str]]]:
    """What stands before an application that vouches for every session, which notes what it was asked."""
    asked: list[str] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        asked.append(json.loads((await receive())["body"])["method"])
        session = dict(scope["headers"])[b"mcp-session-id"]
        headers = [(b"Mcp-Session-Id", session), (b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b""})

    async with house(root, serve={"tools": TOOLS}, state=MemoryState()) as runtime:
        service = Service(runtime)
        if loaded:
            await runtime.tools.load("greeter")
        try:
            yield Messages(Direct(app, service, "/mcp", clock), "/mcp"), service, asked
        finally:
            await service.close()


async def test_the_sdk_hears_of_a_session_once_in_a_while(tmp_path: Path) -> None:
    clock = FakeClock()
    async with before_the_sdk(tmp_path, clock) as (direct, _, asked):
        for session in ("one", "two", "one", "two"):
            await Exchange(direct, session, message("ping" if len(asked) < 2 else "tools/call", ADA)).task
        assert asked == ["ping", "ping"]
        await clock.advance(VOUCHED)
        await Exchange(direct, "one", message("tools/call", ADA)).task
        assert asked == ["ping", "ping", "tools/call"]
        exchange = Exchange(direct, "one", message("tools/call", ADA))
        await exchange.task
        assert (len(asked), exchange.kind) == (3, b"application/json")


async def test_what_takes_long_shows_that_it_is_still_here(tmp_path: Path) -> None:
    clock = FakeClock()
    async with before_the_sdk(tmp_path, clock) as (direct, service, _):
        await Exchange(direct, "one", message("ping")).task
        exchange = Exchange(direct, "one", message("tools/call", {"name": "hang"}))
        await clock.advance(PATIENCE - 1)
        assert not exchange.sent
        await clock.advance(1 + PATIENCE)
        assert exchange.kind == b"text/event-stream"
        assert [part["body"] for part in exchange.sent[1:]] == [b": working\n\n"] * 2
        await service.close()
        await exchange.task
    assert b"Request cancelled" in exchange.sent[-1]["body"]
    assert not exchange.sent[-1].get("more_body")


async def test_a_call_that_is_called_off_by_message_ends(tmp_path: Path) -> None:
    async with before_the_sdk(tmp_path, FakeClock()) as (direct, service, asked):
        await Exchange(direct, "one", message("ping")).task
        exchange = Exchange(direct, "one", message("tools/call", {"name": "hang"}, id="h"))
        await settle()
        await Exchange(direct, "one", cancelled("another")).task
        assert not exchange.sent
        await Exchange(direct, "one", cancelled("h")).task
        await exchange.task
        await service.idle()
    assert asked == ["ping", "notifications/cancelled", "notifications/cancelled"]
    assert b"Request cancelled" in exchange.sent[-1]["body"]


async def test_a_call_may_be_called_off_before_its_tool_is_found(tmp_path: Path) -> None:
    async with before_the_sdk(tmp_path, FakeClock(), loaded=False) as (direct, service, _):
        await Exchange(direct, "one", message("ping")).task
        exchange = Exchange(direct, "one", message("tools/call", {"name": "hang"}, id="h"))
        await Exchange(direct, "one", cancelled("h")).task
        await exchange.task
        await service.idle()
    assert b"Request cancelled" in exchange.sent[-1]["body"]


async def test_whoever_is_called_off_while_waiting_calls_the_tool_off(tmp_path: Path) -> None:
    async with before_the_sdk(tmp_path, FakeClock()) as (direct, service, _):
        await Exchange(direct, "one", message("ping")).task
        exchange = Exchange(direct, "one", message("tools/call", {"name": "hang"}))
        await settle()
        exchange.task.cancel()
        await service.idle()  # the call would never end by itself
        assert not exchange.sent


async def test_whoever_goes_away_in_a_call_has_it_called_off(tmp_path: Path) -> None:
    clock = FakeClock()
    async with before_the_sdk(tmp_path, clock) as (direct, service, _):
        for waited in (LISTEN, PATIENCE + LISTEN):
            await Exchange(direct, "one", message("ping")).task
            exchange = Exchange(direct, "one", message("tools/call", {"name": "hang"}))
            await clock.advance(waited)
            assert not exchange.task.done()
            exchange.left.set()
            await exchange.task
            await service.idle()  # the call would never end by itself


async def test_a_request_by_itself_is_called_off_by_going_away_and_by_no_message(tmp_path: Path) -> None:
    clock, headers = FakeClock(), alone("hang")
    call = message("tools/call", {"name": "hang", "arguments": {}, "_meta": META}, id="h")
    async with before_the_sdk(tmp_path, clock) as (direct, service, asked):
        both = [Exchange(direct, "", call, headers=headers) for _ in range(2)]  # whose ids are the same
        await settle()
        await Exchange(direct, "one", cancelled("h")).task
        await clock.advance(PATIENCE)
        assert [(one.task.done(), one.kind) for one in both] == [(False, EVENTS.encode())] * 2
        for one in both:
            one.left.set()
            await one.task
        await service.idle()  # the calls would never end by themselves
    assert asked == ["notifications/cancelled"]


async def test_a_connection_that_is_closed_in_a_call_has_it_called_off(tmp_path: Path) -> None:
    at_work, made = asyncio.Event(), list[Service]()

    def hang(_: Any) -> Hang:
        at_work.set()
        return Hang()

    server = MemoryServer("greeter", {"hang": hang, "greet": "Hello"})
    async with served(tmp_path, serve={"tools": TOOLS}, server=server, made=made) as url:
        session = await opened(url)
        assert (await posted(url, message("tools/call", {"name": "greet"}), session))[1] == "application/json"
        waiting = asyncio.create_task(posted(url, message("tools/call", {"name": "hang"}), session))
        async with asyncio.timeout(PATIENCE):
            await at_work.wait()
            waiting.cancel()
            await made[0].idle()  # it would never end by itself


async def test_a_second_call_of_the_same_id_is_for_the_sdk_to_judge(tmp_path: Path) -> None:
    async with before_the_sdk(tmp_path, FakeClock()) as (direct, _, asked):
        await Exchange(direct, "one", message("ping")).task
        Exchange(direct, "one", message("tools/call", {"name": "hang"}))
        await settle()
        await Exchange(direct, "one", message("tools/call", ADA)).task
        assert asked == ["ping", "tools/call"]
