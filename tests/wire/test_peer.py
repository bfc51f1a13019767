"""What a server may ask of its client."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from luthier.clock import FakeClock, settle
from luthier.wire import Handlers, MemoryServer, Session, open_session
from luthier.wire.peer import MOST_AT_ONCE
from tests.wire.support import bounded


async def session_with(handlers: Handlers | None = None) -> tuple[Session, MemoryServer]:
    server = MemoryServer("m", era="2025-11-25")
    clock = FakeClock()
    start = open_session(server.transport, server="m", clock=clock, timeout=5.0, handlers=handlers)
    return await bounded(start), server


async def test_a_ping_is_answered() -> None:
    _, server = await session_with()
    assert (await bounded(server.ask("ping")))["result"] == {}


@pytest.mark.parametrize("method", ["sampling/createMessage", "elicitation/create", "roots/list", "made/up"])
async def test_a_request_without_a_handler_is_refused_politely(method: str) -> None:
    _, server = await session_with()
    error = (await bounded(server.ask(method)))["error"]
    assert error["code"] == -32601
    assert method in error["message"]


@pytest.mark.parametrize(
    ("name", "method"),
    [("sampling", "sampling/createMessage"), ("elicitation", "elicitation/create"), ("roots", "roots/list")],
)
async def test_a_handler_is_offered_to_the_server_and_answers(name: str, method: str) -> None:
    async def handle(params: dict[str, Any]) -> dict[str, Any]:
        return {"got": params}

    _, server = await session_with(replace(Handlers(), **{name: handle}))
    assert server.received[1]["params"]["capabilities"] == {name: {}}
    assert (await bounded(server.ask(method, {"x": 1})))["result"] == {"got": {"x": 1}}


async def test_a_handler_that_fails_is_told_and_answered_for() -> None:
    async def handle(_: dict[str, Any]) -> dict[str, Any]:
        raise RuntimeError("secret detail")

    told: list[str] = []
    _, server = await session_with(Handlers(roots=handle, on_noise=told.append))
    error = (await bounded(server.ask("roots/list")))["error"]
    assert error["code"] == -32603
    assert "secret" not in error["message"]
    assert "secret detail" in told[-1]


async def test_a_request_that_the_server_cancels_is_no_longer_worked_on() -> None:
    ended = asyncio.Event()

    async def handle(_: dict[str, Any]) -> dict[str, Any]:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return {}

    _, server = await session_with(Handlers(roots=handle))
    asked = asyncio.create_task(server.ask("roots/list"))
    await settle()
    server.notify("notifications/cancelled", {"requestId": ["odd"]})
    server.notify("notifications/cancelled", {"requestId": "unknown"})
    await settle()
    assert not ended.is_set()
    server.notify("notifications/cancelled", {"requestId": "server-1"})
    await bounded(ended.wait())
    asked.cancel()


async def test_too_many_requests_at_once_are_refused_and_closing_ends_all() -> None:
    working = 0

    async def handle(_: dict[str, Any]) -> dict[str, Any]:
        nonlocal working
        working += 1
        try:
            await asyncio.Event().wait()
        finally:
            working -= 1
        return {}

    session, server = await session_with(Handlers(roots=handle))
    asked = [asyncio.create_task(server.ask("roots/list")) for _ in range(MOST_AT_ONCE)]
    await settle()
    assert working == MOST_AT_ONCE
    assert "Too many" in (await bounded(server.ask("roots/list")))["error"]["message"]
    await bounded(session.close())
    await settle()
    assert working == 0
    for task in asked:
        task.cancel()


async def test_a_change_of_the_tools_is_passed_on_and_its_listener_cannot_do_harm() -> None:
    changes: list[int] = []
    told: list[str] = []

    def changed() -> None:
        changes.append(1)
        if len(changes) == 2:
            raise ValueError("bad listener")

    session, server = await session_with(Handlers(on_tools_changed=changed, on_noise=told.append))
    for _ in range(3):
        server.notify("notifications/tools/list_changed")
    await settle()
    assert len(changes) == 3
    assert "bad listener" in told[-1]
    await bounded(session.ping(timeout=1.0))


async def test_other_notifications_are_taken_in_silence() -> None:
    told: list[str] = []
    session, server = await session_with(Handlers(on_noise=told.append))
    told.clear()
    for method in ("notifications/message", "notifications/tools/list_changed", "notifications/made/up"):
        server.notify(method, {"level": "info"})
    await bounded(session.ping(timeout=1.0))
    assert told == []
