"""Scores: what an evaluator's answer says, whether it will do, and what all scores of a run come to. Pure."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import msgspec

from luthier.spec import Retry
from luthier.tools import delivered
from luthier.workflows.record import AttemptFailed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from luthier.spec import RunScoring, Scoring, Step
    from luthier.spec.control import Aggregation
    from luthier.workflows.record import Entry
    from luthier.workflows.run import StepStatus

LOW = "score"
"""The kind of the failure of a step whose output will not do."""

_LONGEST_WAIT = 60.0


def settled(scoring: Scoring, run: RunScoring, judge: Step | None) -> Scoring:
    """With its evaluator, and with the ensemble's word where the step's is missing."""
    return msgspec.structs.replace(
        scoring,
        judge=judge,
        thresholds=scoring.thresholds or run.thresholds,
        criteria=scoring.criteria or run.criteria,
        retry_limit=run.retry_limit if scoring.retry_limit is None else scoring.retry_limit,
    )


def retry_of(scoring: Scoring, run: RunScoring, retry: Retry | None) -> Retry | None:
    """The step's own retry, made to answer a low score too."""
    if scoring.on_failure != "retry" or not scoring.retry_limit:
        return retry
    again = scoring.retry_limit + 1
    if retry is None:
        return Retry(
            max_attempts=again,
            backoff=run.backoff,
            initial_delay=run.initial_backoff,
            max_delay=_LONGEST_WAIT,
            retry_on=(LOW,),
        )
    most = max(retry.max_attempts, again)
    return msgspec.structs.replace(retry, max_attempts=most, retry_on=(*retry.retry_on, LOW))


def score_in(value: Any) -> float | None:
    """The score in an evaluator's answer: a number, or the number under `score` or `value`."""
    value = delivered(value)
    if isinstance(value, dict):
        value = next((value[key] for key in ("score", "value") if key in value), None)
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
        return None
    return float(value)


def lack_of(score: float, before: float | None, scoring: Scoring) -> str:
    """Why a score will not do; empty where it does."""
    minimum = scoring.thresholds.minimum if scoring.thresholds is not None else 0.0
    if score < minimum:
        return f"scored {score:g}, and {minimum:g} is needed"
    if before is not None and scoring.improvement is not None:
        needed = before + scoring.improvement
        if score < needed or (score == before and not scoring.improvement):
            return f"scored {score:g} after {before:g}, which is not enough of an improvement"
    return ""


def last_score(entries: Sequence[Entry], step: str) -> float | None:
    """What the last attempt of a step that failed was judged."""
    for entry in reversed(entries):
        if entry.step == step and isinstance(entry.data, AttemptFailed):
            score = entry.data.error.facts.get("score")
            return float(score) if isinstance(score, int | float) else None
    return None


def summary(statuses: Mapping[str, StepStatus], aggregation: Aggregation) -> dict[str, Any]:
    """What `${scoring}` shows: each step's score, and what they come to together."""
    found = {name: status for name, status in statuses.items() if status.score is not None}
    scores = {name: status.score for name, status in found.items() if status.score is not None}
    passed = [score for name, score in scores.items() if found[name].executed]
    attempts = sum(status.attempts for status in found.values())
    values = list(scores.values())
    return {
        "ensembleScore": aggregate(passed, aggregation),
        "averageScore": aggregate(values, "weighted_average"),
        "minScore": min(values, default=None),
        "maxScore": max(values, default=None),
        "totalEvaluations": attempts,
        "totalRetries": attempts - len(found),
        "passRate": len(passed) / attempts if attempts else None,
        "averageAttempts": attempts / len(found) if found else None,
        "scores": scores,
    }


def aggregate(scores: Sequence[float], how: Aggregation) -> float | None:
    """One score out of several; null out of none."""
    if not scores:
        return None
    match how:
        case "minimum":
            return min(scores)
        case "geometric_mean":
            return math.prod(scores) ** (1 / len(scores))
        case _:
            return sum(scores) / len(scores)
