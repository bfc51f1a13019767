"""Durable runs whose process is stopped in order: they are left as they stand, and gone on with."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from luthier.clock import FakeClock
from luthier.errors import ConnectError, RunLostError
from luthier.workflows import Entry
from luthier.workflows.record import AttemptFailed, RunTaken
from tests.workflows.drills import RUN, Kept, World, begun, gone_on
from tests.workflows.house import LONG, Gate
from tests.workflows.references import NESTED, TRY

if TYPE_CHECKING:
    from collections.abc import Callable

    from luthier.tools import Refusal, ToolCall, ToolResult

ONE = """
ensemble: one
agents:
  - {name: a, operation: tools, config: {mcp: s, tool: do}, input: {key: a}}
  - {name: b, operation: tools, config: {mcp: s, tool: do}, input: {key: "b-${a.output.n}"}}
outputs: ${b.output.n}
"""


async def until(true: Callable[[], bool]) -> None:
    """Wait for what a thread does."""
    async with asyncio.timeout(LONG):
        while not true():
            await asyncio.to_thread(int)


async def left(text: str, world: World, store: Kept, ready: Callable[[], bool], **rest: Any) -> None:
    """A run that is interrupted when it is ready to be."""
    task = asyncio.ensure_future(begun(text, world, store, **rest))
    await until(ready)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def stuck(world: World, tool: str = "s/do") -> None:
    """From now on calls of the tool reach it and never come back."""

    async def never(arguments: dict[str, Any]) -> None:
        world.done[arguments["key"]] += 1
        await asyncio.Event().wait()

    world.gate.tools[tool] = never


async def test_it_has_not_ended_and_nobody_drives_it() -> None:
    world, store = World(), Kept()
    stuck(world)
    await left(ONE, world, store, lambda: bool(world.done))
    row = store.row(RUN)
    assert row is not None
    assert (row.status, row.owner, row.ended_at) == ("running", "", None)
    assert [entry.kind for entry in store.read(RUN)][-2:] == ["CallSettled", "RunLeft"]
    run = await gone_on(ONE, World(), store)
    assert run.error is not None
    assert run.error["kind"] == "unknown"


async def test_what_the_gate_had_not_let_pass_is_called_when_it_is_gone_on_with() -> None:
    """A server that is slow to start, a person who is to be asked: nothing has been sent yet."""
    world, store, reached = World(), Kept(), asyncio.Event()

    class Slow(Gate):
        async def call(self, _: ToolCall, /) -> ToolResult | Refusal:
            reached.set()
            await asyncio.Event().wait()
            raise AssertionError

    world.gate = Slow()
    await left(ONE, world, store, reached.is_set)
    assert [entry.kind for entry in store.read(RUN)][-3:] == ["StepStarted", "CallSettled", "RunLeft"]
    again = World()
    run = await gone_on(ONE, again, store)
    assert (run.success, again.done["a"]) == (True, 1)


async def test_finally_waits_for_the_end_of_the_run() -> None:
    world, store = World(), Kept()
    stuck(world, "s/bad")
    await left(TRY, world, store, lambda: bool(world.done))
    assert world.done == {"risk": 1}
    again = World()
    run = await gone_on(TRY, again, store)
    assert run.success
    assert again.done == {"mend-risk": 1, "tidy": 1}


async def test_what_comes_to_its_end_while_it_is_called_off_is_kept() -> None:
    world, store = World(), Kept()

    async def unhurried(arguments: dict[str, Any]) -> dict[str, Any]:
        world.done[arguments["key"]] += 1
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return {"n": 5}
        raise AssertionError

    world.gate.tools["s/do"] = unhurried
    await left(ONE, world, store, lambda: bool(world.done))
    assert [entry.kind for entry in store.read(RUN)][-2:] == ["StepEnded", "RunLeft"]
    again = World()
    run = await gone_on(ONE, again, store)
    assert (run.output, again.done) == (1, {"b-5": 1})


async def test_runs_inside_are_left_too_and_gone_on_with() -> None:
    world, store = World(), Kept()
    stuck(world)
    await left(NESTED, world, store, lambda: len(world.done) > 1)
    rows = (*store.below(RUN), store.row(RUN))
    assert [(row.status, row.owner) for row in rows if row is not None] == [("running", "")] * 3
    again = World()
    run = await gone_on(NESTED, again, store)
    assert run.error is not None
    assert run.error["kind"] == "unknown"
    assert not set(again.done) & set(world.done)
    assert {row.status for row in store.below(RUN)} == {"failed"}


async def test_a_wait_between_two_attempts_goes_on_from_the_recorded_time() -> None:
    retry = "retry: {maxAttempts: 2, initialDelay: 1000000, maxDelay: 1000000}"
    text = ONE.replace("input: {key: a}", f"input: {{key: a}}, {retry}")
    world, store, clock = World(), Kept(), FakeClock()

    def gone(_: Any) -> None:
        raise ConnectError("not yet", server="s")

    def failed() -> bool:
        return any(isinstance(entry.data, AttemptFailed) for entry in store.read(RUN))

    world.gate.tools["s/do"] = gone
    await left(text, world, store, failed, clock=clock)
    later = FakeClock(clock.now() + 400)
    again = World()
    task = asyncio.ensure_future(gone_on(text, again, store, clock=later))
    await until(lambda: later.waiting > 0)
    assert later.next_due() == 1000 - 400
    await later.advance(600)
    await until(task.done)
    assert (await task).output == 1


async def test_who_lost_the_run_does_not_leave_it() -> None:
    """A process that stood still for long: another has gone on with the run meanwhile."""
    world, store = World(), Kept()
    stuck(world)

    def lost() -> bool:
        row = store.row(RUN)
        if not world.done or row is None:
            return False
        taken = Entry(seq=len(store.read(RUN)) + 1, at=0.0, data=RunTaken(owner="elsewhere:1:1"))
        store.append(RUN, [taken], row=msgspec.structs.replace(row, owner="elsewhere:1:1"))
        return True

    task = asyncio.ensure_future(begun(ONE, world, store))
    await until(lost)
    task.cancel()
    with pytest.raises(RunLostError):
        await task
    row = store.row(RUN)
    assert row is not None
    assert row.owner == "elsewhere:1:1"
