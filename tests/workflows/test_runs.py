"""Whole runs: order, conditions, failures and what comes out of them."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from luthier.errors import ConnectError, InputError, SpecError, StoreError
from luthier.events import RunBegan, RunDone, StepBegan, StepDone
from luthier.tools import Reply
from luthier.workflows import Entry, MemoryRuns, RunRow, decode, plan
from luthier.workflows.machine import fold
from tests.workflows.house import Gate, House, kinds, read, refusal
from tests.workflows.playing import snapshot

if TYPE_CHECKING:
    from collections.abc import Sequence

TWO = """
ensemble: two
agents:
  - name: a
    operation: tools
    config: {mcp: s, tool: one}
  - name: b
    operation: transform
    config: {value: "${a.output.n + 1}"}
outputs:
  n: ${b.output}
"""


async def test_a_step_gets_what_the_steps_before_it_gave() -> None:
    run = await House(Gate({"s/one": {"n": 1}})).run(TWO)
    assert run.success
    assert run.output == {"n": 2}
    assert run.error is None
    assert run.steps["a"].output.tool == "one"


async def test_steps_that_do_not_name_each_other_run_at_the_same_time() -> None:
    together = asyncio.Barrier(2)

    async def meet(_: Any) -> str:
        await together.wait()
        return "met"

    run = await House(Gate({"s/one": meet, "s/two": meet})).run(
        """
        agents:
          - {name: a, operation: tools, config: {mcp: s, tool: one}}
          - {name: b, operation: tools, config: {mcp: s, tool: two}}
        ensemble: t
        outputs: {a: "${a.output}", b: "${b.output}"}
        """
    )
    assert run.output == {"a": "met", "b": "met"}


async def test_outputs_may_look_at_inputs() -> None:
    text = TWO.partition("outputs:")[0] + 'outputs: {a: "${input.x ? 1 : 2}", b: "${input.y || 3}"}\n'
    run = await House(Gate({"s/one": {"n": 1}, "s/two": 2})).run(text, {"x": True})
    assert run.output == {"a": 1, "b": 3}


async def test_without_outputs_a_run_delivers_the_output_of_its_last_step() -> None:
    run = await House(Gate({"s/one": {"n": 1}})).run(TWO.partition("outputs:")[0])
    assert run.output == 2


async def test_a_tool_s_result_is_delivered_as_its_content() -> None:
    run = await House(Gate({"s/one": {"n": 1}})).run(TWO.replace("${b.output}", "${a.output}"))
    assert run.output == {"n": {"n": 1}}


async def test_a_step_that_depends_on_another_by_name_waits_for_it() -> None:
    run = await House().run(
        """
        ensemble: t
        agents:
          - {name: late, operation: transform, depends_on: [early], config: {value: 1}}
          - {name: early, operation: transform, config: {value: 2}}
        """
    )
    started = [entry.step for entry in run.record if entry.kind == "StepStarted"]
    assert started == ["early", "late"]


async def test_an_ensemble_without_steps_delivers_null() -> None:
    run = await House().run(read(TWO).__class__(name="empty", steps=()))
    assert run.success
    assert run.output is None


class TestConditions:
    CASE = """
    ensemble: t
    agents:
      - {{name: a, operation: tools, config: {{mcp: s, tool: one}}}}
      - {{name: b, operation: transform, condition: "{condition}", config: {{value: ran}}}}
      - {{name: c, operation: transform, config: {{value: "${{b.output || 'not b'}}"}}}}
    outputs: "${{c.output}}"
    """

    @pytest.mark.parametrize(
        ("condition", "output"),
        [
            ("${a.output.yes}", "ran"),
            ("a.output.yes", "ran"),
            ("${a.output.no}", "not b"),
            ("${a.output.missing}", "not b"),
            ("${a.executed}", "ran"),
            ("${a.failed}", "not b"),
        ],
    )
    async def test_true_runs_the_step_and_false_or_null_skips_it(self, condition: str, output: str) -> None:
        run = await House(Gate({"s/one": {"yes": True, "no": False}})).run(
            self.CASE.format(condition=condition)
        )
        assert run.output == output
        assert run.steps["b"].executed == (output == "ran")
        assert run.steps["b"].skipped == (output != "ran")
        assert run.steps["b"].error is None

    async def test_a_result_stands_for_its_content(self) -> None:
        run = await House(Gate({"s/one": True})).run(self.CASE.format(condition="${a.output}"))
        assert run.output == "ran"

    @pytest.mark.parametrize("condition", ["${a.output.text}", "${a.output.number}", "${a.output}"])
    async def test_anything_else_is_an_error_of_the_condition(self, condition: str) -> None:
        gate = Gate({"s/one": {"text": "true", "number": 1, "yes": True}})
        run = await House(gate).run(self.CASE.format(condition=condition))
        assert run.steps["b"].failed
        assert not run.steps["b"].attempted
        assert run.steps["b"].error is not None
        assert run.steps["b"].error["kind"] == "condition"
        assert "must give true or false" in run.steps["b"].error["message"]
        assert run.output == "not b"


class TestFailures:
    async def test_a_failure_that_nobody_looks_at_fails_the_run_and_nothing_new_starts(self) -> None:
        run = await House(Gate({"s/one": RuntimeError("broken")})).run(TWO)
        assert not run.success
        assert run.output is None
        assert run.error == {"kind": "code", "message": "RuntimeError: broken", "step": "a"}
        assert run.steps["b"].error == {
            "kind": "dependency",
            "message": "dependency a failed",
            "failed": "a",
        }
        assert not run.steps["b"].attempted

    async def test_the_fallback_by_condition_takes_over(self) -> None:
        gate = Gate({"s/one": ConnectError("gone", server="s"), "s/two": ["second"]})
        run = await House(gate).run(
            """
            ensemble: t
            agents:
              - {name: first, operation: tools, config: {mcp: s, tool: one}}
              - {name: second, condition: "${first.failed}", operation: tools, config: {mcp: s, tool: two}}
            outputs:
              results: ${first.output || second.output}
              source: ${first.executed ? 'one' : 'two'}
              fine: ${first.success}
              why: ${first.error.kind}
            """
        )
        assert run.success
        assert run.output == {"results": ["second"], "source": "two", "fine": False, "why": "connect"}

    async def test_the_fallback_is_skipped_where_the_first_works(self) -> None:
        gate = Gate({"s/one": "first"})
        run = await House(gate).run(
            """
            ensemble: t
            agents:
              - {name: first, operation: tools, config: {mcp: s, tool: one}}
              - {name: second, condition: "${first.failed}", operation: tools, config: {mcp: s, tool: two}}
            outputs: "${first.output || second.output}"
            """
        )
        assert run.output == "first"
        assert len(gate.calls) == 1

    async def test_running_steps_finish_before_the_run_fails(self) -> None:
        release = asyncio.Event()

        async def slow(_: Any) -> str:
            await release.wait()
            return "done"

        async def fail(_: Any) -> None:
            asyncio.get_running_loop().call_soon(release.set)
            raise ConnectError("gone", server="s")

        run = await House(Gate({"s/one": fail, "s/two": slow})).run(
            """
            ensemble: t
            agents:
              - {name: a, operation: tools, config: {mcp: s, tool: one}}
              - {name: b, operation: tools, config: {mcp: s, tool: two}}
              - {name: c, operation: transform, config: {value: "${b.output}"}}
            """
        )
        assert run.error is not None
        assert run.error["step"] == "a"
        assert run.steps["b"].success
        assert run.steps["c"].error == {
            "kind": "dependency",
            "message": "not started, because a failed",
            "failed": "a",
        }

    @pytest.mark.parametrize(
        ("kind", "refused"), [("denied", True), ("approval", True), ("arguments", False)]
    )
    async def test_a_refusal_fails_the_step_with_its_kind(self, kind: str, *, refused: bool) -> None:
        gate = Gate({"s/one": refusal(kind, "Not this one.", rule="no-mail", place="luthier.yaml:3:5")})
        run = await House(gate).run(TWO)
        assert run.error == {"kind": kind, "message": "Not this one.", "tool": "mcp://s/one", "step": "a"}
        assert run.refused is refused
        assert run.note == "no-mail luthier.yaml:3:5"

    async def test_a_tool_s_own_error_is_an_answer(self) -> None:
        answer = Reply(blocks=[{"type": "text", "text": "no such thing"}], is_error=True)
        run = await House(Gate({"s/one": answer})).run(
            TWO.replace("${a.output.n + 1}", "${a.output.isError ? a.output.content : 'fine'}")
        )
        assert run.success
        assert run.output == {"n": "no such thing"}

    async def test_outputs_that_cannot_be_made_fail_the_run(self) -> None:
        run = await House(Gate({"s/one": {"n": 1}})).run(
            TWO.replace("${b.output}", "${b.output | slice('x')}")
        )
        assert not run.success
        assert run.error is not None
        assert run.error["kind"] == "condition"
        assert "step" not in run.error


class TestBeforeAnythingStarts:
    async def test_missing_and_mistyped_inputs_are_all_told(self) -> None:
        house = House(Gate({"s/one": {"n": 1}}))
        text = TWO + "inputs:\n  owner: {type: string, required: true}\n  number: {type: number}\n"
        with pytest.raises(InputError) as caught:
            await house.run(text, {"number": "x"})
        assert len(caught.value.faults) == 2
        assert not house.heard.events
        assert not house.kept.records

    async def test_steps_that_wait_for_each_other_are_refused(self) -> None:
        ensemble = read(TWO)
        a, b = ensemble.steps
        looped = type(ensemble)(
            name="looped",
            steps=(type(a)(name="a", operation=a.operation, config=a.config, depends_on=("b",)), b),
        )
        with pytest.raises(SpecError, match="a → b → a"):
            await House().run(looped)


class TestFlow:
    FLOW = """
    ensemble: t
    agents:
      - {name: a, operation: tools, config: {mcp: s, tool: one}}
      - {name: b, operation: tools, config: {mcp: s, tool: two}}
      - {name: c, operation: transform, config: {value: "${parallel_0.output}"}}
    flow:
      - type: parallel
        waitFor: WAIT
        steps:
          - agent: a
          - agent: b
      - agent: c
    outputs: {c: "${c.output}", a: "${a.output}", b: "${b.output}"}
    """

    async def test_a_parallel_group_yields_its_outputs_and_its_members_are_visible(self) -> None:
        run = await House(Gate({"s/one": 1, "s/two": 2})).run(self.FLOW.replace("WAIT", "all"))
        assert run.output == {"c": [1, 2], "a": 1, "b": 2}

    @pytest.mark.parametrize("wait_for", ["any", "first"])
    async def test_the_loser_is_really_cancelled(self, wait_for: str) -> None:
        async def never(_: Any) -> None:
            await asyncio.Event().wait()

        house = House(Gate({"s/one": never, "s/two": 2}))
        run = await house.run(self.FLOW.replace("WAIT", wait_for))
        assert run.output == {"c": [2], "a": None, "b": 2}
        assert house.gate.cancelled == ["one"]
        assert run.steps["a"].skipped
        assert run.steps["a"].attempted
        settled = [entry.data for entry in run.record if entry.kind == "CallSettled"]
        assert {getattr(data, "outcome", "") for data in settled} == {"ok", "cancelled"}

    async def test_the_written_order_holds_without_any_reference(self) -> None:
        run = await House(Gate({"s/one": 1, "s/two": 2})).run(
            """
            ensemble: t
            agents:
              - {name: a, operation: tools, config: {mcp: s, tool: one}}
              - {name: b, operation: tools, config: {mcp: s, tool: two}}
            flow: [{agent: b}, {agent: a}]
            outputs: {a: "${a.output}"}
            """
        )
        assert [entry.step for entry in run.record if entry.kind == "StepStarted"] == ["b", "a"]
        assert run.output == {"a": 1}


class TestScope:
    async def test_the_run_tells_of_itself(self) -> None:
        run = await House().run(
            """
            ensemble: t
            agents:
              - name: a
                operation: transform
                config:
                  value: {id: "${run.id}", of: "${run.ensemble}", at: "${run.started}", state: "${state.x}"}
            """
        )
        assert run.output == {"id": "run-1", "of": "t", "at": 1_000_000_000.0, "state": None}

    async def test_of_the_environment_only_exposed_names_are_seen(self) -> None:
        house = House(environ={"SHOWN": "yes", "HIDDEN": "no"}, expose_env=("SHOWN", "UNSET"))
        run = await house.run(
            """
            ensemble: t
            agents:
              - name: a
                operation: transform
                config: {value: ["${env.SHOWN}", "${env.HIDDEN}", "${env.UNSET}"]}
            """
        )
        assert run.output == ["yes", None, None]
        assert run.label.confidentiality.name == "secret"

    async def test_a_step_s_status_is_a_mapping(self) -> None:
        run = await House(Gate({"s/one": {"n": 1}})).run(
            TWO.replace("n: ${b.output}", "a: ${a}\n  keys: ${keys(a.envelope)}\n  b: ${b.envelope}")
        )
        status = run.output["a"]
        assert status["output"] == {"n": 1}
        assert status["success"] is status["executed"] is status["attempted"] is True
        assert status["failed"] is status["skipped"] is status["cached"] is False
        assert status["attempts"] == 1
        assert run.output["keys"] == ["tool", "server", "content", "duration", "isError", "blocks"]
        assert run.output["b"] is None


class TestTelling:
    async def test_observers_hear_of_the_run_and_each_step(self) -> None:
        house = House(Gate({"s/one": ConnectError("gone", server="s")}))
        await house.run(TWO)
        (began,) = house.heard.of(RunBegan)
        assert (began.run, began.ensemble, began.steps, began.parent) == ("run-1", "two", ("a", "b"), "")
        assert [(event.step, event.operation) for event in house.heard.of(StepBegan)] == [("a", "tools")]
        assert [(event.step, event.status, event.reason) for event in house.heard.of(StepDone)] == [
            ("a", "failed", "gone"),
            ("b", "skipped", "dependency a failed"),
        ]
        (done,) = house.heard.of(RunDone)
        assert (done.success, done.reason) == (False, "gone")

    async def test_a_step_skipped_by_its_condition_says_so(self) -> None:
        house = House()
        await house.run(
            """
            ensemble: t
            agents: [{name: a, condition: '${1 > 2}', operation: transform, config: {value: 1}}]
            """
        )
        (done,) = house.heard.of(StepDone)
        assert (done.status, done.reason) == ("skipped", "condition")

    async def test_a_reason_that_carries_a_secret_is_withheld(self) -> None:
        house = House(environ={"KEY": "hunter2"}, expose_env=("KEY",))
        run = await house.run(
            """
            ensemble: t
            agents:
              - {name: a, operation: transform, config: {merge: ["${env.KEY}", [1]]}}
              - {name: b, operation: transform, condition: "${env.KEY}", config: {value: 1}}
            """
        )
        assert not run.success
        assert {event.reason for event in house.heard.of(StepDone)} == {"withheld: it carries a secret"}
        assert house.heard.of(RunDone)[0].reason == "withheld: it carries a secret"


class TestRecord:
    async def test_it_says_what_happened_in_order(self) -> None:
        house = House(Gate({"s/one": {"n": 1}}))
        run = await house.run(TWO)
        assert kinds(run) == [
            "RunStarted",
            "StepStarted",
            "CallIntended",
            "CallSettled",
            "StepEnded",
            "StepStarted",
            "StepEnded",
            "RunEnded",
        ]
        assert house.kept.records == {"run-1": run.record}

    async def test_folded_again_it_gives_the_same_statuses(self) -> None:
        house = House(Gate({"s/one": {"n": 1}}))
        ensemble = read(TWO)
        run = await house.run(ensemble)
        from luthier.workflows import encode_all

        again = fold(plan(ensemble), decode(encode_all(run.record)))
        live = fold(plan(ensemble), run.record)
        assert snapshot(again) == snapshot(live)
        assert again.ended is not None
        assert again.ended.success

    async def test_one_that_cannot_be_kept_costs_the_run_nothing(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        class Full(MemoryRuns):
            def create(self, row: RunRow, entries: Sequence[Entry] = ()) -> None:
                raise StoreError(f"disk full at {row.id}, {len(entries)} entries")

        run = await House(Gate({"s/one": {"n": 1}}), records=Full()).run(TWO)
        assert run.success
        assert "the record of run run-1 could not be kept" in caplog.text


async def test_a_run_is_json() -> None:
    run = await House(Gate({"s/one": {"n": 1}})).run(TWO)
    document = json.loads(json.dumps(run.to_json()))
    assert document["success"] is True
    assert document["output"] == {"n": 2}
    assert document["steps"]["a"]["output"] == {"n": 1}
    assert document["steps"]["a"]["label"]["integrity"] == "untrusted"
    assert "envelope" not in document["steps"]["a"]
    assert document["error"] is None


async def test_a_run_s_repr_is_short() -> None:
    run = await House(Gate({"s/one": {"n": 1}})).run(TWO)
    assert repr(run) == "Run(id='run-1', ensemble='two', success=True)"


async def test_an_observer_that_fails_does_not_stop_the_run() -> None:
    class Deaf:
        def notify(self, event: Any) -> None:
            raise ValueError(event)

    from luthier.events import Observers
    from luthier.taint import Labelled
    from luthier.workflows import run_ensemble

    house = House(Gate({"s/one": {"n": 1}}))
    import msgspec

    services = msgspec.structs.replace(house.services, observers=Observers([Deaf()]))
    run = await run_ensemble(read(TWO), Labelled({}), services=services)
    assert run.success
