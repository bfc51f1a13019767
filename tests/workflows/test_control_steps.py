"""Control steps at run time: how many at once, what `finally` is given, ids, labels, long loops."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import msgspec
import pytest

from luthier.clock import settle, sleep
from luthier.errors import ConnectError
from luthier.expr import compile_value
from luthier.spec import Ensemble, FlowStep, ForeachFlow, Step, TransformConfig, WhileFlow
from luthier.taint import SECRET, TRUSTED, UNTRUSTED, Label, Labelled, Source, merge
from luthier.workflows import decode, encode_all
from luthier.workflows.machine import fold
from luthier.workflows.plan import plan
from luthier.workflows.record import StepEnded
from luthier.workflows.runner import GRACE
from tests.workflows.house import Gate, House, entry

MARK = Label(UNTRUSTED.integrity, UNTRUSTED.confidentiality, frozenset({Source("web", "page")}))


def forever(_: Any) -> Any:
    return asyncio.Event().wait()


class TestConcurrency:
    @pytest.mark.parametrize("kind", ["foreach", "map-reduce"])
    async def test_as_many_items_as_may_be_are_in_work_at_once(self, kind: str) -> None:
        now, most = 0, 0

        async def work(_: Any) -> int:
            nonlocal now, most
            now += 1
            most = max(most, now)
            await sleep(house.clock, 1.0)
            now -= 1
            return 1

        house = House(Gate({"s/one": work}))
        what = "step: a" if kind == "foreach" else "map: a, reduce: r"
        flow = f"{{{kind}: {{items: [1, 2, 3, 4, 5], maxConcurrency: 2, {what}}}}}"
        async with house.running(text("a: one", flow, "r: 1")) as task:
            while not task.done():
                await house.clock.advance(house.clock.next_due() or 0.0)
            assert (await task).success
        assert most == 2
        assert house.clock.monotonic() == 3.0, "the next item begins as soon as there is room"

    async def test_parallel_control_steps_run_side_by_side(self) -> None:
        gate = asyncio.Barrier(2)

        async def meet(_: Any) -> int:
            await gate.wait()
            return 1

        house = House(Gate({"s/one": meet, "s/two": meet}))
        flow = "{parallel: [{try: [a], finally: [r]}, {branch: {condition: true, then: [b]}}]}"
        run = await house.run(text("a: one, b: two", flow, "r: 1"))
        assert run.output == [[1], [1]]


class TestFinally:
    FLOW = "{try: [a], finally: [f]}, r"

    async def test_it_runs_when_the_run_is_called_off(self) -> None:
        house = House(Gate({"s/one": forever, "s/two": 2}))
        async with house.running(text("a: one, f: two", self.FLOW, "r: 1")) as task:
            task.cancel()
            await settle()
            assert task.cancelled()
        assert [call.uri.name for call in house.gate.calls] == ["one", "two"]
        ended = [(one.step, one.data) for one in house.kept.records["run-1"]]
        ends = {step: data.end for step, data in ended if isinstance(data, StepEnded)}
        assert ends == {"a": "cancelled", "f": "ok", "try_0": "cancelled", "r": "blocked"}

    async def test_it_runs_after_the_deadline_with_a_deadline_of_its_own(self) -> None:
        house = House(Gate({"s/one": forever, "s/two": 2}))
        async with house.running(text("a: one, f: two", self.FLOW, "r: 1"), timeout=8.0) as task:
            await house.clock.advance(8.0)
            run = await task
        assert run.error is not None
        assert run.error["kind"] == "timeout"
        assert run.steps["f"].executed
        assert house.gate.calls[1].context.deadline == 8.0 + GRACE * 1.1

    async def test_it_is_called_off_in_time_itself(self) -> None:
        house = House(Gate({"s/one": forever, "s/two": forever}))
        async with house.running(text("a: one, f: two", self.FLOW, "r: 1")) as task:
            task.cancel()
            await settle()
            assert not task.done()
            await house.clock.advance(GRACE * 1.1)
            assert task.cancelled()
        assert house.gate.cancelled == ["one", "two"]
        assert house.clock.waiting == 0

    async def test_what_does_not_let_go_is_left_behind_within_ten_seconds(self) -> None:
        async def stubborn(_: Any) -> Any:
            while True:
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    if done.is_set():
                        raise

        done = asyncio.Event()
        house = House(Gate({"s/one": stubborn, "s/two": stubborn}))
        async with house.running(text("a: one, f: two", self.FLOW, "r: 1")) as task:
            task.cancel()
            while not task.done():
                await house.clock.advance(house.clock.next_due() or 0.0)
        assert house.clock.monotonic() < 10.0
        done.set()
        for left in asyncio.all_tasks() - {asyncio.current_task()}:
            left.cancel()
        await settle()

    async def test_one_that_runs_when_the_run_is_called_off_goes_on(self) -> None:
        house: House = House(Gate({"s/two": lambda _: sleep(house.clock, 2.0)}))
        async with house.running(text("f: two", "{try: [r], finally: [f]}", "r: 1")) as task:
            task.cancel()
            await settle()
            assert not task.done()
            await house.clock.advance(2.0)
            assert task.cancelled()
        assert house.gate.cancelled == []

    async def test_a_member_that_is_called_off_by_its_group_runs_it_too(self) -> None:
        house = House(Gate({"s/one": forever, "s/two": 2}))
        flow = "{parallel: {waitFor: first, steps: [{try: {steps: [a], finally: [f]}}, r]}}"
        run = await house.run(text("a: one, f: two", flow, "r: 1"))
        assert run.output == [1]
        assert run.steps["f"].executed
        assert run.steps["a"].skipped


class TestIds:
    async def test_every_iteration_s_call_has_an_id_of_its_own(self) -> None:
        house = House(Gate({"s/one": 1}))
        run = await house.run(text("a: one", "{foreach: {id: loop, items: [1, 2], step: a}}"))
        assert [call.id for call in house.gate.calls] == ["run-1/loop[0].a/1", "run-1/loop[1].a/1"]
        assert [call.context.step for call in house.gate.calls] == ["loop[0].a", "loop[1].a"]
        assert list(run.steps) == ["loop", "a", "loop[0].a", "loop[1].a"]
        assert run.steps["a"] == run.steps["loop[1].a"]


class TestLabels:
    """What is written under a tainted decision is tainted; what is not, is not."""

    @staticmethod
    async def labels(flow: str, more: str = "a: '1'") -> dict[str, Label]:
        house = House(Gate({"s/bad": ConnectError("gone", server="s")}), servers=[entry()])
        given = merge(
            {"bad": Labelled(value=True, label=MARK), "list": Labelled([1, 2], TRUSTED, {"/0": MARK})}
        )
        run = await house.run(text("bad: bad", flow, more), given)
        return {name: status.label for name, status in run.steps.items()}

    @pytest.mark.parametrize(
        "flow",
        [
            "{branch: {id: g, condition: input.bad, then: [a], else: [b]}}",
            "{branch: {id: g, condition: '!input.bad', then: [a], else: [b]}}",
            "{switch: {id: g, value: '${input.bad}', cases: {'true': [a], x: [b]}}}",
            "{switch: {id: g, value: '${input.bad}', cases: {x: [b]}, default: [a]}}",
            "{while: {id: g, condition: input.bad && iteration < 1, steps: [a, b]}}",
            "{foreach: {id: g, items: '${input.bad ? [1] : []}', steps: [a, b]}}",
        ],
    )
    async def test_a_decision_marks_both_sides_and_the_result(self, flow: str) -> None:
        labels = await self.labels(f"{flow}, c", "a: '1', b: '2', c: '3'")
        assert {labels["a"], labels["b"], labels["g"]} == {MARK}
        assert labels["c"] == TRUSTED, "what comes after is not under the decision"

    async def test_a_loop_that_never_ran_marks_what_did_not_run(self) -> None:
        house = House()
        flow = "{foreach: {id: g, items: '${input.bad ? [] : [1]}', step: a}}, b"
        run = await house.run(text("", flow, "a: '1', b: '${a.output}'"), merge({"bad": Labelled(1, MARK)}))
        assert run.label == MARK

    async def test_items_carry_their_own_labels(self) -> None:
        labels = await self.labels("{foreach: {id: g, items: '${input.list}', step: a}}", "a: '${item}'")
        assert labels["g[0].a"] == MARK
        assert labels["g[1].a"] == TRUSTED
        assert labels["g"] == MARK

    async def test_the_parts_of_a_result_keep_theirs(self) -> None:
        house = House()
        given = merge({"list": Labelled([1, 2], TRUSTED, {"/0": MARK})})
        flow = "{map-reduce: {items: '${input.list}', map: a, reduce: r}}"
        run = await house.run(text("", flow, "a: '${item}', r: '${[mapResults[1], results[0]]}'"), given)
        assert (run.labelled.at("/0"), run.labelled.at("/1")) == (TRUSTED, MARK)

    async def test_a_break_marks_the_batches_after_it(self) -> None:
        until = "'${input.bad && lastBatchResults[0] == 7}'"
        flow = f"{{foreach: {{id: g, items: [1, 2], maxConcurrency: 1, breakWhen: {until}, step: a}}}}"
        labels = await self.labels(flow)
        assert (labels["g[0].a"], labels["g[1].a"]) == (TRUSTED, MARK)

    async def test_an_error_that_is_caught_marks_what_deals_with_it(self) -> None:
        labels = await self.labels("{try: [bad], catch: [a], finally: [b]}", "a: '1', b: '2'")
        assert labels["a"].integrity == UNTRUSTED.integrity
        assert labels["b"] == TRUSTED, "it runs in any case"
        assert labels["try_0"].integrity == UNTRUSTED.integrity

    async def test_a_catch_that_was_not_needed_says_that_nothing_failed(self) -> None:
        labels = await self.labels("{try: [a], catch: [b]}", "a: '${input.bad}', b: '2'")
        assert labels["b"] == MARK

    async def test_the_branch_that_a_call_stands_in_travels_with_it(self) -> None:
        house = House(Gate({"s/one": 1}))
        flow = "{branch: {condition: input.bad, then: [{foreach: {items: [1], step: a}}]}}"
        await house.run(text("a: one", flow), merge({"bad": Labelled(value=True, label=MARK)}))
        assert house.gate.calls[0].context.control == MARK

    async def test_secret_items_are_not_kept(self) -> None:
        house = House()
        given = merge({"list": Labelled(["hush"], SECRET)})
        run = await house.run(text("", "{foreach: {items: '${input.list}', step: a}}", "a: '${item}'"), given)
        assert b"hush" not in encode_all(run.record)


class TestLongLoops:
    STEP = Step(name="a", operation="transform", config=TransformConfig(value=compile_value("${iteration}")))

    @pytest.mark.parametrize("kind", ["while", "foreach"])
    async def test_ten_thousand_iterations_are_run_and_folded_in_linear_work(self, kind: str) -> None:
        ensemble, items = self.ensemble(kind), Labelled({"items": list(range(10_000))})
        run = await House().run(ensemble, items)
        assert run.success
        assert len(run.output) == 10_000
        record = decode(encode_all(run.record))
        state = fold(plan(ensemble), record)
        assert state.ended is not None
        assert len(record) < 4 * 10_000 + 10, "entries only for what the plan cannot tell"

    def ensemble(self, kind: str) -> Ensemble:
        place = (FlowStep(step="a", name="a"),)
        if kind == "while":
            more = compile_value("${iteration < 10000}")
            flow: Any = WhileFlow(name="loop", condition=more, steps=place, max_iterations=10_000)
            return Ensemble(name="t", steps=(self.STEP,), flow=(flow,))
        step = msgspec.structs.replace(self.STEP, config=TransformConfig(value=compile_value("${item}")))
        flow = ForeachFlow(name="loop", items=compile_value("${input.items}"), steps=place)
        return Ensemble(name="t", steps=(step,), flow=(flow,))


def text(tools: str, flow: str, values: str = "") -> str:
    """An ensemble with steps that call `s/TOOL` (`a: TOOL`), and steps that give a value."""
    pairs = [pair.split(": ") for pair in tools.split(", ") if pair]
    agents = [
        f"  - {{name: {name}, operation: tools, config: {{mcp: s, tool: {tool}}}, input: {{}}}}"
        for name, tool in pairs
    ]
    for pair in re.split(r", (?=\w+: ')", values) if values else []:
        name, value = pair.split(": ", 1)
        agents.append(f"  - {{name: {name}, operation: transform, config: {{value: {value}}}}}")
    return "\n".join(["ensemble: t", "agents:", *agents, f"flow: [{flow}]"])
