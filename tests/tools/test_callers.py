"""Tools of this process that tell and ask whoever called from outside."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from luthier.caller import Caller, Lines
from luthier.clock import FakeClock, settle
from luthier.context import CallContext
from luthier.errors import CallerError, CallTimeoutError, ToolDefinitionError
from luthier.taint import TRUSTED, UNTRUSTED, Confidentiality, Integrity, Label, Labelled
from luthier.tools import ToolCall
from luthier.tools.builtin import LocalTools
from luthier.tools.custom import tool
from luthier.uri import ToolUri
from tests.lines import ScriptedLine

ROOT = CallContext(root="r-1")
ADA = {"action": "accept", "content": {"name": "Ada"}}


@tool(label=TRUSTED, timeout=10)
async def greet(caller: Caller) -> str:
    """Greets whoever it is told to."""
    await caller.log("asking")
    await caller.progress(1, 2, "asking")
    return f"Hello, {(await caller.elicit('Who?', {'name': {'type': 'string'}})).content['name']}"


def call(label: Label = TRUSTED, context: CallContext = ROOT, **more: Any) -> ToolCall:
    uri = ToolUri.custom("greet")
    return ToolCall(id="c", uri=uri, arguments=Labelled({}, label), context=context, **more)


def test_the_parameter_is_not_in_the_schema() -> None:
    assert greet.tool.input_schema["properties"] == {}


async def test_a_tool_tells_and_asks_the_caller_of_its_root() -> None:
    lines, line = Lines(), ScriptedLine(elicitation=ADA)
    tools = LocalTools([greet], lines=lines)
    with lines.during("r-1", line):
        reply = await tools.run(call())
    assert reply.content == "Hello, Ada"
    assert line.told == [("info", "asking"), (1, 2, "asking")]


async def test_what_a_caller_answered_is_trusted_no_more_than_the_caller() -> None:
    @tool(label=TRUSTED, name="greet")
    async def quiet(caller: Caller) -> str:
        """Asks nobody."""
        return f"may: {caller.can('elicitation')}"

    lines = Lines()
    with lines.during("r-1", ScriptedLine(elicitation=ADA)):
        asked = await LocalTools([greet], lines=lines).run(call())
        unasked = await LocalTools([quiet], lines=lines).run(call())
    assert asked.label.integrity is Integrity.untrusted
    assert (unasked.content, unasked.label.integrity) == ("may: True", Integrity.trusted)


async def test_a_caller_that_cannot_be_asked_ends_the_call() -> None:
    for lines in (Lines(), None):
        with pytest.raises(CallerError):
            await LocalTools([greet], lines=lines).run(call())


async def test_nothing_goes_out_of_a_tool_that_was_given_a_secret() -> None:
    lines, line = Lines(), ScriptedLine(elicitation=ADA)
    secret = UNTRUSTED.join(Label(confidentiality=Confidentiality.secret))
    with lines.during("r-1", line), pytest.raises(CallerError, match="secret"):
        await LocalTools([greet], lines=lines).run(call(secret))
    assert (line.told, line.asked) == ([(1, 2, "")], [])


async def test_the_time_of_a_tool_stands_still_while_somebody_is_asked() -> None:
    clock, lines, answered = FakeClock(), Lines(), asyncio.Event()

    async def wait() -> None:
        await answered.wait()

    with lines.during("r-1", ScriptedLine(wait=wait, elicitation=ADA)):
        task = asyncio.create_task(LocalTools([greet], clock=clock, lines=lines).run(call()))
        await settle()
        await clock.advance(1000)
        answered.set()
        assert (await task).content == "Hello, Ada"
    assert clock.waiting == 0


async def test_it_goes_on_when_the_answer_is_there() -> None:
    @tool(name="greet", timeout=10)
    async def slow(caller: Caller) -> None:
        """Asks, and never ends."""
        await caller.roots()
        await asyncio.Event().wait()

    clock, lines = FakeClock(), Lines()
    with lines.during("r-1", ScriptedLine(roots={})):
        task = asyncio.create_task(LocalTools([slow], clock=clock, lines=lines).run(call()))
        await clock.advance(10)
        with pytest.raises(CallTimeoutError):
            await task


async def test_the_deadline_of_a_run_does_not_stand_still() -> None:
    async def wait() -> None:
        await asyncio.Event().wait()

    clock, lines = FakeClock(), Lines()
    with lines.during("r-1", ScriptedLine(wait=wait, elicitation=ADA)):
        context = CallContext(root="r-1", deadline=20)
        task = asyncio.create_task(
            LocalTools([greet], clock=clock, lines=lines).run(call(context=context, timeout=5))
        )
        await clock.advance(19)
        assert not task.done()
        await clock.advance(1)
        with pytest.raises(CallTimeoutError):
            await task


def test_a_function_that_is_not_async_cannot_ask() -> None:
    def plain(caller: Caller) -> None:
        """Cannot await."""

    with pytest.raises(ToolDefinitionError, match="async"):
        tool(plain)
