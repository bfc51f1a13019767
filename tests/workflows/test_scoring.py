"""`scoring`: what an evaluator's score makes of a step, of its attempts and of the run."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from luthier.clock import settle
from luthier.taint import TRUSTED, UNTRUSTED, Label
from luthier.testing import FaultyRuns
from luthier.workflows.machine import fold
from luthier.workflows.plan import plan
from luthier.workflows.scores import aggregate, score_in
from tests.workflows.drills import Kept as Records
from tests.workflows.drills import World, cut_off, gone_on
from tests.workflows.house import Gate, House, entry, kinds, read, turns

if TYPE_CHECKING:
    from luthier.workflows import Run

WRITE = """
ensemble: writer
scoring: {initialBackoff: 0%s}
agents:
  - name: write
    operation: tools
    config: {mcp: s, tool: write}
    input: {}
    scoring: {evaluator: judge%s}
  - {name: judge, operation: tools, config: {mcp: s, tool: judge}, input: "${input}"}
outputs: {text: "${write.output}", score: "${write.score}", error: "${write.error}", all: "${scoring}"}
"""


def house(*scores: Any, trust: Label = UNTRUSTED) -> House:
    texts = (f"draft {number}" for number in count(1))
    return House(
        Gate({"s/write": lambda _: next(texts), "s/judge": turns(*scores)}, label=trust), servers=[entry()]
    )


async def played(house: House, step: str = "", ensemble: str = "") -> Run:
    return await house.run(WRITE % (ensemble, step))


def of(house: House, tool: str) -> list[dict[str, Any]]:
    return [call.arguments.value for call in house.gate.calls if call.uri.name == tool]


async def test_a_score_that_will_do_goes_with_the_step() -> None:
    here = house({"score": 0.9})
    run = await played(here)
    assert run.output["text"] == "draft 1"
    assert run.output["score"] == run.steps["write"].score == 0.9
    assert of(here, "judge") == [{"output": "draft 1", "attempt": 1, "previousScore": None, "criteria": None}]
    assert "judge" not in run.steps
    assert run.output["all"] == {
        "ensembleScore": 0.9,
        "averageScore": 0.9,
        "minScore": 0.9,
        "maxScore": 0.9,
        "totalEvaluations": 1,
        "totalRetries": 0,
        "passRate": 1.0,
        "averageAttempts": 1.0,
        "scores": {"write": 0.9},
    }


async def test_a_low_score_is_a_failure_and_the_step_is_tried_again() -> None:
    here = house(0.2, 0.5, 0.8)
    run = await played(here)
    assert run.output["text"] == "draft 3"
    assert run.steps["write"].attempts == 3
    asked = of(here, "judge")
    assert [(one["attempt"], one["previousScore"]) for one in asked] == [(1, None), (2, 0.2), (3, 0.5)]
    assert run.output["all"]["totalRetries"] == 2
    assert kinds(run).count("AttemptFailed") == 2
    assert fold(plan(read(WRITE % ("", ""))), run.record).ended is not None


async def test_after_the_last_attempt_the_step_has_failed() -> None:
    here = house(0.1, 0.2, 0.3, 0.4)
    run = await played(here)
    assert of(here, "write") == [{}] * 4
    assert run.success  # the outputs look at the error
    error = run.output["error"]
    assert (error["kind"], error["score"], error["minimum"]) == ("score", 0.4, 0.7)
    assert error["message"] == "scored 0.4, and 0.7 is needed"
    assert run.output["text"] is None
    assert run.output["all"]["ensembleScore"] is None
    assert run.output["all"]["scores"] == {"write": 0.4}


async def test_the_waits_between_attempts_are_those_of_the_scoring() -> None:
    here = house(0.1, 0.9)
    text = (WRITE % (", backoffStrategy: fixed", "")).replace("initialBackoff: 0", "initialBackoff: 5000")
    async with here.running(text) as task:
        await here.clock.advance(4.9)
        await settle()
        assert len(of(here, "write")) == 1
        await here.clock.advance(0.2)
        run = await task
    assert run.output["text"] == "draft 2"


@pytest.mark.parametrize(
    ("step", "ensemble", "attempts"),
    [
        (", onFailure: abort", "", 1),
        (", retryLimit: 1", "", 2),
        (", retryLimit: 0", "", 1),
        ("", ", maxRetries: 2", 3),
    ],
)
async def test_how_often_is_said_by_the_step_and_else_by_the_ensemble(
    step: str, ensemble: str, attempts: int
) -> None:
    run = await played(house(*[0.1] * 9), step, ensemble)
    assert run.steps["write"].attempts == attempts
    assert run.steps["write"].failed


async def test_a_step_may_go_on_with_a_low_score() -> None:
    run = await played(house(0.1), ", onFailure: continue")
    assert (run.output["text"], run.output["score"]) == ("draft 1", 0.1)


async def test_thresholds_and_criteria_of_the_step_win_over_those_of_the_ensemble() -> None:
    here = house(0.3)
    ensemble = ", defaultThresholds: {minimum: 0.9}, criteria: {tone: dry}"
    run = await played(here, ", thresholds: {minimum: 0.3}", ensemble)
    assert run.success
    assert of(here, "judge")[0]["criteria"] == {"tone": "dry"}
    here = house(0.95)
    await played(here, ", criteria: '${run.ensemble}'", ensemble)
    assert of(here, "judge")[0]["criteria"] == "writer"


@pytest.mark.parametrize(
    ("scores", "text"), [((0.5, 0.5, 0.9), "draft 3"), ((0.5, 0.69, 0.9), "draft 3"), ((0.5, 0.7), "draft 2")]
)
async def test_each_attempt_may_have_to_be_better_by_so_much(scores: tuple[float, ...], text: str) -> None:
    step = ", thresholds: {minimum: 0.6}, minImprovement: 0.2"
    run = await played(house(*scores), step)
    assert run.output["text"] == text


async def test_as_good_as_before_is_no_improvement() -> None:
    step = ", thresholds: {minimum: 0.5}, requireImprovement: true"
    run = await played(house(0.4, 0.4, 0.5), step)
    assert run.output["text"] == "draft 3"


async def test_where_scoring_is_off_nobody_judges() -> None:
    here = house()
    run = await played(here, "", ", enabled: false")
    assert run.output["text"] == "draft 1"
    assert of(here, "judge") == []
    assert run.output["score"] is None


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        ("very good", "code", "judge gave no score"),
        ({"verdict": 1}, "code", "judge gave no score"),
        (ValueError("out of order"), "code", "judge could not judge it: ValueError: out of order"),
    ],
)
async def test_an_evaluator_that_gives_no_score_fails_the_step(answer: Any, kind: str, words: str) -> None:
    run = await played(house(answer))
    assert run.output["error"]["kind"] == kind
    assert words in run.output["error"]["message"]
    assert run.steps["write"].attempts == 1


async def test_a_step_that_fails_by_itself_is_not_judged() -> None:
    here = house()
    here.gate.tools["s/write"] = ValueError("no pen")
    run = await played(here)
    assert of(here, "judge") == []
    assert "no pen" in run.output["error"]["message"]


async def test_an_evaluator_runs_as_part_of_the_ensemble_and_its_label_is_joined() -> None:
    here = house(0.9, trust=TRUSTED)
    run = await played(here)
    judged = here.gate.calls[1]
    assert judged.context.principals[-1] == "ensemble:writer"
    assert run.label == TRUSTED
    here = house(0.9)
    tools = "operation: tools\n    config: {mcp: s, tool: write}\n    input: {}"
    text = (WRITE % ("", "")).replace(tools, "operation: transform\n    config: {value: mine}")
    run = await here.run(text)
    assert run.labelled.at("/text").integrity == UNTRUSTED.integrity


async def test_in_a_flow_the_evaluator_stands_aside_and_a_place_may_say_who_judges() -> None:
    text = """
ensemble: loop
scoring: {aggregation: geometric_mean, initialBackoff: 0}
agents:
  - {name: write, operation: transform, config: {value: "${item}"}}
  - {name: judge, operation: transform, config: {value: {score: "${input.output / 10}"}}}
flow:
  - foreach: {id: each, items: [8, 10], step: {agent: write, scoring: {evaluator: judge}}}
outputs: {all: "${each.output}", score: "${scoring.ensembleScore}", low: "${scoring.minScore}"}
"""
    assert read(text).warnings == ()
    run = await House().run(text)
    assert run.output == {"all": [8, 10], "score": pytest.approx(0.8**0.5), "low": 0.8}


async def test_its_own_retries_and_those_for_its_score_are_counted_together() -> None:
    here = house(0.1, 0.9)
    text = (WRITE % ("", "")).replace(
        "    scoring:", "    retry: {maxAttempts: 2, initialDelay: 0}\n    scoring:"
    )
    run = await here.run(text)
    assert run.output["text"] == "draft 2"


DURABLE = """
ensemble: judged
scoring: {initialBackoff: 0}
agents:
  - name: write
    operation: tools
    config: {mcp: s, tool: do}
    input: {key: "write-${run.id}"}
    scoring: {evaluator: judge}
  - {name: judge, operation: tools, config: {mcp: s, tool: look}, input: {key: judge}}
outputs: {score: "${write.score}", n: "${write.output.n}"}
"""


async def test_a_durable_run_is_judged_again_where_it_was_cut_off_and_does_nothing_twice() -> None:
    ends = []
    for at in count(1):
        kept = Records()
        world = World()
        world.gate.tools["s/look"] = lambda _: {"score": 0.8}
        if await cut_off(DURABLE, world, FaultyRuns(kept, at)) is not None:
            break
        run = await gone_on(DURABLE, world, kept)
        assert world.twice == []
        ends.append(run.success or (run.error or {})["kind"])
    assert True in ends
    assert set(ends) <= {True, "unknown"}


@pytest.mark.parametrize(
    ("value", "score"),
    [
        (1, 1.0),
        (0.25, 0.25),
        ({"score": 0.5, "value": 1}, 0.5),
        ({"value": 0.5}, 0.5),
        (True, None),
        ("1", None),
        (None, None),
        ({}, None),
        (float("inf"), None),
    ],
)
def test_what_is_a_score(value: Any, score: float | None) -> None:
    assert score_in(value) == score


def test_several_scores_become_one() -> None:
    assert aggregate([], "minimum") is None
    assert aggregate([0.5, 1.0], "minimum") == 0.5
    assert aggregate([0.5, 1.0], "weighted_average") == 0.75
    assert aggregate([0.25, 1.0], "geometric_mean") == 0.5
