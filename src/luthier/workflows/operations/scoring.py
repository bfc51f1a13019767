"""`scoring`: an evaluator judges what a step gave; what will not do is a failure, and may be tried again.

The evaluator runs as an ensemble of one step inside of the attempt. Its score goes with the step's end. Where
it waits for somebody, so does the step, and what is to be judged waits in the record: it is not made again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from luthier.spec import Ensemble
from luthier.taint import Labelled, merge
from luthier.tools import delivered
from luthier.workflows.operations import perform
from luthier.workflows.operations.ensemble import suspended_in
from luthier.workflows.record import NULL, Failure
from luthier.workflows.retries import Outcome
from luthier.workflows.scores import LOW, lack_of, score_in

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from luthier.spec import Scoring, Step
    from luthier.workflows.operations.attempt import Attempt
    from luthier.workflows.plan import Plan
    from luthier.workflows.run import Run

_PREFIX = "ensemble:"


def perform_judged(attempt: Attempt) -> Awaitable[Outcome]:
    """Do what the step says, and have it judged if the step says so."""
    scoring = attempt.step.scoring
    return perform(attempt) if scoring is None else _performed_and_judged(attempt, scoring)


async def _performed_and_judged(attempt: Attempt, scoring: Scoring) -> Outcome:
    outcome = _made_before(attempt) or await perform(attempt)
    if outcome.error is not None or outcome.suspended is not None:
        return outcome
    run = await _judged(attempt, scoring, outcome.output)
    if run.suspended:
        made = merge({"output": outcome.output, "state": outcome.state})
        return Outcome(suspended=msgspec.structs.replace(suspended_in(run), asked=made), label=outcome.label)
    label = outcome.label.join(run.label)
    if run.error is not None:
        why = f"{scoring.evaluator} could not judge it: {run.error['message']}"
        return _low(outcome, Failure(kind=run.error["kind"], message=why, facts={"run": run.id}), label)
    score = score_in(run.output)
    if score is None:
        why = f"{scoring.evaluator} gave no score: it is a number, or stands under `score`"
        return _low(outcome, Failure(kind="code", message=why), label)
    lack = lack_of(score, attempt.scored_before, scoring)
    if lack and scoring.on_failure != "continue":
        facts = {"score": score, "minimum": scoring.thresholds.minimum if scoring.thresholds else 0.0}
        return _low(outcome, Failure(kind=LOW, message=lack, facts=facts), label, score)
    output = outcome.output.joined(run.label)
    return msgspec.structs.replace(outcome, output=output, label=label, score=score)


def _made_before(attempt: Attempt) -> Outcome | None:
    """What the step gave when its evaluator began to wait."""
    if attempt.waited is None or attempt.waited.what != "run" or attempt.waited.asked.value is None:
        return None
    made = attempt.waited.asked
    output, state = (made.member(key, made.value[key]) for key in ("output", "state"))
    return Outcome(output=output, label=output.whole, state=state)


def _low(outcome: Outcome, error: Failure, label: object, score: float | None = None) -> Outcome:
    return msgspec.structs.replace(outcome, output=NULL, error=error, label=label, state=NULL, score=score)


async def _judged(attempt: Attempt, scoring: Scoring, output: Labelled[object]) -> Run:
    """The run of the evaluator. It belongs to the same ensemble, so it may use what that may use."""
    judge = scoring.judge
    if judge is None:
        raise RuntimeError("the evaluator must be known before the run")
    criteria = NULL if scoring.criteria is None else attempt.evaluate(scoring.criteria)
    given = merge(
        {
            "output": Labelled(delivered(output.value), output.label, output.parts),
            "attempt": Labelled(attempt.number),
            "previousScore": Labelled(attempt.scored_before),
            "criteria": criteria,
        }
    )
    inner = _alone(judge, attempt.context.principals[-1].removeprefix(_PREFIX))
    context = msgspec.structs.replace(attempt.context, step=f"{attempt.context.step}/{judge.name}")
    await attempt.committed()
    return await attempt.play(inner, given, context)


def _alone(judge: Step, ensemble: str) -> Ensemble:
    return Ensemble(name=ensemble, steps=(judge,))


def evaluations_of(plan: Plan) -> list[Ensemble]:
    """What the evaluators of an ensemble run as."""
    steps = [node.step for node in plan.nodes.values() if node.step is not None]
    judges = [step.scoring.judge for step in steps if step.scoring is not None]
    return [_alone(judge, plan.ensemble) for judge in judges if judge is not None]
