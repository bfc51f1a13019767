"""`ensemble` steps: one ensemble inside another."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from luthier.context import CallContext
from luthier.errors import ConnectError, StepError
from luthier.events import RunBegan
from luthier.taint import SECRET, UNTRUSTED, Labelled
from luthier.tools import Reply
from luthier.workflows.runner import DEPTH, inner_id
from tests.workflows.house import Gate, House, refusal
from tests.workflows.test_time import played

INNER = inner_id(CallContext(run="run-1", root="run-1", step="a"))

CHILD = """
ensemble: child
inputs:
  n: {type: number, default: 5}
agents:
  - {name: inner, operation: tools, config: {mcp: s, tool: one}, input: {n: "${input.n}"}}
outputs: {doubled: "${inner.output * 2}"}
"""

PARENT = """
ensemble: parent
agents:
  - {name: a, operation: ensemble, config: {ensemble: child}, input: INPUT}
  - {name: b, operation: transform, config: {value: "${a.output.doubled + 1}"}}
"""


def parent(given: str = "{n: 3}", more: str = "") -> str:
    return PARENT.replace("INPUT", given) + more


def house(answer: Any = lambda arguments: arguments["n"], **rest: Any) -> House:
    return House(Gate({"s/one": answer}, **rest), ensembles=[CHILD])


async def test_its_output_is_the_step_s() -> None:
    run = await house().run(parent())
    assert run.output == 7
    assert run.steps["a"].output == {"doubled": 6}


async def test_it_gets_the_step_s_inputs_and_its_own_defaults() -> None:
    assert (await house().run(parent("{}"))).output == 11


async def test_it_gets_the_inputs_of_the_ensemble_around_it_where_the_step_has_none() -> None:
    text = parent().replace(", input: {n: 3}", "")
    assert (await house().run(text, {"n": 4})).output == 9


async def test_inputs_that_do_not_fit_fail_the_step() -> None:
    run = await house().run(parent("{n: text}"))
    assert run.error is not None
    assert run.error["kind"] == "arguments"
    assert "`n`" in run.error["message"] or "n" in run.error["message"]


async def test_an_ensemble_that_is_not_there_fails_the_step() -> None:
    from luthier.workflows.services import no_ensembles

    alone = house()
    import msgspec

    alone.services = msgspec.structs.replace(alone.services, ensembles=no_ensembles)
    run = await alone.run(parent())
    assert run.error is not None
    assert run.error["message"] == "There is no ensemble 'child'."


async def test_it_is_a_run_of_its_own_inside_the_other() -> None:
    home = house()
    await home.run(parent())
    began = home.heard.of(RunBegan)
    assert [(event.run, event.ensemble, event.parent) for event in began] == [
        ("run-1", "parent", ""),
        (INNER, "child", "run-1"),
    ]
    assert set(home.kept.records) == {"run-1", INNER}
    started = home.kept.records[INNER][0].data
    assert started.parent == "run-1"  # type: ignore[union-attr]


async def test_its_calls_are_made_by_both() -> None:
    home = house()
    await home.run(parent())
    context = home.gate.calls[0].context
    assert context.principals == ("operator", "ensemble:parent", "ensemble:child")
    assert (context.run, context.step) == (INNER, "inner")


async def test_its_failure_is_the_step_s_with_its_reason() -> None:
    run = await house(ConnectError("gone", server="s")).run(parent(more='outputs: {why: "${a.error}"}\n'))
    assert run.output["why"]["kind"] == "connect"
    assert run.output["why"]["message"] == "ensemble child failed at step inner: gone"
    assert run.output["why"]["step"] == "inner"
    assert run.output["why"]["run"] == INNER


async def test_a_failure_of_its_outputs_has_no_step() -> None:
    home = House(
        Gate({"s/one": 1}), ensembles=[CHILD.replace("inner.output * 2", "inner.output | slice('x')")]
    )
    run = await home.run(parent())
    assert run.error is not None
    assert run.error["message"].startswith("ensemble child failed: ")


async def test_a_refusal_inside_is_a_refusal_of_the_run() -> None:
    run = await house(refusal("denied", "no", rule="r")).run(parent())
    assert run.refused
    assert run.note == "r"


async def test_labels_go_in_and_come_out() -> None:
    home = house(label=Labelled(0).label)
    given = Labelled({"n": 3, "go": True}, parts={"/n": UNTRUSTED})
    run = await home.run(parent('{n: "${input.n}"}'), given)
    assert home.gate.calls[0].arguments.whole == UNTRUSTED
    assert run.success


async def test_the_branch_that_it_stands_in_labels_all_that_it_does() -> None:
    home = house(label=Labelled(0).label)
    text = parent().replace("name: a,", "name: a, condition: '${input.go}',")
    run = await home.run(text, Labelled({"go": True}, parts={"/go": SECRET}))
    assert home.gate.calls[0].context.control == SECRET
    assert run.label == SECRET


async def test_a_result_that_is_passed_in_can_still_be_asked_for_its_error() -> None:
    child = """
    ensemble: child
    inputs: {r: {type: object}}
    agents:
      - {name: x, operation: transform, config: {value: ["${input.r.isError}", "${input.r.n}", "${input.r}"]}}
    """
    home = House(Gate({"s/one": Reply(structured={"n": 1}, is_error=True)}), ensembles=[child])
    run = await home.run(
        """
        ensemble: parent
        agents:
          - {name: one, operation: tools, config: {mcp: s, tool: one}}
          - {name: a, operation: ensemble, config: {ensemble: child}, input: {r: "${one.output}"}}
        """
    )
    assert run.output == [True, 1, {"n": 1}]


async def test_its_deadline_is_that_of_the_step() -> None:
    home = house(lambda _: asyncio.Event().wait())
    run = await played(home, parent().replace("name: a,", "name: a, timeout: 2000,"))
    assert home.clock.monotonic() == 2.0
    assert home.gate.cancelled == ["one"]
    assert run.error is not None
    assert run.error["kind"] == "timeout"
    assert home.kept.records[INNER][-1].kind == "RunEnded"


async def test_when_the_outer_run_is_called_off_both_records_are_whole() -> None:
    home = house(lambda _: asyncio.Event().wait())
    async with home.running(parent()) as task:
        task.cancel()
        await asyncio.wait({task}, timeout=10)
        assert task.cancelled()
    assert [home.kept.records[run][-1].kind for run in ("run-1", INNER)] == ["RunEnded", "RunEnded"]
    assert home.clock.waiting == 0


async def test_an_inner_step_that_does_not_let_go_is_left_before_the_outer_one_gives_up() -> None:
    release = asyncio.Event()

    async def stubborn(_: Any) -> None:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue

    home = house(stubborn)
    run = await played(home, parent().replace("name: a,", "name: a, timeout: 2000,"))
    assert home.clock.monotonic() == 6.0
    assert run.error is not None
    assert run.error["message"] == "timed out after 2 s"
    release.set()


async def test_ensembles_that_run_each_other_for_ever_are_stopped() -> None:
    loop = "{ensemble: loop, agents: [{name: again, operation: ensemble, config: {ensemble: loop}}]}"
    home = House(ensembles=[loop])
    run = await home.run(loop)
    assert run.error is not None
    assert run.error["message"].endswith(
        f"ensembles run more than {DEPTH} deep inside each other, down to loop"
    )
    assert len(home.kept.records) == DEPTH


async def test_too_deep_a_context_is_refused_at_once() -> None:
    context = CallContext(principals=("operator", *("ensemble:x" for _ in range(DEPTH))))
    with pytest.raises(StepError):
        await House().run(CHILD, context=context)
