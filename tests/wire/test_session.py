"""A session over the server in memory, in both eras."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from luthier.clock import FakeClock, settle
from luthier.errors import CallTimeoutError, ConnectionLostError, ProtocolError
from luthier.tools import Reply
from luthier.wire import (
    KNOWN_VERSIONS,
    Bytes,
    Delay,
    Drop,
    Fail,
    Handlers,
    Hang,
    MemoryServer,
    MemoryTransport,
    Progress,
    Result,
    Session,
    open_session,
)
from luthier.wire.session import MAX_PAGES, META
from tests.wire.support import bounded

if TYPE_CHECKING:
    from collections.abc import Callable


async def session_to(
    server: MemoryServer, clock: FakeClock | None = None, handlers: Handlers | None = None
) -> Session:
    return await bounded(
        open_session(
            server.transport,
            server=server.server_id,
            clock=clock or FakeClock(),
            timeout=10.0,
            handlers=handlers,
        )
    )


@pytest.mark.parametrize("era", KNOWN_VERSIONS)
async def test_a_session_stands_in_every_revision(era: str) -> None:
    server = MemoryServer(
        "m", {"add": lambda arguments: arguments["a"] + arguments["b"]}, era=era, instructions="Sing."
    )
    session = await session_to(server)
    assert (session.version, session.modern, session.instructions) == (era, era == "2026-07-28", "Sing.")
    assert (session.server, session.closed) == ("m", False)
    assert session.capabilities == {"tools": {"listChanged": True}}
    assert [tool.name for tool in (await bounded(session.list_tools(timeout=1.0))).tools] == ["add"]
    assert (await bounded(session.call_tool("add", {"a": 1, "b": 2}, timeout=1.0))).content == 3
    await bounded(session.ping(timeout=1.0))
    await bounded(session.close())
    assert session.closed
    assert await bounded(session.wait_closed()) is None
    assert server.open == []


async def test_every_modern_request_carries_version_and_capabilities() -> None:
    async def give(_: dict[str, Any]) -> dict[str, Any]:
        return {}

    server = MemoryServer("m", {"a": 1})
    session = await session_to(server, handlers=Handlers(sampling=give))
    await bounded(session.list_tools(timeout=1.0))
    await bounded(
        session.call_tool(
            "a", {}, timeout=1.0, timeout_max=2.0, meta={"traceparent": "00", f"{META}protocolVersion": "x"}
        )
    )
    await bounded(session.call_tool("a", {}, timeout=1.0))
    for message in server.received:
        meta = message["params"]["_meta"]
        assert meta[f"{META}protocolVersion"] == "2026-07-28"
        assert meta[f"{META}clientInfo"]["name"] == "luthier"
        assert meta[f"{META}clientCapabilities"] == {
            "sampling": {},
            "extensions": {"io.modelcontextprotocol/tasks": {}},
        }
    assert server.received[2]["params"]["_meta"]["traceparent"] == "00"
    assert server.received[2]["params"]["_meta"]["progressToken"] == 3
    assert "progressToken" not in server.received[3]["params"]["_meta"]


async def test_legacy_requests_carry_only_the_meta_of_the_call() -> None:
    server = MemoryServer("m", {"a": 1}, era="2025-06-18")
    session = await session_to(server)
    await bounded(session.call_tool("a", {}, timeout=1.0, meta={"traceparent": "00"}))
    await bounded(session.call_tool("a", {}, timeout=1.0))
    assert server.received[-2]["params"]["_meta"] == {"traceparent": "00"}
    assert server.received[-1]["params"] == {"name": "a", "arguments": {}}


@pytest.mark.parametrize(
    ("behaviour", "content", "is_error"),
    [
        ({"x": 1}, {"x": 1}, False),
        ([1, 2], [1, 2], False),
        (5, 5, False),
        ("text", "text", False),
        (None, None, False),
        (ValueError("no"), "no", True),
        (KeyError(), "KeyError", True),
        (Reply(blocks=[{"type": "text", "text": "r"}], is_error=True), "r", True),
        (Reply(blocks=[], structured={"s": 1}), {"s": 1}, False),
        ({"content": [{"type": "text", "text": "c"}], "isError": True}, "c", True),
        ({"content": ["chapter"], "pages": 2}, {"content": ["chapter"], "pages": 2}, False),
        ({"isError": False, "structuredContent": 7}, 7, False),
        (lambda arguments: {"got": arguments}, {"got": {"q": 1}}, False),
        (lambda arguments: arguments["missing"], "'missing'", True),
        (lambda _: Delay(0.0, "later"), "later", False),
        (Result({"content": [], "structuredContent": 1}), 1, False),
        (Bytes(b'{"jsonrpc":"2.0","id":$ID,"result":{"content":[],"structuredContent":2}}\n'), 2, False),
    ],
    ids=[
        "object", "list", "number", "text", "null", "exception", "exception without text", "reply",
        "structured reply", "result", "value like a result", "bare result", "callable",
        "callable that raises", "callable that delays", "exact result", "exact bytes",
    ],
)  # fmt: skip
async def test_the_server_in_memory_does_as_it_is_told(behaviour: Any, content: Any, is_error: bool) -> None:  # noqa: FBT001
    clock = FakeClock()
    server = MemoryServer("m", {"t": behaviour}, clock=clock)
    session = await session_to(server, clock)
    call = asyncio.create_task(session.call_tool("t", {"q": 1}, timeout=1.0))
    await clock.advance(0.0)
    reply = await bounded(call)
    assert (reply.content, reply.is_error) == (content, is_error)
    assert server.calls == [("t", {"q": 1})]


async def test_a_callable_may_be_awaited_and_what_it_raises_is_the_tools_own_error() -> None:
    async def slow(arguments: dict[str, Any]) -> Any:
        await asyncio.sleep(0)
        if arguments:
            raise RuntimeError("broken")
        return "fine"

    session = await session_to(MemoryServer("m", {"t": slow}))
    assert (await bounded(session.call_tool("t", {}, timeout=1.0))).content == "fine"
    reply = await bounded(session.call_tool("t", {"x": 1}, timeout=1.0))
    assert (reply.content, reply.is_error) == ("broken", True)


async def test_a_json_rpc_error_is_a_protocol_error_with_its_facts() -> None:
    session = await session_to(MemoryServer("m", {"t": Fail("nope", -32000, {"why": "x"})}))
    with pytest.raises(ProtocolError, match="nope") as caught:
        await bounded(session.call_tool("t", {}, timeout=1.0))
    assert (caught.value.code, caught.value.data, caught.value.tool) == (-32000, {"why": "x"}, "t")
    with pytest.raises(ProtocolError, match="Unknown tool"):
        await bounded(session.call_tool("other", {}, timeout=1.0))


async def test_calls_run_side_by_side_and_a_slow_one_holds_nobody() -> None:
    clock = FakeClock()
    session = await session_to(
        MemoryServer("m", {"slow": Delay(30.0, "slow"), "fast": "fast"}, clock=clock), clock
    )
    slow = asyncio.create_task(session.call_tool("slow", {}, timeout=60.0))
    assert (await bounded(session.call_tool("fast", {}, timeout=1.0))).content == "fast"
    await clock.advance(30.0)
    assert (await bounded(slow)).content == "slow"


async def test_a_hanging_call_times_out_and_the_server_is_told() -> None:
    clock = FakeClock()
    server = MemoryServer("m", {"t": Hang(), "d": Delay(9.0, "x")}, clock=clock)
    session = await session_to(server, clock)
    calls = [asyncio.create_task(session.call_tool(name, {}, timeout=2.0)) for name in ("t", "d")]
    await clock.advance(2.0)
    for call in calls:
        with pytest.raises(CallTimeoutError):
            await bounded(call)
    assert server.cancelled == [2, 3]
    assert clock.waiting == 0


async def test_a_cancelled_call_is_cancelled_at_the_server() -> None:
    server = MemoryServer("m", {"t": Hang()})
    session = await session_to(server)
    call = asyncio.create_task(session.call_tool("t", {}, timeout=None))
    await settle()
    call.cancel()
    await settle()
    assert call.cancelled()
    assert server.cancelled == [2]


async def test_progress_keeps_a_long_call_alive_and_is_reported() -> None:
    clock = FakeClock()
    session = await session_to(MemoryServer("m", {"t": Progress(4, 1.5, "done")}, clock=clock), clock)
    seen: list[tuple[float, float | None, str]] = []
    call = asyncio.create_task(
        session.call_tool(
            "t", {}, timeout=2.0, timeout_max=20.0, on_progress=lambda *report: seen.append(report)
        )
    )
    await clock.advance(6.0)
    assert (await bounded(call)).content == "done"
    assert seen == [(1, 4, "step 1"), (2, 4, "step 2"), (3, 4, "step 3"), (4, 4, "step 4")]


async def test_no_progress_is_reported_to_whoever_did_not_ask() -> None:
    clock = FakeClock()
    session = await session_to(MemoryServer("m", {"t": Progress(2, 0.1, "done")}, clock=clock), clock)
    call = asyncio.create_task(session.call_tool("t", {}, timeout=2.0))
    await clock.advance(1.0)
    assert (await bounded(call)).content == "done"


async def test_a_lost_connection_fails_every_call_at_once_and_ends_the_session() -> None:
    server = MemoryServer("m", {"hang": Hang(), "drop": Drop()})
    session = await session_to(server)
    hanging = asyncio.create_task(session.call_tool("hang", {}, timeout=None))
    await settle()
    with pytest.raises(ConnectionLostError, match="What became of tools/call 'drop' is not known"):
        await bounded(session.call_tool("drop", {}, timeout=None))
    with pytest.raises(ConnectionLostError):
        await bounded(hanging)
    assert session.closed
    assert isinstance(await bounded(session.wait_closed()), ConnectionLostError)
    with pytest.raises(ConnectionLostError, match="Nothing of tools/call 'hang' was sent"):
        await bounded(session.call_tool("hang", {}, timeout=None))


async def test_dropping_all_connections_is_a_crash() -> None:
    server = MemoryServer("m", {"t": 1})
    session = await session_to(server)
    server.drop()
    assert session.closed
    again = await session_to(server)
    assert (await bounded(again.call_tool("t", {}, timeout=1.0))).content == 1
    assert server.connections == 2


async def test_all_pages_of_a_list_are_read() -> None:
    server = MemoryServer("m", {f"t{number}": number for number in range(7)})
    server.page_size = 3
    manifest = await bounded((await session_to(server)).list_tools(timeout=1.0))
    assert [tool.name for tool in manifest.tools] == [f"t{number}" for number in range(7)]
    assert [message["params"].get("cursor") for message in server.received[1:]] == [None, "3", "6"]


class Odd(MemoryServer):
    """Hands the methods named in `instead` to the test."""

    def __init__(
        self, instead: dict[str, Callable[[MemoryTransport, dict[str, Any]], None]], **how: Any
    ) -> None:
        super().__init__("m", **how)
        self.instead = instead

    def take(self, connection: MemoryTransport, message: dict[str, Any]) -> None:
        instead = self.instead.get(message.get("method", ""))
        if instead is None:
            super().take(connection, message)
        else:
            instead(connection, message)


def answer(connection: MemoryTransport, message: dict[str, Any], body: dict[str, Any]) -> None:
    connection.deliver(msgspec.json.encode({"jsonrpc": "2.0", "id": message["id"], **body}) + b"\n")


async def serve_pages(pages: list[dict[str, Any]]) -> tuple[Session, list[str], list[Any]]:
    """A session with a legacy server whose tool list is these pages, the last of them for ever."""
    told: list[str] = []
    cursors: list[Any] = []

    def page(connection: MemoryTransport, message: dict[str, Any]) -> None:
        cursors.append(message["params"].get("cursor"))
        answer(connection, message, pages[min(len(cursors), len(pages)) - 1])

    server = Odd({"tools/list": page}, era="2025-11-25")
    return await session_to(server, handlers=Handlers(on_noise=told.append)), told, cursors


@pytest.mark.parametrize("end", [{}, {"nextCursor": None}, {"nextCursor": ""}], ids=repr)
async def test_an_empty_or_missing_cursor_ends_a_list(end: dict[str, Any]) -> None:
    session, told, cursors = await serve_pages(
        [{"result": {"tools": [], "nextCursor": "2"}}, {"result": {"tools": []} | end}]
    )
    await bounded(session.list_tools(timeout=1.0))
    assert (cursors, told) == ([None, "2"], [])


async def test_a_cursor_that_repeats_itself_ends_a_list() -> None:
    session, told, cursors = await serve_pages([{"result": {"tools": [], "nextCursor": 2}}])
    await bounded(session.list_tools(timeout=1.0))
    assert cursors == [None, 2]
    assert "repeats itself" in told[0]


async def test_a_list_without_end_is_ended() -> None:
    pages = [{"result": {"tools": [], "nextCursor": str(number)}} for number in range(MAX_PAGES + 5)]
    session, told, cursors = await serve_pages(pages)
    await bounded(session.list_tools(timeout=1.0))
    assert len(cursors) == MAX_PAGES
    assert "1000 pages" in told[0]


async def test_a_list_that_takes_too_long_is_told_of_with_all_its_time() -> None:
    held: list[tuple[MemoryTransport, dict[str, Any]]] = []
    server = Odd({"tools/list": lambda *asked: held.append(asked)}, era="2025-11-25")
    clock = FakeClock()
    session = await session_to(server, clock=clock)
    listing = asyncio.ensure_future(session.list_tools(timeout=5))
    await settle()
    await clock.advance(4)
    answer(*held[0], {"result": {"tools": [], "nextCursor": "2"}})
    await settle()
    await clock.advance(1)
    with pytest.raises(CallTimeoutError, match="did not answer tools/list within 5 s"):
        await bounded(listing)
    assert len(held) == 2


async def test_a_bad_definition_is_dropped_and_told_of_in_the_manifest() -> None:
    server = MemoryServer(
        "m", {"good": 1, "bad": 2}, definitions={"bad": {"inputSchema": None}, "good": {"outputSchema": 5}}
    )
    told: list[str] = []
    manifest = await bounded(
        (await session_to(server, handlers=Handlers(on_noise=told.append))).list_tools(timeout=1.0)
    )
    assert [tool.name for tool in manifest.tools] == ["good"]
    assert [(tool.name, tool.reason) for tool in manifest.dropped] == [
        ("bad", "its inputSchema is null, not an object")
    ]
    assert told == ["the outputSchema of good is not an object: not used"]


async def test_a_server_without_tools_lists_none() -> None:
    session, _, _ = await serve_pages([{"error": {"code": -32601, "message": "Method not found"}}])
    with pytest.raises(ProtocolError, match="Method not found"):
        await bounded(session.list_tools(timeout=1.0))
    session.capabilities = {}
    assert (await bounded(session.list_tools(timeout=1.0))).tools == ()


@pytest.mark.parametrize("result", [[1], "x", None], ids=repr)
async def test_a_list_that_is_no_list_is_a_protocol_fault(result: Any) -> None:
    session, _, _ = await serve_pages([{"result": result}])
    with pytest.raises(ProtocolError, match="tools/list") as caught:
        await bounded(session.list_tools(timeout=1.0))
    assert caught.value.phase == "list"


async def test_the_time_for_a_list_is_shared_by_its_pages() -> None:
    clock = FakeClock()

    def slowly(connection: MemoryTransport, message: dict[str, Any]) -> None:
        body = {"result": {"tools": [], "nextCursor": str(len(server.received)), "resultType": "complete"}}
        server.received.append(message)
        clock.call_later(1.0, lambda: answer(connection, message, body))

    server = Odd({"tools/list": slowly}, clock=clock)
    session = await session_to(server, clock)
    listing = asyncio.create_task(session.list_tools(timeout=2.5))
    await clock.advance(2.5)
    with pytest.raises(CallTimeoutError, match="tools/list"):
        await bounded(listing)
    assert (
        len(server.received) == 1 + 3 + 1
    )  # discover, three pages, the word that the third is no longer wanted


async def test_any_answer_to_a_ping_shows_that_the_server_lives() -> None:
    clock = FakeClock()
    server = MemoryServer("m", era="2025-11-25", clock=clock)
    session = await session_to(server, clock)
    await bounded(session.ping(timeout=1.0))
    assert server.received[-1]["method"] == "ping"
    server.version = "2026-07-28"  # from here on it refuses every request that does not carry it
    await bounded(session.ping(timeout=1.0))


async def test_a_ping_without_an_answer_times_out() -> None:
    clock = FakeClock()
    session = await session_to(Odd({"ping": lambda *_: None}, era="2025-11-25", clock=clock), clock)
    ping = asyncio.create_task(session.ping(timeout=1.0))
    await clock.advance(1.0)
    with pytest.raises(CallTimeoutError):
        await bounded(ping)


async def test_a_ping_answered_with_rubbish_is_a_fault() -> None:
    rubbish = Odd({"ping": lambda connection, message: answer(connection, message, {})}, era="2025-11-25")
    session = await session_to(rubbish)
    with pytest.raises(ProtocolError, match="neither"):
        await bounded(session.ping(timeout=1.0))


async def test_a_server_that_was_told_not_to_read_holds_calls() -> None:
    clock = FakeClock()
    server = MemoryServer("m", {"t": 1}, clock=clock)
    session = await session_to(server, clock)
    (connection,) = server.open
    connection.congest(on=True)
    call = asyncio.create_task(session.call_tool("t", {}, timeout=5.0))
    await clock.advance(1.0)
    assert server.calls == []
    connection.congest(on=False)
    assert (await bounded(call)).content == 1
    connection.congest(on=True)
    call = asyncio.create_task(session.call_tool("t", {}, timeout=5.0))
    await settle()
    await bounded(session.close())
    with pytest.raises(ConnectionLostError):
        await bounded(call)


async def test_a_modern_server_is_asked_to_tell_of_changes_to_whoever_listens() -> None:
    changes: list[int] = []
    server = MemoryServer(
        "m", {"t": Bytes(b'{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"lost"}}\n')}
    )
    session = await session_to(server, handlers=Handlers(on_tools_changed=lambda: changes.append(1)))
    await settle()
    assert server.received[1]["method"] == "subscriptions/listen"
    assert server.received[1]["params"]["notifications"] == {"toolsListChanged": True}
    server.notify("notifications/tools/list_changed")
    await settle()
    assert changes == [1]
    with pytest.raises(ProtocolError, match="lost"):  # the subscription is not the only request in flight
        await bounded(session.call_tool("t", {}, timeout=1.0))
    await bounded(session.close())


@pytest.mark.parametrize(
    "capabilities", [{}, {"tools": {}}, {"tools": {"listChanged": "yes"}}, {"tools": 1}], ids=repr
)
async def test_a_modern_server_that_tells_of_no_changes_is_not_asked(capabilities: dict[str, Any]) -> None:
    body = {"result": {"supportedVersions": ["2026-07-28"], "capabilities": capabilities}}
    server = Odd({"server/discover": lambda connection, message: answer(connection, message, body)})
    await session_to(server, handlers=Handlers(on_tools_changed=lambda: None))
    await settle()
    assert server.received == []


async def test_noise_on_the_way_is_told_and_costs_nothing() -> None:
    told: list[str] = []
    server = MemoryServer("m", {"t": 1})
    session = await session_to(server, handlers=Handlers(on_noise=told.append))
    server.say(b"a log line\n\xff\n")
    server.say(b"half a li")
    server.say(b"ne\n")
    server.say(b"x" * (64 * 1024 * 1024 + 1) + b"\n")
    assert (await bounded(session.call_tool("t", {}, timeout=1.0))).content == 1
    assert len(told) == 4


async def test_noise_is_told_at_first_and_then_now_and_then() -> None:
    told: list[str] = []
    server = MemoryServer("m", {"t": 1})
    session = await session_to(server, handlers=Handlers(on_noise=told.append))
    server.say(b"a log line\n" * 2500)
    assert (await bounded(session.call_tool("t", {}, timeout=1.0))).content == 1
    assert len(told) == 52
    assert "oddity number 2,000" in told[-1]


async def test_a_listener_that_fails_on_noise_is_logged_and_nothing_is_lost(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def listen(_: str) -> None:
        raise ValueError("bad listener")

    server = MemoryServer("m", {"t": 1})
    session = await session_to(server, handlers=Handlers(on_noise=listen))
    server.say(b"a log line\n")
    assert (await bounded(session.call_tool("t", {}, timeout=1.0))).content == 1
    assert "a listener failed on: something was passed over" in caplog.text


def test_an_unknown_era_is_refused_by_the_server_in_memory() -> None:
    with pytest.raises(ValueError, match="no known revision"):
        MemoryServer("m", era="1999-01-01")
    assert MemoryServer("m", era="modern").version == "2026-07-28"


async def test_descriptions_and_definitions_are_listed_as_they_were_given() -> None:
    server = MemoryServer(
        "m", {"a": 1, "b": 2}, descriptions={"a": "first"}, definitions={"b": {"title": "B"}}
    )
    manifest = await bounded((await session_to(server)).list_tools(timeout=1.0))
    assert [(tool.description, tool.title) for tool in manifest.tools] == [("first", ""), ("", "B")]


async def test_a_modern_server_refuses_requests_of_other_eras() -> None:
    server = MemoryServer("m", {"a": 1}, era="2024-11-05")
    session = await session_to(server)
    server.version = "2026-07-28"
    with pytest.raises(ProtocolError, match="is missing"):
        await bounded(session.call_tool("a", {}, timeout=1.0))
    with pytest.raises(ProtocolError, match="Unsupported protocol version") as caught:
        await bounded(session.call_tool("a", {}, timeout=1.0, meta={f"{META}protocolVersion": "2027-01-01"}))
    assert caught.value.data == {"supported": ["2026-07-28"], "requested": "2027-01-01"}


async def test_what_a_server_still_works_on_ends_with_its_connection() -> None:
    ended = asyncio.Event()

    async def work(_: dict[str, Any]) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    server = MemoryServer("m", {"t": work, "u": Hang()})
    session = await session_to(server)
    call = asyncio.create_task(session.call_tool("t", {}, timeout=None))
    await settle()
    await bounded(session.close())
    assert ended.is_set()
    assert isinstance((await bounded(asyncio.gather(call, return_exceptions=True)))[0], ConnectionLostError)


async def test_after_the_end_of_a_connection_nothing_crosses_it() -> None:
    told: list[str] = []
    server = MemoryServer("m", {"t": 1})
    session = await session_to(server, handlers=Handlers(on_noise=told.append))
    (connection,) = server.open
    server.say(b"one\ntwo\n")
    call = asyncio.create_task(session.call_tool("t", {}, timeout=None))
    await asyncio.sleep(0)
    connection.lose()
    connection.lose()
    await settle()
    assert server.calls == []
    assert isinstance((await bounded(asyncio.gather(call, return_exceptions=True)))[0], ConnectionLostError)


async def test_an_answer_to_a_question_that_was_never_asked_is_passed_over() -> None:
    server = MemoryServer("m", {"t": 1}, era="2025-11-25")
    session = await session_to(server)
    (connection,) = server.open
    server.take(connection, {"id": "server-9", "result": {}})
    connection.stop("nothing")
    await bounded(session.ping(timeout=1.0))


class Unsaid(Exception):
    def __str__(self) -> str:
        raise ZeroDivisionError


ENDLESS: list[Any] = []
ENDLESS.append(ENDLESS)

FORMLESS: dict[str, Any] = {
    "an object": object(),
    "a key": Result({(1, 2): 1}),
    "an error's data": Fail("no", data=object()),
    "half a character": "\ud83d",
    "half a character in an error": Fail("\ud83d"),
    "a circle": ENDLESS,
    "a circle in a result": Result({"content": ENDLESS}),
    "an exception that cannot be told": Unsaid(),
    "later": Delay(0.0, object()),
    "a behaviour that is none": Delay("soon"),  # type: ignore[arg-type]
    "progress that is none": Progress("many"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("formless", FORMLESS.values(), ids=FORMLESS)
@pytest.mark.parametrize("era", ["modern", "2025-11-25"])
async def test_what_has_no_form_in_json_is_an_error_and_no_hang(formless: Any, era: str) -> None:
    async def in_time(_: Any) -> Any:
        return formless

    server = MemoryServer("m", {"t": formless, "u": lambda _: formless, "v": in_time, "w": 1}, era=era)
    session = await session_to(server)
    for name in ("t", "u", "v"):
        with pytest.raises(ProtocolError, match=r"no form in JSON|cannot do that"):
            await bounded(session.call_tool(name, {}, timeout=None))
    assert (await bounded(session.call_tool("w", {}, timeout=None))).content == 1
