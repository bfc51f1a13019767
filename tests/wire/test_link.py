"""The JSON-RPC peer: whatever the other side sends, each request ends once and the connection goes on."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from luthier.clock import FakeClock, settle
from luthier.errors import (
    CallTimeoutError,
    ConnectError,
    ConnectionLostError,
    MessageTooLargeError,
    ProtocolError,
    WireError,
)
from luthier.wire.codec import Message
from tests.wire.support import HandTransport, bounded, open_link

if TYPE_CHECKING:
    from luthier.wire.link import Link

_any = msgspec.json.Decoder()


def ask(link: Link, **how: Any) -> asyncio.Task[Any]:
    async def result() -> Any:
        raw, notes = await link.request("tools/call", {"name": "t"}, phase="call", tool="t", **how)
        return _any.decode(raw), notes

    return asyncio.create_task(result())


async def asked(count: int = 1, clock: FakeClock | None = None, **how: Any) -> tuple[Any, ...]:
    link, transport, told = await open_link(clock or FakeClock())
    tasks = [ask(link, **how) for _ in range(count)]
    await settle()
    return link, transport, told, tasks


async def fault(task: asyncio.Task[Any]) -> WireError:
    with pytest.raises(WireError) as caught:
        await bounded(task)
    return caught.value


async def test_a_request_is_one_json_message_and_its_answer_is_found_by_id() -> None:
    _, transport, told, (one, two) = await asked(2)
    assert transport.said(0) == {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "t"}}
    assert (transport.sent[1].id, transport.sent[1].method, transport.sent[1].name) == (2, "tools/call", "t")
    transport.give({"jsonrpc": "2.0", "id": 2, "result": "second"})
    transport.give({"jsonrpc": "2.0", "id": 1, "result": "first"})
    assert await bounded(one) == ("first", ())
    assert await bounded(two) == ("second", ())
    assert told == []


@pytest.mark.parametrize("id", [b"1", b'"1"', b"1.0"], ids=["number", "text", "float"])
async def test_an_answer_is_taken_under_its_id_in_any_spelling(id: bytes) -> None:
    _, transport, _, (task,) = await asked()
    transport.give(b'{"jsonrpc":"2.0","id":' + id + b',"result":5}')
    assert (await bounded(task))[0] == 5


@pytest.mark.parametrize(
    ("error", "code", "message", "data"),
    [
        ({"code": -32602, "message": "no", "data": {"x": 1}}, -32602, "no", {"x": 1}),
        ({"code": "-32602", "message": "no"}, -32602, "no", None),
        ({"code": "E_BAD", "message": "no"}, None, "no", {"code": "E_BAD"}),
        ({"code": -1}, -1, "without a message", {"code": -1}),
        ({"code": True, "message": ["odd"]}, None, "without a message", {"code": True}),
        ({"code": -1, "message": None, "data": 5}, -1, "without a message", 5),
        ("boom", None, "boom", None),
        (17, None, "without a message", 17),
    ],
    ids=repr,
)
async def test_an_error_settles_its_request_however_it_is_formed(
    error: Any, code: int | None, message: str, data: Any
) -> None:
    _, transport, _, (task,) = await asked()
    transport.give({"jsonrpc": "2.0", "id": 1, "error": error})
    caught = await fault(task)
    assert isinstance(caught, ProtocolError)
    assert message in str(caught)
    assert (caught.server, caught.tool, caught.phase, caught.sent) == ("s", "t", "call", True)
    assert caught.code == code
    assert caught.data == data


async def test_control_characters_in_an_error_message_are_spelled_out() -> None:
    _, transport, _, (task,) = await asked()
    transport.give({"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "\x1b[31mred"}})
    assert "\\x1b[31mred" in str(await fault(task))


async def test_a_result_beside_a_null_error_is_a_result() -> None:
    _, transport, _, (task,) = await asked()
    transport.give({"jsonrpc": "2.0", "id": 1, "result": 5, "error": None})
    assert (await bounded(task))[0] == 5


async def test_a_result_beside_an_error_is_an_error_and_told() -> None:
    _, transport, told, (task,) = await asked()
    transport.give({"jsonrpc": "2.0", "id": 1, "result": 5, "error": {"code": 1, "message": "no"}})
    assert isinstance(await fault(task), ProtocolError)
    assert "answered with a result and an error" in told[0]


async def test_an_answer_with_neither_result_nor_error_is_a_fault() -> None:
    _, transport, _, (task,) = await asked()
    transport.give({"jsonrpc": "2.0", "id": 1})
    assert "neither a result nor an error" in str(await fault(task))


async def test_an_error_without_id_ends_the_only_request_in_flight() -> None:
    _, transport, _, (task,) = await asked()
    transport.give({"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "Parse error"}})
    assert "Parse error" in str(await fault(task))


async def test_an_error_without_id_ends_nothing_while_several_are_in_flight() -> None:
    _, transport, told, (one, two) = await asked(2)
    transport.give({"jsonrpc": "2.0", "error": {"code": -32700, "message": "Parse error"}})
    assert "without an id" in told[0]
    transport.give({"id": 1, "result": 1})
    transport.give({"id": 2, "result": 2})
    assert ((await bounded(one))[0], (await bounded(two))[0]) == (1, 2)


@pytest.mark.parametrize("id", [7, "x", [1], {"a": 1}, None], ids=repr)
async def test_an_answer_that_nobody_waits_for_is_told_and_passed_over(id: Any) -> None:
    _, transport, told, (task,) = await asked()
    transport.give({"jsonrpc": "2.0", "id": id, "result": "stray"})
    assert len(told) == 1
    transport.give({"id": 1, "result": 1})
    assert (await bounded(task))[0] == 1


async def test_a_second_answer_to_the_same_request_is_told_and_passed_over() -> None:
    _, transport, told, (task,) = await asked()
    transport.give({"id": 1, "result": "first"})
    transport.give({"id": 1, "result": "second"})
    assert (await bounded(task))[0] == "first"
    assert "no request waits under its id 1" in told[0]


async def test_log_lines_and_structured_log_lines_are_passed_over() -> None:
    _, transport, told, (task,) = await asked()
    for line in (b"Starting v1", b"[INFO] ready {", b'{"level":"info","id":1}', b"", b"\r", b"   ", b"{}"):
        transport.give(line)
    transport.give({"id": 1, "result": 1})
    assert (await bounded(task))[0] == 1
    assert len(told) == 4


async def test_a_message_that_is_printed_over_several_lines_is_put_together() -> None:
    _, transport, told, (task,) = await asked()
    for line in (b"{", b'  "jsonrpc": "2.0",\r', b'  "id": 1,', b'  "result": {', b"  }", b"}"):
        transport.give(line)
    assert (await bounded(task))[0] == {}
    assert "spread over several lines" in told[0]


async def test_a_message_in_the_middle_of_a_broken_one_ends_the_broken_one() -> None:
    _, transport, told, (one, two) = await asked(2)
    transport.give(b'{"jsonrpc":"2.0","id":1,"result":{')
    transport.give({"jsonrpc": "2.0", "id": 2, "result": 2})
    assert (await bounded(two))[0] == 2
    assert "cannot be read: another message began" in str(await fault(one))
    assert any("another message began in its middle" in line for line in told)


async def test_lines_swallowed_by_a_broken_message_are_read_once_it_is_given_up() -> None:
    clock = FakeClock()
    _, transport, _, (one, two) = await asked(2, clock)
    transport.give(b'{"oops": {')
    transport.give(b'{"id":1,"result":1}')
    transport.give(b'{"id":2,"result":2}')
    await clock.advance(2.0)
    assert ((await bounded(one))[0], (await bounded(two))[0]) == (1, 2)
    assert clock.waiting == 0


async def test_a_message_that_breaks_off_ends_its_request_long_before_the_deadline() -> None:
    clock = FakeClock()
    _, transport, _, (task,) = await asked(1, clock, timeout=30.0)
    transport.give(b'{"jsonrpc": "2.0", "id": 1, "result": {')
    await clock.advance(1.9)
    transport.give(b'  "content": [')
    await clock.advance(1.9)
    assert not task.done()
    await clock.advance(0.2)
    assert "broke off" in str(await fault(task))


async def test_a_message_of_too_many_lines_is_given_up() -> None:
    _, transport, told, (task,) = await asked()
    transport.give(b'{"jsonrpc": "2.0", "id": 1, "result": [')
    for _ in range(11):
        transport.give(b'"' + b"x" * 1024 * 1024 + b'",')
    assert "too many lines" in str(await fault(task))
    assert any("too many lines" in line for line in told)


async def test_a_message_put_together_that_is_no_json_ends_its_request() -> None:
    _, transport, _, (task,) = await asked()
    for line in (b'{"jsonrpc": "2.0", "id": 1, "result": {', b"oops", b"}}"):
        transport.give(line)
    assert "cannot be read" in str(await fault(task))


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","id":1,"result":{"a":oops}}',
        b'{"id":"1","jsonrpc":"2.0","error":oops}',
        b'{"jsonrpc":"2.0","result":{"id":2,"a":oops},"id":1}',
        b'{"result":oops,"id":1,"jsonrpc":"2.0"}',
        b'{"jsonrpc":"2.0","id":1,"result":' + b"[" * 3000 + b"]" * 3000 + b"}",
    ],
    ids=["id first", "id before jsonrpc", "id last", "id before jsonrpc, last", "too deep"],
)
async def test_an_answer_that_cannot_be_read_ends_the_request_that_it_names(line: bytes) -> None:
    _, transport, _, (one, two) = await asked(2)
    transport.give(line)
    assert "cannot be read" in str(await fault(one))
    assert not two.done()
    two.cancel()


async def test_an_unreadable_answer_without_id_ends_the_only_request_in_flight() -> None:
    _, transport, _, (task,) = await asked()
    transport.give(b'{"jsonrpc":"2.0","result":oops}')
    assert "cannot be read" in str(await fault(task))


async def test_an_unreadable_answer_without_id_is_mentioned_to_whoever_times_out() -> None:
    clock = FakeClock()
    _, transport, _, tasks = await asked(2, clock, timeout=5.0)
    transport.give(b'{"jsonrpc":"2.0","result":oops}')
    await clock.advance(5.0)
    for task in tasks:
        assert "an answer that could not be read was passed over" in str(await fault(task))


async def test_broken_text_that_is_no_answer_ends_nothing() -> None:
    _, transport, _, (task,) = await asked()
    transport.give(b'{"jsonrpc":"2.0","id":1,"method":"roots/list","params":oops}')
    transport.give(b'{"level": oops}')
    await settle()
    assert not task.done()
    task.cancel()


async def test_a_batch_is_read_message_by_message() -> None:
    _, transport, _, (one, two) = await asked(2)
    transport.give(
        [
            {"id": 2, "result": 2},
            {"method": "notifications/x"},
            {"id": 1, "error": {"code": 1, "message": "no"}},
        ]
    )
    assert (await bounded(two))[0] == 2
    assert isinstance(await fault(one), ProtocolError)


async def test_what_was_odd_in_an_answer_comes_with_it() -> None:
    _, transport, told, (task,) = await asked()
    transport.give(b'{"id":1,"result":NaN}')
    assert await bounded(task) == (None, ("NaN was read as null",))
    assert told == ["a message was read although NaN was read as null"]


@pytest.mark.parametrize(
    ("head", "tail"),
    [
        (b'{"jsonrpc":"2.0","id":1,"result":{"x":', b"}}"),
        (b'{"jsonrpc":"2.0","result":{"x":', b'"},"id":1}'),
        (b'{"result":{"x":', b'"},"id":"1","jsonrpc":"2.0"}\r'),
    ],
    ids=["id first", "id last", "id before jsonrpc"],
)
async def test_an_answer_that_is_too_large_ends_the_request_that_it_names(head: bytes, tail: bytes) -> None:
    _, transport, _, (one, two) = await asked(2)
    transport.receiver.oversized(head, tail, 11_000_000)
    caught = await fault(one)
    assert isinstance(caught, MessageTooLargeError)
    assert "11,000,000 bytes" in str(caught)
    assert "max_message_bytes" in caught.hint
    assert not two.done()
    two.cancel()


async def test_an_answer_that_is_too_large_and_nameless_ends_the_only_one_or_is_mentioned() -> None:
    clock = FakeClock()
    _, transport, _, (task,) = await asked(1, clock)
    transport.receiver.oversized(b'{"jsonrpc":"2.0","result":"x', b'xx"}', 99)
    assert isinstance(await fault(task), MessageTooLargeError)
    _, transport, _, (one, two) = await asked(2, clock, timeout=1.0)
    transport.receiver.oversized(b'{"jsonrpc":"2.0","result":"x', b'xx"}', 99)
    await clock.advance(1.0)
    assert "too large was thrown away" in str(await fault(one))
    assert isinstance(await fault(two), CallTimeoutError)


@pytest.mark.parametrize(
    "head",
    [
        b'{"jsonrpc":"2.0","method":"notifications/x","params":{"result":',
        b'{"jsonrpc":"2.0","id":1,"method":"x"',
        b"log",
    ],
    ids=["notification", "request under the same id", "noise"],
)
async def test_anything_else_that_is_too_large_ends_nothing(head: bytes) -> None:
    _, transport, told, (task,) = await asked()
    transport.receiver.oversized(head, b'"id":1}', 99)
    await settle()
    assert not task.done()
    assert "thrown away" in told[0]
    task.cancel()


async def test_a_transport_may_fail_a_single_request() -> None:
    _, transport, _, (one, two) = await asked(2)
    transport.receiver.failed(1, ConnectError("HTTP 503", server="s"))
    transport.receiver.failed(1, ConnectError("again", server="s"))
    assert "HTTP 503" in str(await fault(one))
    transport.give({"id": 2, "result": 2})
    assert (await bounded(two))[0] == 2


async def test_without_an_answer_in_time_the_server_is_told() -> None:
    clock = FakeClock()
    _, transport, _, (task,) = await asked(1, clock, timeout=2.0)
    await clock.advance(1.999)
    assert not task.done()
    await clock.advance(0.001)
    caught = await fault(task)
    assert isinstance(caught, CallTimeoutError)
    assert (caught.sent, caught.tool, caught.phase) == (True, "t", "call")
    assert "within 2 s" in str(caught)
    ((id, notice),) = transport.cancelled
    assert id == 1
    assert notice["method"] == "notifications/cancelled"
    assert notice["params"]["requestId"] == 1


async def test_a_short_deadline_is_told_in_milliseconds() -> None:
    clock = FakeClock()
    _, _, _, (task,) = await asked(1, clock, timeout=0.05)
    await clock.advance(0.05)
    assert "within 50 ms" in str(await fault(task))


async def test_when_the_caller_is_cancelled_the_server_is_told() -> None:
    _, transport, _, (task,) = await asked()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await bounded(task)
    assert [id for id, _ in transport.cancelled] == [1]
    transport.give({"id": 1, "result": "late"})


async def test_when_the_answer_was_there_first_nothing_is_cancelled() -> None:
    _, transport, _, (task,) = await asked()
    transport.give({"id": 1, "result": 1})
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await bounded(task)
    assert transport.cancelled == []


async def test_progress_extends_a_deadline_up_to_its_maximum() -> None:
    clock = FakeClock()
    _, transport, _, (task,) = await asked(1, clock, timeout=2.0, timeout_max=5.0)
    assert transport.said(0)["params"]["_meta"] == {"progressToken": 1}
    for step in range(4):
        await clock.advance(1.2)
        transport.give(
            {"method": "notifications/progress", "params": {"progressToken": "1", "progress": step}}
        )
    await clock.advance(0.19)
    assert not task.done()
    await clock.advance(0.01)
    assert "within 5 s" in str(await fault(task))


async def test_a_listener_is_told_of_progress_and_cannot_do_harm() -> None:
    seen: list[Any] = []

    def listen(progress: float, total: float | None, message: str) -> None:
        seen.append((progress, total, message))
        if message == "bad":
            raise ValueError(message)

    _, transport, told, (task,) = await asked(1, None, on_progress=listen)
    reports: list[Any] = [
        {"progressToken": 1, "progress": 1, "total": 2, "message": "half"},
        {"progressToken": 1, "progress": 1.5, "total": "two", "message": 5},
        {"progressToken": 1, "progress": "many"},
        {"progressToken": 1, "progress": True},
        {"progressToken": 9, "progress": 1},
        {"progressToken": 1, "progress": 2, "message": "bad"},
        [],
    ]
    for report in reports:
        transport.give({"method": "notifications/progress", "params": report})
    transport.give({"id": 1, "result": 1})
    assert (await bounded(task))[0] == 1
    assert seen == [(1, 2, "half"), (1.5, None, ""), (2, None, "bad")]
    assert len(told) == 1


async def test_without_extension_and_listener_no_progress_is_asked_for() -> None:
    _, transport, _, (task,) = await asked(1, None, timeout=5.0)
    assert "_meta" not in transport.said(0)["params"]
    task.cancel()


async def test_the_end_of_the_connection_fails_every_request_in_flight() -> None:
    link, transport, _, tasks = await asked(3)
    why = ConnectionLostError(
        "Server 's' exited with status 3.", server="s", exit_status=3, stderr_tail="oops"
    )
    transport.receiver.ended(why)
    transport.receiver.ended(None)
    for task in tasks:
        caught = await fault(task)
        assert isinstance(caught, ConnectionLostError)
        assert (caught.sent, caught.exit_status, caught.stderr_tail, caught.tool) == (True, 3, "oops", "t")
        assert str(caught) == "Server 's' exited with status 3. What became of tools/call 't' is not known."
    assert link.closed
    assert await bounded(link.wait_closed()) is why


async def test_after_the_end_nothing_is_sent() -> None:
    link, transport, _, _ = await asked(0)
    transport.receiver.ended(None)
    caught = await fault(ask(link))
    assert isinstance(caught, ConnectionLostError)
    assert not caught.sent
    assert transport.sent == []


async def test_the_end_in_the_middle_of_a_message_gives_that_message_up() -> None:
    clock = FakeClock()
    _, transport, told, (task,) = await asked(1, clock)
    transport.give(b'{"jsonrpc":"2.0","id":1,"result":{')
    transport.receiver.ended(None)
    assert "ends in the middle" in str(await fault(task))
    assert told
    assert clock.waiting == 0


async def test_closing_ends_what_is_in_flight_and_the_transport() -> None:
    link, transport, _, (task,) = await asked()
    await link.close()
    assert isinstance(await fault(task), ConnectionLostError)
    assert transport.closed
    assert await bounded(link.wait_closed()) is None


async def test_what_cannot_be_written_as_json_is_refused_before_it_is_sent() -> None:
    link, transport, _ = await open_link(FakeClock())
    with pytest.raises(ProtocolError, match="object has no form") as caught:
        await link.request("tools/call", {"arguments": {"a": object()}}, phase="call", tool="t")
    assert not caught.value.sent
    assert transport.sent == []


async def test_a_server_that_does_not_read_holds_its_callers_until_it_does() -> None:
    clock = FakeClock()
    transport = HandTransport()
    transport.free.clear()
    link, _, _ = await open_link(clock, transport)
    patient, hasty = ask(link, timeout=5.0), ask(link, timeout=1.0)
    await clock.advance(1.0)
    caught = await fault(hasty)
    assert isinstance(caught, CallTimeoutError)
    assert not caught.sent
    assert "it reads nothing" in str(caught)
    assert transport.sent == []
    transport.free.set()
    await settle()
    assert len(transport.sent) == 1
    await clock.advance(4.0)
    caught = await fault(patient)
    assert isinstance(caught, CallTimeoutError)
    assert caught.sent


async def test_requests_and_notifications_of_the_server_reach_those_who_answer() -> None:
    link, transport, told = await open_link(FakeClock())
    seen: list[Any] = []
    link.on_request = lambda id, method, params: seen.append((id, method, params))
    link.on_notification = lambda method, params: seen.append((method, params))
    transport.give({"id": "a", "method": "roots/list"})
    transport.give({"method": "notifications/x", "params": {"y": 1}})
    transport.give({"id": None, "method": "notifications/z", "params": [1]})
    transport.give(b'{"method":"notifications/odd","params":{"x":1e999}}')
    transport.give({"method": 5, "id": 1})
    assert seen == [
        ("a", "roots/list", {}),
        ("notifications/x", {"y": 1}),
        ("notifications/z", {}),
        ("notifications/odd", {"x": None}),
    ]
    assert len(told) == 1


async def test_requests_of_the_server_are_passed_over_where_nobody_answers() -> None:
    _, transport, _ = await open_link(FakeClock())
    transport.give({"id": "a", "method": "roots/list"})
    transport.give({"method": "notifications/x"})
    assert transport.sent == []


async def test_params_that_cannot_be_read_are_told_and_taken_as_none() -> None:
    link, _, told = await open_link(FakeClock())
    seen: list[Any] = []
    link.on_notification = lambda method, params: seen.append((method, params))
    link.deliver(Message(method="notifications/x", params=msgspec.Raw(b"oops")), ())
    assert seen == [("notifications/x", {})]
    assert "could not be read" in told[0]


async def test_answers_go_out_unless_the_server_does_not_read() -> None:
    link, transport, told = await open_link(FakeClock())
    link.reply("a", result={"x": 1})
    link.reply(7, error={"code": 1, "message": "no"})
    assert [transport.said(0), transport.said(1)] == [
        {"jsonrpc": "2.0", "id": "a", "result": {"x": 1}},
        {"jsonrpc": "2.0", "id": 7, "error": {"code": 1, "message": "no"}},
    ]
    transport.free.clear()
    link.reply("b", result={})
    assert len(transport.sent) == 2
    assert "does not read" in told[0]


async def test_the_revision_goes_out_with_every_message_once_it_is_settled() -> None:
    link, transport, _ = await open_link(FakeClock())
    link.version = "2025-06-18"
    link.notify("notifications/initialized")
    link.notify("notifications/x", {"y": 1})
    link.reply(1, result={})
    task = ask(link)
    await settle()
    assert {message.version for message in transport.sent} == {"2025-06-18"}
    assert transport.said(0) == {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert transport.said(1)["params"] == {"y": 1}
    task.cancel()


frames = st.one_of(
    st.binary(max_size=80),
    st.sampled_from(
        [
            b'{"jsonrpc":"2.0","id":1,"result":{}}',
            b'{"jsonrpc":"2.0","id":"2","error":{"code":1}}',
            b'{"jsonrpc":"2.0","id":3,"result":NaN}',
            b'{"jsonrpc":"2.0","id":2,"result":{',
            b'{"jsonrpc":"2.0","id":null,"error":"x"}',
            b'{"jsonrpc":"2.0","result":oops}',
            b'[{"id":1,"result":1},{"id":9,"result":1}]',
            b"}}",
            b"{",
            b'"',
            b'{"method":"notifications/progress","params":{"progressToken":1,"progress":1}}',
            b'{"id":5,"method":"ping"}',
        ]
    ),
)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.one_of(frames, st.floats(0.1, 3.0)), max_size=15))
async def test_whatever_arrives_every_request_ends_exactly_once(script: list[bytes | float]) -> None:
    clock = FakeClock()
    link, transport, _, tasks = await asked(3, clock, timeout=4.0, timeout_max=8.0)
    for step in script:
        if isinstance(step, bytes):
            transport.give(step)
        else:
            await clock.advance(step)
    await clock.advance(20.0)
    outcomes = await bounded(asyncio.gather(*tasks, return_exceptions=True))
    assert all(isinstance(outcome, tuple | WireError) for outcome in outcomes)
    extra = ask(link)
    await settle()
    transport.give({"id": 4, "result": "still there"})
    assert (await bounded(extra))[0] == "still there"
    assert clock.waiting == 0
