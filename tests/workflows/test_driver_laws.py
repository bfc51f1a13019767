"""What holds for every run, whatever its ensemble and whatever its tools do, in turned time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from hypothesis import given, settings
from hypothesis import strategies as st

from luthier.clock import settle, sleep
from luthier.errors import ConnectError
from luthier.expr import compile_value
from luthier.spec import (
    BranchFlow,
    Ensemble,
    FlowStep,
    ForeachFlow,
    MapReduceFlow,
    ParallelFlow,
    Retry,
    Step,
    SwitchFlow,
    ToolsConfig,
    TryFlow,
    WhileFlow,
)
from luthier.taint import Labelled
from luthier.workflows import Run, decode, encode_all, plan, run_ensemble
from luthier.workflows.machine import fold
from luthier.workflows.run import statuses
from luthier.workflows.runner import GRACE
from tests.workflows.house import LONG, Gate, House, refusal

if TYPE_CHECKING:
    from luthier.spec import FlowItem

DEADLINE = 20.0
LOOKS = ["${%s.output}", "${%s.failed}", "${%s.output || 1}", "${%s.error.kind}"]
CONDITIONS = [None, "${true}", "${false}", "${%s.failed}", "${%s.executed}", "${%s.output}"]
RETRIES = [None, None, Retry(max_attempts=2, backoff="fixed"), Retry(max_attempts=3, retry_on=("code",))]


@st.composite
def ensembles(draw: st.DrawFn) -> Ensemble:
    steps: list[Step] = []
    for number in range(draw(st.integers(1, 6))):
        before = [step.name for step in steps]
        named = draw(st.lists(st.sampled_from(before), unique=True, max_size=3)) if before else []
        condition = draw(st.sampled_from(CONDITIONS if before else CONDITIONS[:3]))
        if condition is not None and "%s" in condition:
            condition %= draw(st.sampled_from(before))
        inputs = {name: draw(st.sampled_from(LOOKS)) % name for name in named}
        name = f"s{number}"
        steps.append(
            Step(
                name=name,
                operation="tools",
                config=ToolsConfig(server="s", tool=name),
                inputs=compile_value(inputs),
                condition=None if condition is None else compile_value(condition),
                retry=draw(st.sampled_from(RETRIES)),
                timeout=draw(st.sampled_from([None, None, 1.0, 3.0])),
            )
        )
    outputs = {step.name: draw(st.sampled_from(LOOKS)) % step.name for step in steps if draw(st.booleans())}
    return Ensemble(name="t", steps=tuple(steps), flow=draw(flows(steps)), outputs=compile_value(outputs))


@st.composite
def flows(draw: st.DrawFn, steps: list[Step]) -> tuple[FlowItem, ...] | None:
    """None, or the steps in their order, some of them within control steps, and these within others."""
    if draw(st.booleans()):
        return None
    return sequence(draw, [FlowStep(step=step.name, name=step.name) for step in steps], 2)


def sequence(draw: Any, places: list[FlowStep], depth: int) -> tuple[FlowItem, ...]:
    items: list[FlowItem] = []
    while places:
        size = draw(st.integers(1, len(places)))
        taken, places = places[:size], places[size:]
        if depth and draw(st.booleans()):
            items.append(control(draw, taken, depth - 1))
        else:
            items += taken
    return tuple(items)


def control(draw: Any, places: list[FlowStep], depth: int) -> FlowItem:
    """A control step around these; it is called after the first of them."""
    name = f"g{depth}_{places[0].name}"
    cut = draw(st.integers(1, len(places)))
    one, two = sequence(draw, places[:cut], depth), sequence(draw, places[cut:], depth)
    at_once = draw(st.integers(1, 3))
    items = compile_value(draw(st.sampled_from([[], [1, 2], [1, 2, 3, 4], "${run.id}"])))
    condition = compile_value(draw(st.sampled_from(["${true}", "${false}", "${1}"])))
    match draw(st.sampled_from(["parallel", "branch", "switch", "try", "foreach", "while", "map"])):
        case "branch":
            return BranchFlow(name=name, condition=condition, then=one, otherwise=two)
        case "switch":
            return SwitchFlow(name=name, value=condition, cases={"true": one}, default=two)
        case "try" if draw(st.booleans()):
            return TryFlow(name=name, steps=one, lastly=two or one[:0])
        case "try":
            return TryFlow(name=name, steps=one, catch=two)
        case "foreach":
            breaks = condition if draw(st.booleans()) else None
            steps = (*one, *two)
            return ForeachFlow(
                name=name, items=items, steps=steps, lone=False, max_concurrency=at_once, break_when=breaks
            )
        case "while":
            more = compile_value("${iteration < 2}")
            return WhileFlow(name=name, condition=more, steps=(*one, *two), max_iterations=at_once)
        case "map" if len(one) == len(two) == 1:
            return MapReduceFlow(name=name, items=items, map=one[0], reduce=two[0])
        case _:
            wait_for = draw(st.sampled_from(["all", "any", "first"]))
            return ParallelFlow(name=name, steps=(*one, *two), wait_for=wait_for)


def tools(data: st.DataObject, house: House) -> None:
    """Each call of each tool does something drawn when it is made."""

    async def behave(_: Any) -> Any:
        does = data.draw(st.sampled_from(["answer", "answer", "fail", "vanish", "refuse", "wait", "hang"]))
        match does:
            case "fail":
                raise RuntimeError("broken")
            case "vanish":
                raise ConnectError("gone", server="s")
            case "refuse":
                return refusal("denied", "no")
            case "wait":
                await sleep(house.clock, data.draw(st.sampled_from([0.5, 2.0])))
            case "hang":
                await asyncio.Event().wait()
        return data.draw(st.sampled_from([True, 7, None, {"a": 1}]))

    house.gate.tools.update({f"s/s{number}": behave for number in range(6)})


async def played(house: House, ensemble: Ensemble, *, stop_at: float | None) -> Run | None:
    """The run, when the clock has been turned to its end; None where it was called off."""
    run = run_ensemble(ensemble, Labelled({}), services=house.services, timeout=DEADLINE)
    task = asyncio.get_running_loop().create_task(run)
    async with asyncio.timeout(LONG):
        await settle()
        while not task.done():
            due = house.clock.next_due()
            assert due is not None, "the run waits for nothing"
            if stop_at is not None and house.clock.monotonic() + due >= stop_at:
                task.cancel()
                stop_at = None
            await house.clock.advance(due)
        await asyncio.wait({task})
    return None if task.cancelled() else task.result()


@settings(deadline=None, max_examples=100)
@given(st.data(), ensembles(), st.sampled_from([None, None, 0.0, 1.0, 2.5]))
def test_every_run_ends_in_bounded_time_with_a_whole_record(
    data: st.DataObject, ensemble: Ensemble, stop_at: float | None
) -> None:
    house = House(Gate())
    tools(data, house)
    run = asyncio.run(played(house, ensemble, stop_at=stop_at))
    record = house.kept.records["run-1"]
    ends = [entry.step for entry in record if entry.kind == "StepEnded"]
    planned = plan(ensemble)
    assert len(ends) == len(set(ends)), "no step ends twice"
    assert record[-1].kind == "RunEnded"
    assert house.clock.monotonic() <= DEADLINE + GRACE * 1.2, "no step outlasts the deadline by much"
    assert house.clock.waiting == 0, "no timer is left"
    intended = [entry for entry in record if entry.kind == "CallIntended"]
    settled = [entry for entry in record if entry.kind == "CallSettled"]
    assert len(intended) == len(settled) == len(house.gate.calls)
    state = fold(planned, decode(encode_all(record)))
    begun = {progress.key for progress in state.nodes.values() if not progress.quiet}
    assert begun == set(ends), "every step ends"
    assert all(progress.ended for progress in state.nodes.values())
    assert state.ended is not None
    assert state.ended.success == (run is not None and run.success)
    if run is not None:
        assert run.record == record
        assert statuses(state) == run.steps, "the record tells the same as the run"
