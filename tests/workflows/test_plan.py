"""Plans: who waits for whom, and who looks at whose failure, read from ensembles."""

from __future__ import annotations

import pytest

from luthier.errors import SpecError
from luthier.spec import Ensemble, FlowStep, ParallelFlow, Step, TransformConfig
from luthier.workflows import Plan, plan
from luthier.workflows.plan import OUTPUTS, Plans, arrange
from tests.workflows.house import read
from tests.workflows.playing import group, node

HEAD = "ensemble: t\nagents:\n"


def steps(*lines: str, more: str = "") -> Plan:
    return plan(read(HEAD + "".join(f"  - {line}\n" for line in lines) + more))


def made(name: str, **rest: object) -> Step:
    return Step(name=name, operation="transform", config=TransformConfig(), **rest)  # type: ignore[arg-type]


class TestWithoutFlow:
    def test_a_step_needs_every_step_that_its_expressions_name(self) -> None:
        made = steps(
            "{name: a, operation: transform, config: {value: 1}}",
            "{name: b, operation: transform, config: {value: 1}}",
            "{name: c, operation: transform, config: {value: 1}}",
            "{name: d, operation: transform, config: {value: 1}}",
            "{name: e, operation: transform, config: {value: 1}}",
            "{name: f, operation: transform, config: {value: 1}}",
            "{name: of-value, operation: transform, config: {value: ['${a.output}', '${input.x}']}}",
            "{name: of-merge, operation: transform, config: {merge: ['${b.output}']}}",
            "{name: of-input, operation: transform, config: {input: '${c.output}', defaults: {x: '${d}'}}}",
            "{name: of-condition, operation: transform, condition: '${e.executed}', config: {value: 1}}",
            "{name: of-inputs, operation: tools, config: {mcp: s, tool: one}, input: {x: '${f.output}'}}",
        )
        needs = {key: found.needs for key, found in made.nodes.items() if found.needs}
        assert needs == {
            "of-value": ("a",),
            "of-merge": ("b",),
            "of-input": ("c", "d"),
            "of-condition": ("e",),
            "of-inputs": ("f",),
        }

    def test_a_step_needs_what_it_says_it_depends_on(self) -> None:
        made = steps(
            "{name: a, operation: transform, config: {value: 1}}",
            "{name: b, operation: transform, depends_on: [a], config: {value: '${a.output}'}}",
        )
        assert made.nodes["b"].needs == ("a",)
        assert made.followers == {"a": ("b",), "b": ()}

    def test_looking_at_a_failure_is_read_from_the_expressions(self) -> None:
        made = steps(
            "{name: a, operation: transform, config: {value: 1}}",
            "{name: b, operation: transform, config: {value: 1}}",
            "{name: c, operation: transform, config: {value: ['${a.output || 1}', '${b.output}']}}",
            more="outputs: {x: '${b.failed}'}\n",
        )
        assert made.nodes["c"].looks == {"a"}
        assert made.lookers == {"a": ("c",), "b": (OUTPUTS,), "c": ()}

    def test_the_last_step_delivers(self) -> None:
        made = steps(
            "{name: a, operation: transform, config: {value: 1}}",
            "{name: b, operation: transform, config: {value: 1}}",
        )
        assert made.last == "b"
        assert made.steps == ("a", "b")


class TestWithFlow:
    def test_the_written_order_holds_and_only_a_name_makes_a_need(self) -> None:
        made = steps(
            "{name: a, operation: transform, config: {value: 1}}",
            "{name: b, operation: transform, config: {value: 1}}",
            "{name: c, operation: transform, config: {value: '${a.output}'}}",
            "{name: d, operation: transform, config: {value: '${c.output}'}}",
            more="flow: [{agent: a}, {agent: b}, {agent: c}, {agent: d}]\n",
        )
        waits = {key: (found.needs, found.after) for key, found in made.nodes.items()}
        assert waits == {
            "a": ((), ()),
            "b": ((), ("a",)),
            "c": (("a",), ("b",)),
            "d": (("c",), ()),
        }

    def test_a_group_stands_for_its_members(self) -> None:
        made = steps(
            "{name: a, operation: transform, config: {value: 1}}",
            "{name: b, operation: transform, config: {value: '${c.output}'}}",
            "{name: c, operation: transform, config: {value: 1}}",
            more="""flow:
  - agent: c
  - type: parallel
    waitFor: first
    steps: [{agent: a}, {agent: b}]
outputs: {x: "${parallel_1.failed}"}
""",
        )
        found = made.nodes["parallel_1"]
        assert (found.members, found.wait_for, found.after) == (("a", "b"), "first", ("c",))
        assert made.nodes["b"].parent == "parallel_1"
        assert made.nodes["b"].needs == ("c",)
        assert made.lookers["a"] == made.lookers["parallel_1"] == (OUTPUTS,)
        assert made.last == "parallel_1"
        assert list(made.below("parallel_1")) == ["parallel_1", "a", "b"]
        assert made.step("a").name == "a"
        with pytest.raises(KeyError):
            made.step("parallel_1")

    def test_what_is_said_at_a_place_wins_over_the_definition(self) -> None:
        made = steps(
            "{name: a, operation: transform, timeout: 1000, condition: '${false}', config: {value: 1}}",
            more="""flow:
  - {agent: a, id: first, timeout: 2000}
  - {agent: a, id: second, condition: '${true}'}
""",
        )
        first, second = made.nodes["first"].step, made.nodes["second"].step
        assert first is not None
        assert second is not None
        assert (first.timeout, second.timeout) == (2.0, 1.0)
        assert first.name == "first"
        assert first.condition is not None
        assert second.condition is not None
        assert (first.condition.source, second.condition.source) == ("${false}", "${true}")

    def test_a_failure_inside_a_group_that_does_not_wait_for_all_stays_in_its_member(self) -> None:
        made = arrange(
            [
                group("g", "h", "any"),
                group("h", "k x", "first", parent="g"),
                group("k", "y", parent="h"),
                node("x", parent="h"),
                node("y", parent="k"),
                group("all", "z"),
                node("z", parent="all"),
            ]
        )
        assert [key for key, found in made.nodes.items() if found.scope] == ["h", "k"]


class TestFaults:
    @pytest.mark.parametrize(
        ("ensemble", "message"),
        [
            (
                Ensemble(name="t", steps=(made("a", depends_on=("b",)), made("b", depends_on=("a",)))),
                "steps wait for each other: a → b → a",
            ),
            (Ensemble(name="t", steps=(made("a", depends_on=("a",)),)), "step 'a' waits for itself"),
            (
                Ensemble(name="t", steps=(made("a", depends_on=("x",)),)),
                "step 'a' depends on 'x', which is not there",
            ),
            (
                Ensemble(name="t", steps=(made("a"),), flow=(FlowStep(step="x", name="x"),)),
                "the flow names the step 'x', which is not there",
            ),
            (
                Ensemble(name="t", steps=(made("a"),), flow=(FlowStep(step="a", name="a"),) * 2),
                "two places in the flow are named 'a'",
            ),
            (
                Ensemble(
                    name="t",
                    steps=(made("a", depends_on=("b",)), made("b")),
                    flow=(FlowStep(step="a", name="a"), FlowStep(step="b", name="b")),
                ),
                "wait for each other",
            ),
            (
                Ensemble(
                    name="t",
                    steps=(made("a", depends_on=("g",)),),
                    flow=(ParallelFlow(name="g", steps=(FlowStep(step="a", name="a"),)),),
                ),
                "wait for each other",
            ),
        ],
    )
    def test_what_cannot_be_planned_is_named(self, ensemble: Ensemble, message: str) -> None:
        with pytest.raises(SpecError, match=message):
            plan(ensemble)

    def test_a_long_chain_is_no_circle(self) -> None:
        chain = [made("s0"), *(made(f"s{n}", depends_on=(f"s{n - 1}",)) for n in range(1, 5000))]
        assert len(plan(Ensemble(name="t", steps=tuple(reversed(chain)))).nodes) == 5000

    def test_a_diamond_is_no_circle(self) -> None:
        assert arrange([node("d", "b c"), node("b", "a"), node("c", "a"), node("a")]).nodes


class TestDigest:
    TEXT = "{name: a, operation: transform, config: {value: '${input.x}'}}"

    def test_it_is_the_same_for_the_same_file(self) -> None:
        assert steps(self.TEXT).digest() == steps(self.TEXT).digest()

    @pytest.mark.parametrize(
        "other",
        [
            "{name: a, operation: transform, config: {value: '${input.y}'}}",
            "{name: b, operation: transform, config: {value: '${input.x}'}}",
            "{name: a, operation: transform, timeout: 1, config: {value: '${input.x}'}}",
            "{name: a, operation: transform, retry: {maxAttempts: 2}, config: {value: '${input.x}'}}",
        ],
    )
    def test_it_changes_with_what_a_run_would_do(self, other: str) -> None:
        assert steps(self.TEXT).digest() != steps(other).digest()

    def test_it_changes_with_the_outputs(self) -> None:
        assert steps(self.TEXT).digest() != steps(self.TEXT, more="outputs: {x: 1}\n").digest()


class TestPlans:
    def test_an_ensemble_is_planned_once(self) -> None:
        ensemble, plans = Ensemble(name="t", steps=(made("a"),)), Plans()
        assert plans.of(ensemble) is plans.of(ensemble)

    def test_another_of_the_same_name_has_a_plan_of_its_own(self) -> None:
        plans = Plans()
        one, other = (Ensemble(name="t", steps=(made(name),)) for name in "ab")
        assert [tuple(plans.of(ensemble).nodes) for ensemble in (one, other, one)] == [("a",), ("b",), ("a",)]
