"""Calls that a server makes tasks of: followed to their end, called off with their caller."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from luthier.clock import FakeClock, settle
from luthier.errors import CallTimeoutError, ConnectionLostError, ProtocolError, WireError
from luthier.wire import Fail, Handlers, Hang, MemoryServer, Result, Session, open_session
from luthier.wire.behaviour import Drop, result_of
from luthier.wire.tasks import CANCELLING, POLL, SHORTEST_POLL
from tests.wire.support import bounded

if TYPE_CHECKING:
    from luthier.tools import Reply


class TaskServer(MemoryServer):
    """Makes a task of every call. `states` are what it says of it in turn, the last one for ever."""

    def __init__(self, *states: Any, handle: dict[str, Any] | None = None) -> None:
        created = {"resultType": "task", "taskId": "t-1", "status": "working", **(handle or {})}
        super().__init__("m", {"dig": Result(created)}, clock=FakeClock())
        self.states = list(states)
        self.asked: list[str] = []

    def _behaviour(self, method: str, params: dict[str, Any]) -> Any:
        if not method.startswith("tasks/"):
            return super()._behaviour(method, params)
        assert params["taskId"] == "t-1"
        self.asked.append(method)
        if method in ("tasks/cancel", "tasks/update"):
            return Result({})
        state = self.states.pop(0) if len(self.states) > 1 else self.states[0]
        return Result({"taskId": "t-1", **state}) if isinstance(state, dict) else state


WORKING: dict[str, Any] = {"status": "working", "pollIntervalMs": 2000}
DONE: dict[str, Any] = {"status": "completed", "result": result_of("gold")}


async def digging(
    server: TaskServer, handlers: Handlers | None = None, **how: Any
) -> tuple[Session, FakeClock, asyncio.Task[Reply]]:
    """A session, its clock, and a call that is under way."""
    clock = server.clock
    assert isinstance(clock, FakeClock)
    session = await bounded(
        open_session(
            server.transport, server="m", clock=clock, timeout=10.0, pinned="2026-07-28", handlers=handlers
        )
    )
    call = asyncio.create_task(session.call_tool("dig", {}, **{"timeout": 30.0, **how}))
    await settle()
    return session, clock, call


def error_of(call: asyncio.Task[Reply]) -> BaseException | None:
    assert call.done(), "it still waits for something"
    return call.exception()


async def test_a_task_is_asked_for_in_its_own_rhythm_until_it_is_completed() -> None:
    server = TaskServer(WORKING, {**WORKING, "pollIntervalMs": 500}, DONE)
    _, clock, call = await digging(server)
    for wait, asked in ((POLL, 1), (2.0, 2), (0.5, 3)):
        await clock.advance(wait - 0.25)
        assert len(server.asked) == asked - 1
        await clock.advance(0.25)
        assert len(server.asked) == asked
    assert (await call).content == "gold"
    assert server.asked == ["tasks/get"] * 3


@pytest.mark.parametrize(
    ("told", "wait"),
    [(None, POLL), (True, POLL), ("5", POLL), (0, SHORTEST_POLL), (-7, SHORTEST_POLL), (250.0, 0.25)],
)
async def test_a_rhythm_that_is_none_is_replaced_and_no_server_is_flooded(told: Any, wait: float) -> None:
    server = TaskServer(DONE, handle={"pollIntervalMs": told})
    _, clock, call = await digging(server)
    await clock.advance(wait - 0.01)
    assert server.asked == []
    await clock.advance(0.02)
    assert (await call).content == "gold"


async def test_a_task_that_has_ended_when_it_is_told_of_is_asked_for_at_once() -> None:
    server = TaskServer(DONE, handle={"status": "completed"})
    _, _, call = await digging(server)
    assert (await call).content == "gold"


async def test_an_error_of_the_tool_is_a_result_and_not_a_fault() -> None:
    server = TaskServer({"status": "completed", "result": result_of(ValueError("no gold here"))})
    _, clock, call = await digging(server)
    await clock.advance(POLL)
    assert (await call).is_error


async def test_a_task_that_failed_is_told_as_the_error_that_it_failed_with() -> None:
    server = TaskServer({"status": "failed", "error": {"code": -32603, "message": "the mine is flooded"}})
    _, clock, call = await digging(server)
    await clock.advance(POLL)
    error = error_of(call)
    assert isinstance(error, ProtocolError)
    assert (error.code, error.tool, error.sent) == (-32603, "dig", True)
    assert "the mine is flooded" in error.message


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ({"status": "cancelled", "statusMessage": "the king forbade it"}, "the king forbade it"),
        ({"status": "cancelled"}, "called it off itself"),
        ({"status": "completed"}, "ended without a result"),
        ({"status": "asleep"}, "unknown state 'asleep'"),
        ({}, "unknown state"),
        (Result(17), "cannot be read"),
        ({"status": "completed", "result": {"resultType": "task", "taskId": "t-2"}}, "in another task"),
        ({"status": "completed", "result": {"resultType": "dream"}}, "unknown type 'dream'"),
        (Fail("Task not found", -32602), "Task not found"),
    ],
)
async def test_a_task_that_comes_to_no_result_is_one_readable_error(state: Any, said: str) -> None:
    server = TaskServer(state)
    session, clock, call = await digging(server)
    await clock.advance(POLL)
    error = error_of(call)
    assert isinstance(error, ProtocolError)
    assert said in error.message
    assert error.server == "m"
    assert not session.closed


async def test_a_task_that_needs_input_hands_out_what_it_asks_and_is_left_alive() -> None:
    asks = {"status": "input_required", "inputRequests": {"name": {"method": "elicitation/create"}}}
    server = TaskServer(asks)
    _, clock, call = await digging(server)
    await clock.advance(POLL)
    reply = await call
    assert reply.input_required is not None
    assert reply.input_required["taskId"] == "t-1"
    assert reply.input_required["inputRequests"] == asks["inputRequests"]
    assert "tasks/cancel" not in server.asked


async def elicited(params: dict[str, Any]) -> dict[str, Any]:
    if params.get("message") == "loud":
        raise ValueError("too loud")
    return {"action": "accept", "content": {"said": params.get("message", "")}}


def asking(**messages: str) -> dict[str, Any]:
    """A task that asks a person something under each of these keys."""
    requests = {
        key: {"method": "elicitation/create", "params": {"message": said}} for key, said in messages.items()
    }
    return {"status": "input_required", "pollIntervalMs": 1000, "inputRequests": requests}


async def test_a_task_is_given_what_it_asks_for_once_and_followed_on() -> None:
    server = TaskServer(asking(a="who?"), asking(a="who?"), asking(a="who?", b="where?"), WORKING, DONE)
    _, clock, call = await digging(server, handlers=Handlers(elicitation=elicited))
    await clock.advance(10.0)
    assert (await call).content == "gold"
    given = [
        message["params"]["inputResponses"]
        for message in server.received
        if message["method"] == "tasks/update"
    ]
    assert given == [
        {"a": {"action": "accept", "content": {"said": "who?"}}},
        {"b": {"action": "accept", "content": {"said": "where?"}}},
    ]


@pytest.mark.parametrize(
    "asks",
    [
        asking(a="loud"),
        {"status": "input_required", "inputRequests": {"a": {"method": "roots/list"}}},
        {"status": "input_required", "inputRequests": {}},
        {"status": "input_required", "inputRequests": ["a"]},
        {"status": "input_required"},
    ],
)
async def test_what_a_task_asks_and_nobody_can_answer_is_handed_out(asks: dict[str, Any]) -> None:
    server = TaskServer(asks)
    _, clock, call = await digging(server, handlers=Handlers(elicitation=elicited))
    await clock.advance(POLL)
    reply = await call
    assert reply.input_required is not None
    assert reply.input_required.get("inputRequests") == asks.get("inputRequests")
    assert server.asked == ["tasks/get"]


async def test_a_caller_who_stops_waiting_calls_the_task_off() -> None:
    server = TaskServer(WORKING)
    _, clock, call = await digging(server)
    await clock.advance(10.0)
    call.cancel()
    await settle()
    assert call.cancelled()
    assert server.asked[-1] == "tasks/cancel"
    asked = len(server.asked)
    await clock.advance(60.0)
    assert len(server.asked) == asked


async def test_a_calls_own_time_covers_its_task_and_calls_it_off() -> None:
    server = TaskServer(WORKING)
    _, clock, call = await digging(server, timeout=7.0)
    await clock.advance(6.9)
    assert not call.done()
    await clock.advance(0.2)
    error = error_of(call)
    assert isinstance(error, CallTimeoutError)
    assert error.sent
    assert error.message == "Server 'm' did not answer tools/call 'dig' within 7 s."
    assert server.asked[-1] == "tasks/cancel"


async def test_a_task_that_shows_life_has_until_the_last_moment_and_no_longer() -> None:
    server = TaskServer(WORKING)
    _, clock, call = await digging(server, timeout=5.0, timeout_max=50.0)
    await clock.advance(49.9)
    assert not call.done()
    await clock.advance(0.2)
    assert isinstance(error_of(call), CallTimeoutError)
    assert server.asked[-1] == "tasks/cancel"


async def test_a_task_that_shows_no_life_has_no_more_time_than_a_silent_call() -> None:
    server = TaskServer(WORKING, Hang())
    _, clock, call = await digging(server, timeout=5.0, timeout_max=50.0)
    await clock.advance(POLL + 4.9)
    assert not call.done()
    await clock.advance(0.2)
    assert isinstance(error_of(call), CallTimeoutError)
    assert server.asked == ["tasks/get", "tasks/get", "tasks/cancel"]


async def test_a_call_without_any_time_limit_follows_its_task_as_long_as_it_takes() -> None:
    server = TaskServer(*[WORKING] * 500, DONE)
    _, clock, call = await digging(server, timeout=None)
    await clock.advance(1001.0)
    assert (await call).content == "gold"


async def test_a_question_that_was_not_answered_is_asked_again() -> None:
    class Deaf(TaskServer):
        """Its way fails the second question, as a broken HTTP request would."""

        def take(self, connection: Any, message: dict[str, Any]) -> None:
            if message.get("method") == "tasks/get" and len(self.asked) == 1:
                self.asked.append("lost")
                receiver = connection._receiver  # noqa: SLF001  (played by the test)
                receiver.failed(message["id"], WireError("HTTP 502"))
            else:
                super().take(connection, message)

    server = Deaf(WORKING, DONE)
    _, clock, call = await digging(server, timeout=60.0)
    await clock.advance(20.0)
    assert (await call).content == "gold"
    assert server.asked == ["tasks/get", "lost", "tasks/get"]


async def test_a_connection_that_ends_under_a_task_leaves_its_outcome_unknown() -> None:
    server = TaskServer(Drop())
    _, clock, call = await digging(server)
    await clock.advance(POLL)
    error = error_of(call)
    assert isinstance(error, ConnectionLostError)
    assert error.sent


async def test_calling_off_over_a_connection_that_has_ended_is_no_error() -> None:
    server = TaskServer(WORKING)
    session, _, call = await digging(server)
    closing = asyncio.create_task(session.close())
    call.cancel()
    await bounded(closing)
    await settle()
    assert call.cancelled()


async def test_a_server_that_does_not_say_whether_it_called_a_task_off_is_not_waited_for() -> None:
    class Mute(TaskServer):
        def _behaviour(self, method: str, params: dict[str, Any]) -> Any:
            return Hang() if method == "tasks/cancel" else super()._behaviour(method, params)

    server = Mute(WORKING)
    session, clock, call = await digging(server)
    call.cancel()
    await settle()
    await clock.advance(CANCELLING)
    assert clock.waiting == 0
    assert not session.closed


@pytest.mark.parametrize("handle", [{"taskId": None}, {"taskId": 7}])
async def test_a_handle_without_a_name_is_a_fault_of_the_server(handle: dict[str, Any]) -> None:
    server = TaskServer(WORKING, handle=handle)
    _, _, call = await digging(server)
    assert isinstance(error_of(call), ProtocolError)


async def test_requests_about_a_task_are_named_after_it_and_carry_the_protocols_own_meta() -> None:
    server = TaskServer(DONE)
    _, clock, call = await digging(server)
    await clock.advance(POLL)
    await call
    asked = next(message for message in server.received if message["method"] == "tasks/get")
    assert "io.modelcontextprotocol/protocolVersion" in asked["params"]["_meta"]
    assert asked["params"]["taskId"] == "t-1"
