"""Calls that ask back: made again with what they ask for, their state unread, or handed out."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from luthier.clock import FakeClock, settle
from luthier.errors import CallTimeoutError, ProtocolError
from luthier.wire import Fail, Handlers, Hang, MemoryServer, Result, Session, open_session
from luthier.wire.rounds import MOST_ROUNDS
from tests.wire.support import bounded

if TYPE_CHECKING:
    from luthier.tools import Reply


class Asking(MemoryServer):
    """Answers each call of a tool with the next of its `answers`; the last one for ever."""

    def __init__(self, *answers: Any) -> None:
        super().__init__("m", clock=FakeClock())
        self.answers = list(answers)
        self.rounds: list[dict[str, Any]] = []

    def _behaviour(self, method: str, params: dict[str, Any]) -> Any:
        if method != "tools/call":
            return super()._behaviour(method, params)
        self.rounds.append(params)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return Result(answer) if isinstance(answer, dict) else answer

    def given(self) -> list[dict[str, Any]]:
        """What each round brought besides tool and arguments."""
        return [
            {key: params[key] for key in ("requestState", "inputResponses") if key in params}
            for params in self.rounds
        ]


async def person(params: dict[str, Any]) -> dict[str, Any]:
    if params.get("message") == "rude":
        raise ValueError("I do not answer that")
    return {"action": "accept", "content": {"to": params.get("message", "")}}


PEOPLE = Handlers(elicitation=person)
DONE = {"content": [{"type": "text", "text": "done"}]}


def asks(state: Any = None, **messages: str) -> dict[str, Any]:
    asked: dict[str, Any] = {"resultType": "input_required"}
    if state is not None:
        asked["requestState"] = state
    if messages:
        asked["inputRequests"] = {
            key: {"method": "elicitation/create", "params": {"message": said}}
            for key, said in messages.items()
        }
    return asked


async def opened(server: Asking, handlers: Handlers | None = None) -> tuple[Session, FakeClock]:
    clock = server.clock
    assert isinstance(clock, FakeClock)
    session = await bounded(
        open_session(
            server.transport, server="m", clock=clock, timeout=5.0, pinned=server.version, handlers=handlers
        )
    )
    return session, clock


async def reply_of(server: Asking, handlers: Handlers | None = PEOPLE, **how: Any) -> Reply:
    session, clock = await opened(server, handlers)
    call = asyncio.create_task(session.call_tool("t", {"x": 1}, **{"timeout": 30.0, **how}))
    await clock.advance(10.0)
    return await bounded(call)


async def test_what_a_call_asks_is_answered_and_its_state_goes_back_as_it_came() -> None:
    state = 'opaque "\\u00e9\u2028\\/= {}'
    server = Asking(asks(state, who="who?"), DONE)
    assert (await reply_of(server)).content == "done"
    assert server.given() == [
        {},
        {
            "requestState": state,
            "inputResponses": {"who": {"action": "accept", "content": {"to": "who?"}}},
        },
    ]
    assert [(params["name"], params["arguments"]) for params in server.rounds] == [("t", {"x": 1})] * 2
    ids = [message["id"] for message in server.received if message["method"] == "tools/call"]
    assert len(set(ids)) == 2


async def test_a_state_is_sent_only_in_the_round_after_it_came() -> None:
    server = Asking(asks("one", a="a"), asks(None, b="b"), DONE)
    await reply_of(server)
    assert [given.get("requestState") for given in server.given()] == [None, "one", None]
    assert list(server.given()[2]["inputResponses"]) == ["b"]


async def test_calls_side_by_side_keep_their_states_apart() -> None:
    server = Asking(asks("first"), asks("second"), DONE)
    session, clock = await opened(server)
    calls = [asyncio.create_task(session.call_tool("t", {"x": x}, timeout=30.0)) for x in (1, 2)]
    await clock.advance(1.0)
    for call in calls:
        assert (await bounded(call)).content == "done"
    states = {params["arguments"]["x"]: params["requestState"] for params in server.rounds[2:]}
    assert states == {1: "first", 2: "second"}


async def test_a_call_that_only_wants_time_is_made_again_after_a_pause_without_anybody() -> None:
    server = Asking(asks("s"), asks("t"), asks("u"), DONE)
    session, clock = await opened(server)
    call = asyncio.create_task(session.call_tool("t", {}, timeout=30.0))
    await settle(50)
    for rounds, pause in ((1, 0.05), (2, 0.1), (3, 0.2)):
        assert len(server.rounds) == rounds
        await clock.advance(pause + 0.001)
    assert (await bounded(call)).content == "done"


@pytest.mark.parametrize(
    ("asked", "handlers"),
    [
        (asks("s", a="a"), None),
        (asks("s", a="rude"), PEOPLE),
        (asks("s", a="a") | {"inputRequests": {"a": {"method": "roots/list"}}}, PEOPLE),
        (asks("s") | {"inputRequests": {"a": "?"}}, PEOPLE),
        (asks("s") | {"inputRequests": ["a"]}, PEOPLE),
        (asks(), PEOPLE),
    ],
)
async def test_what_nobody_can_answer_is_handed_out_whole(
    asked: dict[str, Any], handlers: Handlers | None
) -> None:
    server = Asking(asked)
    reply = await reply_of(server, handlers)
    assert reply.input_required == asked
    assert len(server.rounds) == 1


async def test_a_request_without_params_is_answered_too() -> None:
    server = Asking(asks() | {"inputRequests": {"a": {"method": "elicitation/create"}}}, DONE)
    assert (await reply_of(server)).content == "done"


async def test_a_server_that_asks_for_ever_is_left_after_ten_rounds() -> None:
    server = Asking(asks("s", a="again?"))
    assert (await reply_of(server)).input_required == asks("s", a="again?")
    assert len(server.rounds) == 1 + MOST_ROUNDS


async def test_an_error_in_a_later_round_is_the_error_of_the_call() -> None:
    with pytest.raises(ProtocolError, match="changed my mind"):
        await reply_of(Asking(asks("s", a="a"), Fail("changed my mind", -32603)))


@pytest.mark.parametrize("limits", [{"timeout": 3.0}, {"timeout": 2.0, "timeout_max": 3.0}])
@pytest.mark.parametrize("second", [Hang(), DONE])
async def test_a_calls_time_covers_all_rounds_and_the_person_who_answers(
    limits: dict[str, Any], second: Any
) -> None:
    slow = asyncio.Event()

    async def thinker(_: dict[str, Any]) -> dict[str, Any]:
        await slow.wait()
        return {"action": "decline"}

    server = Asking(asks("s", a="a"), second)
    session, clock = await opened(server, Handlers(elicitation=thinker))
    call = asyncio.create_task(session.call_tool("t", {}, **limits))
    await clock.advance(1.0)
    if isinstance(second, Hang):
        slow.set()
    await clock.advance(1.9)
    assert not call.done()
    await clock.advance(0.2)
    error = call.exception()
    assert isinstance(error, CallTimeoutError)
    assert error.sent


async def test_a_call_without_a_limit_waits_for_the_person_as_long_as_it_takes() -> None:
    server = Asking(asks("s", a="a"), DONE)
    assert (await reply_of(server, timeout=None)).content == "done"


async def test_a_call_that_asks_back_and_then_becomes_a_task_is_followed_and_its_questions_are_its_own() -> (
    None
):
    class Both(Asking):
        def _behaviour(self, method: str, params: dict[str, Any]) -> Any:
            if method == "tasks/get":
                return Result({"taskId": "t-1", "status": "input_required", "inputRequests": {"r": {}}})
            return super()._behaviour(method, params)

    task = {"resultType": "task", "taskId": "t-1", "status": "working"}
    server = Both(asks("s", a="a"), task)
    reply = await reply_of(server)
    assert reply.input_required is not None
    assert reply.input_required["taskId"] == "t-1"
    assert len(server.rounds) == 2
