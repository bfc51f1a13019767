"""Runs in time: retries, timeouts, deadlines, and being called off."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from luthier.clock import FakeClock, settle, sleep
from luthier.context import CallContext
from luthier.errors import (
    CallTimeoutError,
    ConnectError,
    ConnectionLostError,
    ProtocolError,
    UnresolvedReferenceError,
    WireError,
)
from luthier.events import Event, Observers, RunDone, StepBegan
from luthier.spec import ToolFilter
from luthier.taint import TRUSTED, Labelled
from luthier.workflows import run_ensemble
from luthier.workflows.hand import HEAD_START
from tests.workflows.house import LONG, Gate, House, entry, kinds, read, turns

if TYPE_CHECKING:
    from luthier.workflows import Run

CALL = """
ensemble: t
agents:
  - name: a
    operation: tools
    config: {mcp: s, tool: one}
    input: {}
    retry: {maxAttempts: 3, initialDelay: 1000, backoff: BACKOFF, maxDelay: 30000}
"""
LOST = ConnectionLostError("lost", server="s", tool="one", sent=True)
GONE = ConnectError("gone", server="s")


def call(backoff: str = "fixed") -> str:
    return CALL.replace("BACKOFF", backoff)


async def played(house: House, text: str, *, seconds: float = 1000.0, **rest: Any) -> Run:
    """The run, with the clock turned on until it ends or the time is up."""
    async with house.running(text, **rest) as task:
        until = house.clock.monotonic() + seconds
        while not task.done() and house.clock.monotonic() < until:
            await house.clock.advance(house.clock.next_due() or 0.0)
        return await task


class TestRetries:
    async def test_a_server_that_cannot_be_reached_is_tried_again(self) -> None:
        house = House(Gate({"s/one": turns(GONE, GONE, 7)}))
        run = await played(house, call())
        assert run.output == 7
        assert run.steps["a"].attempts == 3
        assert house.clock.monotonic() == 2.0
        assert [event.attempt for event in house.heard.of(StepBegan)] == [1, 2, 3]
        assert kinds(run).count("AttemptFailed") == 2

    async def test_the_last_failure_is_the_step_s(self) -> None:
        house = House(Gate({"s/one": GONE}))
        run = await played(house, call())
        assert len(house.gate.calls) == 3
        assert run.error is not None
        assert run.error["kind"] == "connect"

    @pytest.mark.parametrize(
        ("backoff", "seconds"), [("fixed", 2.0), ("linear", 1.0 + 2.0), ("exponential", 1.0 + 2.0)]
    )
    async def test_the_waits_follow_the_backoff(self, backoff: str, seconds: float) -> None:
        house = House(Gate({"s/one": GONE}))
        await played(house, call(backoff))
        assert house.clock.monotonic() == seconds

    async def test_each_attempt_is_a_call_of_its_own(self) -> None:
        house = House(Gate({"s/one": turns(GONE, 7)}))
        await played(house, call())
        assert len({made.id for made in house.gate.calls}) == 2
        assert [made.context.attempt for made in house.gate.calls] == [1, 2]

    @pytest.mark.parametrize(
        "error",
        [
            LOST,
            CallTimeoutError("late", server="s", phase="call", sent=True),
            ProtocolError("no", server="s", code=-32000),
            ConnectError("bad entry", server="s", retryable=False),
            UnresolvedReferenceError("X is not set", reference="${env.X}", place="luthier.yaml:1:1"),
            ValueError("ours"),
        ],
        ids=lambda error: type(error).__name__ + ("" if getattr(error, "retryable", True) else "-hopeless"),
    )
    async def test_what_may_have_taken_effect_or_cannot_heal_is_not_sent_again(
        self, error: Exception
    ) -> None:
        house = House(Gate({"s/one": error}), servers=[entry()])
        run = await played(house, call())
        assert not run.success
        assert len(house.gate.calls) == 1

    async def test_a_call_that_ran_out_of_time_before_it_was_sent_is_tried_again(self) -> None:
        late = CallTimeoutError("late", server="s", phase="call", sent=False)
        house = House(Gate({"s/one": turns(late, 7)}), servers=[entry()])
        assert (await played(house, call())).output == 7

    async def test_a_lost_question_about_the_tools_is_no_lost_call(self) -> None:
        lost = ConnectionLostError("lost", server="s", phase="list", sent=True)
        house = House(Gate({"s/one": turns(lost, 7)}), servers=[entry()])
        assert (await played(house, call())).output == 7
        house = House(Gate({"s/one": lost}), servers=[entry()])
        run = await played(house, call())
        assert run.error is not None
        assert run.error["kind"] == "connect"

    @pytest.mark.parametrize("word", ["idempotent", "read_only"])
    @pytest.mark.parametrize("error", [LOST, CallTimeoutError("late", server="s", phase="call", sent=True)])
    async def test_by_the_operator_s_word_a_lost_call_is_sent_again(
        self, word: str, error: WireError
    ) -> None:
        house = House(Gate({"s/one": turns(error, 7)}), servers=[entry(tools=ToolFilter(**{word: ("one",)}))])
        assert (await played(house, call())).output == 7

    @pytest.mark.parametrize("hint", ["idempotentHint", "readOnlyHint"])
    async def test_by_a_trusted_server_s_hint_too(self, hint: str) -> None:
        gate = Gate({"s/one": turns(LOST, 7)}, hints={"s/one": {hint: True}})
        assert (await played(House(gate, servers=[entry(trust=TRUSTED)]), call())).output == 7

    @pytest.mark.parametrize("hints", [{}, {"idempotentHint": False}, {"idempotentHint": "yes"}])
    async def test_a_trusted_server_that_says_nothing_of_the_kind_is_not_asked_twice(
        self, hints: Any
    ) -> None:
        gate = Gate({"s/one": LOST}, hints={"s/one": hints})
        await played(House(gate, servers=[entry(trust=TRUSTED)]), call())
        assert len(gate.calls) == 1

    async def test_an_untrusted_server_s_hint_is_nothing(self) -> None:
        gate = Gate({"s/one": LOST}, hints={"s/one": {"idempotentHint": True}})
        await played(House(gate, servers=[entry()]), call())
        assert len(gate.calls) == 1

    async def test_hints_that_cannot_be_had_are_none(self) -> None:
        gate = Gate({"s/one": LOST}, schemas={"s/one": GONE})
        await played(House(gate, servers=[entry(trust=TRUSTED)]), call())
        assert len(gate.calls) == 1

    async def test_kinds_that_the_step_names_are_tried_again(self) -> None:
        house = House(Gate({"s/one": turns(ProtocolError("no", server="s"), 7)}))
        text = call().replace("maxDelay: 30000", "retryOn: [protocol, unknown]")
        assert (await played(house, text)).output == 7
        house = House(Gate({"s/one": LOST}))
        assert not (await played(house, text)).success
        assert len(house.gate.calls) == 1

    async def test_statuses_that_the_step_names_are_tried_again(self) -> None:
        class Busy(ProtocolError):
            def facts(self) -> dict[str, Any]:
                return super().facts() | {"status": 503}

        house = House(Gate({"s/one": turns(Busy("busy", server="s"), 7)}))
        assert (await played(house, call())).output == 7
        house = House(Gate({"s/one": Busy("busy", server="s")}))
        assert not (await played(house, call().replace("maxDelay: 30000", "retryOn: [500]"))).success


class TestTimeouts:
    TEXT = """
    ensemble: t
    agents:
      - {name: a, operation: tools, timeout: 5000, config: {mcp: s, tool: one}}
      - {name: b, condition: "${a.failed}", operation: transform, config: {value: "${a.error.message}"}}
    """

    async def test_a_step_that_takes_too_long_fails_and_its_call_is_cancelled(self) -> None:
        house = House(Gate({"s/one": lambda _: asyncio.Event().wait()}))
        run = await played(house, self.TEXT)
        assert house.clock.monotonic() == 5.0 + HEAD_START
        assert house.gate.cancelled == ["one"]
        assert run.success
        assert run.steps["a"].error == {"kind": "timeout", "message": "timed out after 5 s"}
        assert run.output == "timed out after 5 s"

    async def test_a_step_that_ends_in_time_is_left_alone(self) -> None:
        house = House(Gate({"s/one": 1}))
        run = await house.run(self.TEXT)
        assert run.success
        assert house.clock.waiting == 0

    async def test_the_call_knows_how_long_it_has(self) -> None:
        house = House(Gate({"s/one": 1}))
        await house.run(self.TEXT, context=CallContext(deadline=3.0))
        assert house.gate.calls[0].context.deadline == 3.0
        await house.run(self.TEXT)
        assert house.gate.calls[1].context.deadline == 5.0

    async def test_the_wire_may_say_itself_that_time_is_up(self) -> None:
        house = House()

        async def timed(_: Any) -> None:
            await sleep(house.clock, 5.0)
            raise CallTimeoutError("no answer", server="s", phase="call", sent=False)

        house.gate.tools["s/one"] = timed
        run = await played(house, self.TEXT)
        assert house.clock.monotonic() == 5.0
        assert run.output == "no answer"

    async def test_the_timeout_of_the_config_is_the_call_s_own(self) -> None:
        house = House(Gate({"s/one": 1}))
        await house.run(
            "{ensemble: t, agents: [{name: a, operation: tools, config: {mcp: s, tool: one, timeout: 1500}}]}"
        )
        assert house.gate.calls[0].timeout == 1.5

    async def test_it_holds_for_each_attempt(self) -> None:
        house = House(
            Gate({"s/one": lambda _: asyncio.Event().wait()}),
            servers=[entry(tools=ToolFilter(read_only=("one",)))],
        )
        run = await played(house, call().replace("retry:", "timeout: 2000\n    retry:"))
        assert run.steps["a"].attempts == 3
        assert house.clock.monotonic() == pytest.approx(3 * (2.0 + HEAD_START) + 2 * 1.0)

    async def test_one_that_may_have_taken_effect_is_not_tried_again(self) -> None:
        house = House(Gate({"s/one": lambda _: asyncio.Event().wait()}), servers=[entry()])
        run = await played(house, call().replace("retry:", "timeout: 2000\n    retry:"))
        assert run.steps["a"].attempts == 1

    async def test_one_that_does_not_let_go_is_left_behind(self) -> None:
        release = asyncio.Event()

        async def stubborn(_: Any) -> str:
            while not release.is_set():
                try:
                    await release.wait()
                except asyncio.CancelledError:
                    continue
            return "too late"

        house = House(Gate({"s/one": stubborn}))
        run = await played(house, self.TEXT)
        assert house.clock.monotonic() == 5.0 + HEAD_START + 5.0
        assert run.output == "timed out after 5 s. It did not stop within 5 s and was left behind."
        length = len(run.record)
        release.set()
        await settle()
        assert len(house.kept.records["run-1"]) == length

    async def test_a_step_that_is_called_off_before_it_began_lets_go_at_once(self) -> None:
        house = House()
        run = await house.run(
            """
            ensemble: t
            agents:
              - {name: a, operation: transform, config: {value: 1}}
              - {name: b, operation: transform, config: {value: 2}}
            flow: [{type: parallel, waitFor: first, steps: [{agent: a}, {agent: b}]}]
            """
        )
        assert run.output == [1]
        assert run.steps["b"].skipped
        assert house.clock.monotonic() == 0.0


class TestDeadline:
    TEXT = """
    ensemble: t
    agents:
      - {name: a, operation: tools, config: {mcp: s, tool: one}}
      - {name: b, operation: transform, config: {value: "${a.output || 'nothing'}"}}
    outputs: {b: "${b.output}"}
    """

    @pytest.mark.parametrize("how", ["timeout", "context"])
    async def test_at_its_deadline_a_run_cancels_what_runs_and_fails(self, how: str) -> None:
        house = House(Gate({"s/one": lambda _: asyncio.Event().wait()}))
        given: dict[str, Any] = (
            {"timeout": 8.0} if how == "timeout" else {"context": CallContext(deadline=8.0)}
        )
        run = await played(house, self.TEXT, **given)
        assert house.clock.monotonic() == 8.0
        assert house.gate.cancelled == ["one"]
        assert run.error == {"kind": "timeout", "message": "the deadline of the run has passed"}
        assert run.steps["a"].failed
        assert run.steps["b"].skipped
        assert run.steps["b"].error == {
            "kind": "cancelled",
            "message": "not started: the deadline of the run has passed",
        }

    async def test_the_earlier_deadline_wins(self) -> None:
        house = House(Gate({"s/one": lambda _: asyncio.Event().wait()}))
        await played(house, self.TEXT, timeout=8.0, context=CallContext(deadline=3.0))
        assert house.clock.monotonic() == 3.0

    async def test_a_run_that_ends_in_time_leaves_no_timer(self) -> None:
        house = House(Gate({"s/one": 1}))
        assert (await house.run(self.TEXT, timeout=8.0)).success
        assert house.clock.waiting == 0

    async def test_a_step_between_attempts_does_not_outlast_it(self) -> None:
        house = House(Gate({"s/one": GONE}))
        run = await played(house, call(), timeout=1.5)
        assert house.clock.monotonic() == 1.5
        assert run.steps["a"].attempts == 2
        assert run.error is not None
        assert run.error["kind"] == "timeout"
        assert house.clock.waiting == 0

    async def test_one_that_has_passed_starts_nothing_that_lasts(self) -> None:
        house = House(Gate({"s/one": lambda _: asyncio.Event().wait()}))
        run = await played(house, self.TEXT, timeout=-1.0)
        assert run.error is not None
        assert run.error["kind"] == "timeout"


class TestBeingCalledOff:
    TEXT = """
    ensemble: t
    agents:
      - {name: a, operation: tools, config: {mcp: s, tool: one}}
      - {name: b, operation: transform, config: {value: "${a.output}"}}
    """

    async def test_it_cancels_the_calls_keeps_the_record_and_passes_the_cancellation_on(self) -> None:
        house = House(Gate({"s/one": lambda _: asyncio.Event().wait()}))
        async with house.running(self.TEXT) as task:
            task.cancel()
            await settle()
            assert task.cancelled()
        assert house.gate.cancelled == ["one"]
        record = house.kept.records["run-1"]
        assert [(one.kind, one.step) for one in record][3:] == [
            ("RunHalted", ""),
            ("StepEnded", "b"),
            ("CallSettled", "a"),
            ("StepEnded", "a"),
            ("RunEnded", ""),
        ]
        (done,) = house.heard.of(RunDone)
        assert (done.success, done.reason) == (False, "the run was cancelled")
        assert house.clock.waiting == 0

    async def test_what_does_not_let_go_is_waited_for_a_bounded_time(self) -> None:
        release = asyncio.Event()

        async def stubborn(_: Any) -> None:
            while not release.is_set():
                try:
                    await release.wait()
                except asyncio.CancelledError:
                    continue

        house = House(Gate({"s/one": stubborn}))
        async with house.running(self.TEXT) as task:
            task.cancel()
            await settle()
            assert not task.done()
            await house.clock.advance(5.0)
            assert task.cancelled()
        assert house.kept.records["run-1"][-1].kind == "RunEnded"
        release.set()
        await settle()

    async def test_a_second_cancellation_waits_for_nothing(self) -> None:
        release = asyncio.Event()

        async def stubborn(_: Any) -> None:
            while not release.is_set():
                try:
                    await release.wait()
                except asyncio.CancelledError:
                    continue

        house = House(Gate({"s/one": stubborn}))
        async with house.running(self.TEXT) as task:
            task.cancel()
            await settle()
            task.cancel()
            await settle()
            assert task.cancelled()
        assert house.clock.waiting == 0
        assert "run-1" in house.kept.records
        release.set()
        await settle()

    async def test_a_cancellation_that_comes_with_the_end_still_counts(self) -> None:
        house = House(Gate({"s/one": 1}))

        class Late:
            def notify(self, event: Event) -> None:
                if isinstance(event, RunDone):
                    tasks[0].cancel()

        services = msgspec.structs.replace(house.services, observers=Observers([Late()]))
        run = run_ensemble(read(self.TEXT), Labelled({}), services=services)
        tasks = [asyncio.get_running_loop().create_task(run)]
        await asyncio.wait(tasks, timeout=LONG)
        assert tasks[0].cancelled()
        assert house.kept.records["run-1"][-1].kind == "RunEnded"

    async def test_between_attempts_there_is_nothing_to_wait_for(self) -> None:
        house = House(Gate({"s/one": GONE}))
        async with house.running(call()) as task:
            task.cancel()
            await settle()
            assert task.cancelled()
        assert house.clock.waiting == 0
        assert house.kept.records["run-1"][-1].kind == "RunEnded"


class BrokenClock(FakeClock):
    """Tells the time so many times, then breaks."""

    left = 3

    def now(self) -> float:
        self.left -= 1
        if self.left < 0:
            raise ZeroDivisionError("no more time")
        return super().now()


@pytest.mark.parametrize("left", [1, 3, 4, 5])
async def test_a_fault_of_ours_ends_the_run_with_that_exception(left: int) -> None:
    house = House(Gate({"s/one": lambda _: asyncio.sleep(0)}))
    clock = BrokenClock()
    clock.left = left
    services = msgspec.structs.replace(house.services, clock=clock)
    async with asyncio.timeout(LONG):
        with pytest.raises(ZeroDivisionError):
            await run_ensemble(read(TestBeingCalledOff.TEXT), Labelled({}), services=services, timeout=100.0)
    await settle()
    assert clock.waiting == 0


async def test_such_a_fault_leaves_no_timer_of_a_step_between_attempts() -> None:
    clock = BrokenClock()
    clock.left = 100

    def break_it(_: Any) -> None:
        clock.left = 0

    house = House(Gate({"s/one": GONE, "s/two": break_it}))
    text = call() + "  - {name: b, operation: tools, config: {mcp: s, tool: two}, input: {}}\n"
    services = msgspec.structs.replace(house.services, clock=clock)
    async with asyncio.timeout(LONG):
        with pytest.raises(ZeroDivisionError):
            await run_ensemble(read(text), Labelled({}), services=services)
    assert clock.waiting == 0


async def test_of_two_such_faults_the_first_is_told() -> None:
    clock = BrokenClock()
    clock.left = 100
    release = asyncio.Event()

    async def wait(_: Any) -> None:
        await release.wait()

    house = House(Gate({"s/one": wait, "s/two": wait}))
    text = (
        TestBeingCalledOff.TEXT.rstrip()
        + "\n      - {name: c, operation: tools, config: {mcp: s, tool: two}}\n"
    )
    services = msgspec.structs.replace(house.services, clock=clock)
    task = asyncio.get_running_loop().create_task(run_ensemble(read(text), Labelled({}), services=services))
    await settle()
    clock.left = 0
    release.set()
    async with asyncio.timeout(LONG):
        with pytest.raises(ZeroDivisionError):
            await task


async def test_an_operation_that_cancels_itself_has_failed() -> None:
    run = await House(Gate({"s/one": asyncio.CancelledError()})).run(TestBeingCalledOff.TEXT)
    assert run.error == {"kind": "code", "message": "the operation cancelled itself", "step": "a"}
