"""Tools that ask their caller, in both eras: in the middle of a call, or over rounds."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import CreateMessageResult, ElicitResult, ErrorData, ListRootsResult, Root, TextContent

from luthier import Caller, tool
from luthier.clock import FakeClock, settle
from luthier.serve.talk import MOST, PATIENCE, Talk, Talks
from tests.serve.house import caller
from tests.serve.test_http import asked, served

if TYPE_CHECKING:
    from pathlib import Path

BOTH = pytest.mark.parametrize("mode", ["legacy", "auto"])
NAME = {"name": {"type": "string"}}
SERVE = {"tools": ["custom://*"]}


@tool
async def greet(caller: Caller) -> str:
    """Greets whoever it is told to."""
    reaction = await caller.elicit("Who?", NAME, key="who")
    return f"Hello, {reaction.content['name']}" if reaction.accepted else f"So: {reaction.action}"


@tool
async def all_at_once(caller: Caller) -> str:
    """Asks for three things."""
    name, said, roots = await asyncio.gather(
        caller.elicit("Who?", NAME), caller.sample("Greet.", 10), caller.roots()
    )
    return f"{said.text} {name.content['name']} at {roots[0]['uri']}"


@tool
async def twice(caller: Caller) -> str:
    """Asks once and once more."""
    first = await caller.elicit("First?", NAME)
    second = await caller.elicit("Second?", NAME)
    return f"{first.content['name']} {second.content['name']}"


@tool
async def same_key(caller: Caller) -> str:
    """Asks two things under one name."""
    answers = await asyncio.gather(*(caller.elicit(text, NAME, key="k") for text in ("One?", "Two?")))
    return " ".join(answer.content["name"] for answer in answers)


@tool
async def tells(caller: Caller) -> str:
    """Tells the log, at several levels."""
    for level in ("debug", "info", "error"):
        await caller.log(level, level)
    return "told"


@tool
async def wrong_form(caller: Caller) -> str:
    """Asks for what no form has."""
    return (await caller.elicit("?", {"x": {"type": "object", "properties": {}}})).action


TOOLS = [greet, all_at_once, twice, same_key, tells, wrong_form]
STEP = {"name": "ask", "operation": "tools", "config": {"mcp": "greeter", "tool": "greet"}}


async def person(_: Any, params: Any) -> ElicitResult:
    return ElicitResult(action="accept", content={"name": params.message})


async def model(_: Any, params: Any) -> CreateMessageResult:
    return CreateMessageResult(role="assistant", content=TextContent(text="Hello"), model="m")


async def folders(_: Any) -> ListRootsResult:
    return ListRootsResult(roots=[Root(uri="file:///work")])  # type: ignore[arg-type]


ALL: dict[str, Any] = {
    "elicitation_callback": person,
    "sampling_callback": model,
    "list_roots_callback": folders,
}


def text(result: Any) -> str:
    found: str = result.content[0].text
    return found


@BOTH
async def test_a_person_is_asked_in_the_middle_of_a_call(tmp_path: Path, mode: str) -> None:
    async with caller(tmp_path, mode=mode, tools=TOOLS, serve=SERVE, elicitation_callback=person) as (
        peer,
        _,
    ):
        assert text(await peer.call_tool("greet")) == "Hello, Who?"


@BOTH
@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_person_may_say_no(tmp_path: Path, mode: str, action: Any) -> None:
    async def unwilling(_: Any, params: Any) -> ElicitResult:
        return ElicitResult(action=action)

    async with caller(tmp_path, mode=mode, tools=TOOLS, serve=SERVE, elicitation_callback=unwilling) as (
        peer,
        _,
    ):
        assert text(await peer.call_tool("greet")) == f"So: {action}"


@BOTH
@pytest.mark.parametrize(
    ("name", "said"),
    [("all_at_once", "Hello Who? at file:///work"), ("twice", "First? Second?"), ("same_key", "One? Two?")],
)
async def test_several_questions_are_asked_at_once_or_one_after_the_other(
    tmp_path: Path, mode: str, name: str, said: str
) -> None:
    async with caller(tmp_path, mode=mode, tools=TOOLS, serve=SERVE, **ALL) as (peer, _):
        assert text(await peer.call_tool(name)) == said


async def test_an_old_client_that_cannot_be_asked_gets_an_error_of_the_tool(tmp_path: Path) -> None:
    async with caller(tmp_path, mode="legacy", tools=TOOLS, serve=SERVE) as (peer, _):
        result = await peer.call_tool("greet")
    assert (result.is_error, "did not declare elicitation" in text(result)) == (True, True)


async def test_a_new_one_gets_the_error_that_says_what_it_lacks(tmp_path: Path) -> None:
    async with caller(tmp_path, tools=TOOLS, serve=SERVE) as (peer, _):
        with pytest.raises(MCPError) as caught:
            await peer.call_tool("greet")
    assert (caught.value.code, caught.value.data) == (-32021, {"requiredCapabilities": {"elicitation": {}}})


@BOTH
async def test_a_form_that_is_filled_in_wrong_is_no_answer(tmp_path: Path, mode: str) -> None:
    asked = []

    async def careless(_: Any, params: Any) -> ElicitResult:
        asked.append(params.message)
        return ElicitResult(action="accept", content={"name": 1 if len(asked) == 1 else "Ada"})

    async with caller(tmp_path, mode=mode, tools=TOOLS, serve=SERVE, elicitation_callback=careless) as (
        peer,
        _,
    ):
        result = await peer.call_tool("greet")
    if mode == "legacy":
        assert (result.is_error, "does not fit" in text(result)) == (True, True)
    else:  # it is asked once more
        assert (text(result), len(asked)) == ("Hello, Ada", 2)


async def test_a_client_that_fails_to_answer_fails_the_tool(tmp_path: Path) -> None:
    async def broken(_: Any, params: Any) -> ErrorData:
        return ErrorData(code=-1, message="no screen")

    async with caller(tmp_path, mode="legacy", tools=TOOLS, serve=SERVE, elicitation_callback=broken) as (
        peer,
        _,
    ):
        result = await peer.call_tool("greet")
    assert (result.is_error, "no screen" in text(result)) == (True, True)


@BOTH
async def test_a_question_that_the_protocol_does_not_know_fails_the_tool(tmp_path: Path, mode: str) -> None:
    async with caller(tmp_path, mode=mode, tools=TOOLS, serve=SERVE, elicitation_callback=person) as (
        peer,
        _,
    ):
        result = await peer.call_tool("wrong_form")
    assert result.is_error


@pytest.mark.parametrize(
    ("mode", "level", "told"),
    [
        ("legacy", None, ["info", "error"]),
        ("legacy", "error", ["error"]),
        ("legacy", "debug", ["debug", "info", "error"]),
        ("auto", None, []),
        ("auto", "info", ["info", "error"]),
    ],
)
async def test_the_log_is_told_as_far_as_the_client_wants_it(
    tmp_path: Path, mode: str, level: Any, told: list[str]
) -> None:
    heard: list[str] = []

    async def listens(params: Any) -> None:
        heard.append(params.level)

    more = {"log_level": level} if mode == "auto" and level else {}
    async with caller(tmp_path, mode=mode, tools=TOOLS, serve=SERVE, logging_callback=listens, **more) as (
        peer,
        _,
    ):
        if mode == "legacy" and level:
            await peer.session.send_request(_set_level(level), _empty())
        await peer.call_tool("tells")
    assert heard == told


def _set_level(level: Any) -> Any:
    from mcp_types import SetLevelRequest, SetLevelRequestParams

    return SetLevelRequest(params=SetLevelRequestParams(level=level))


def _empty() -> Any:
    from mcp_types import EmptyResult

    return EmptyResult


async def rounds(peer: Any, name: str, **more: Any) -> Any:
    return await peer.session.call_tool(name, {}, allow_input_required=True, **more)


async def test_a_call_waits_between_its_rounds_and_is_taken_up_once(tmp_path: Path) -> None:
    async with caller(tmp_path, tools=TOOLS, serve=SERVE, elicitation_callback=person) as (peer, service):
        first = await rounds(peer, "greet")
        assert list(first.input_requests) == ["who"]
        answers = {"who": ElicitResult(action="accept", content={"name": "Ada"})}
        again = {"input_responses": answers, "request_state": first.request_state}
        assert text(await rounds(peer, "greet", **again)) == "Hello, Ada"
        await service.idle()
        for state in (first.request_state, f"{first.request_state}x", "made up"):
            with pytest.raises(MCPError, match="Invalid or expired requestState"):
                await rounds(peer, "greet", input_responses=answers, request_state=state)


async def test_answers_may_come_before_they_are_asked_for(tmp_path: Path) -> None:
    async with caller(tmp_path, tools=TOOLS, serve=SERVE, elicitation_callback=person) as (peer, _):
        answers = {
            "who": ElicitResult(action="accept", content={"name": "Ada"}),
            "else": ElicitResult(action="decline"),
        }
        assert text(await rounds(peer, "greet", input_responses=answers)) == "Hello, Ada"


async def test_an_answer_to_something_else_is_asked_for_again(tmp_path: Path) -> None:
    async with caller(tmp_path, tools=TOOLS, serve=SERVE, elicitation_callback=person) as (peer, _):
        first = await rounds(peer, "greet")
        wrong = {"who": ListRootsResult(roots=[])}
        second = await rounds(peer, "greet", input_responses=wrong, request_state=first.request_state)
    assert list(second.input_requests) == ["who"]
    assert second.request_state != first.request_state


async def test_a_client_that_cannot_any_more_is_told_so(tmp_path: Path) -> None:
    sent = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "greet"}
    accept = {"Accept": "application/json, text/event-stream"}

    async def called(url: str, capabilities: dict[str, Any], **more: Any) -> tuple[int, Any]:
        meta = {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": capabilities,
        }
        params = {"name": "greet", "arguments": {}, "_meta": meta, **more}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        status, found, _ = await asked(f"{url}/mcp", "POST", json=body, headers={**sent, **accept})
        return status, found

    async with served(tmp_path, tools=TOOLS, serve=SERVE) as url:
        _, first = await called(url, {"elicitation": {}})
        assert first["result"]["resultType"] == "input_required"
        status, second = await called(url, {}, requestState=first["result"]["requestState"])
    assert (status, second["error"]["code"]) == (400, -32021)


async def test_messages_that_are_none_cannot_be_sent(tmp_path: Path) -> None:
    @tool
    async def chats(caller: Caller) -> str:
        """Sends what is no message."""
        return (await caller.sample([{"role": "nobody"}], 10)).text

    async with caller(tmp_path, tools=[chats], serve=SERVE, sampling_callback=model) as (peer, _):
        result = await peer.call_tool("chats")
    assert (result.is_error, "cannot be asked" in text(result)) == (True, True)


async def test_whoever_does_not_come_back_has_the_call_called_off(tmp_path: Path) -> None:
    clock = FakeClock()
    async with caller(tmp_path, tools=TOOLS, serve=SERVE, elicitation_callback=person, clock=clock) as (
        peer,
        service,
    ):
        first = await rounds(peer, "greet")
        await clock.advance(PATIENCE)
        await service.idle()  # it would never end by itself
        with pytest.raises(MCPError, match="Invalid or expired requestState"):
            await rounds(peer, "greet", request_state=first.request_state)


async def test_a_client_has_only_so_many_calls_waiting(tmp_path: Path) -> None:
    async with caller(tmp_path, tools=TOOLS, serve=SERVE, elicitation_callback=person) as (peer, _):
        for _ in range(MOST):
            await rounds(peer, "greet")
        with pytest.raises(MCPError, match="Too many"):
            await rounds(peer, "greet")


def test_a_call_that_waits_is_nobody_elses() -> None:
    talks = Talks(FakeClock())
    name = talks.park("ci", Talk())
    assert name is not None
    assert talks.take("boss", name) is None
    assert talks.take("ci", name) is not None
    assert talks.take("ci", name) is None


async def test_what_is_told_while_nobody_asks_goes_nowhere() -> None:
    talk = Talk()
    await talk.log("info", "x")
    await talk.progress(1, 2, "x")
    assert not talk.can("roots")
    asking = asyncio.create_task(talk.ask("roots", {}, ""))
    await settle()
    assert list(talk.questions()) == ["roots"]
    asking.cancel()
    await settle()
    assert talk.questions() == {}
