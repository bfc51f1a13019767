"""Reads `scoring`: who judges a step's output, from which score on it will do, and what comes of less."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from luthier.spec.control import Aggregation, Backoff, OnLow, RunScoring, Scoring, Thresholds
from luthier.spec.expressions import placed
from luthier.spec.words import meant, quoted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from luthier.spec.draft import Draft, Uses
    from luthier.spec.origin import KeyPath
    from luthier.spec.reader import Reader, Sink

ON_LOW: tuple[OnLow, ...] = ("retry", "continue", "abort")
AGGREGATIONS: tuple[Aggregation, ...] = ("weighted_average", "minimum", "geometric_mean")
SCORE_BACKOFFS: tuple[Backoff, ...] = ("exponential", "linear", "fixed")
JUDGED = frozenset({"output", "attempt", "previousScore", "criteria"})
"""What an evaluator gets as its input."""


def read_scoring(reader: Reader, uses: Uses) -> Scoring | None:
    """That of a step, or of its place in a flow."""
    inner = reader.inner("scoring")
    if inner is None:
        return None
    evaluator = inner.text("evaluator", required=True)
    thresholds = _thresholds(inner, "thresholds")
    criteria = placed(inner.sink, inner.take("criteria"))
    on_failure = cast("OnLow | None", inner.choice(ON_LOW, "on_failure"))
    limit = inner.whole("retry_limit", high=100)
    better, least = inner.flag("require_improvement"), _share(inner, "min_improvement")
    inner.done()
    if criteria is not None:
        uses.expressions["scoring.criteria"] = criteria
    if evaluator is None:
        return None
    uses.evaluators.append((inner.places["evaluator"], evaluator))
    return Scoring(
        evaluator=evaluator,
        thresholds=thresholds,
        criteria=criteria.compiled if criteria else None,
        on_failure=on_failure or "retry",
        retry_limit=limit,
        improvement=least if least is not None else 0.0 if better else None,
    )


def read_run_scoring(reader: Reader, kept: dict[str, Any]) -> RunScoring | None:
    """That of an ensemble."""
    inner = reader.inner("scoring")
    if inner is None:
        return None
    criteria = placed(inner.sink, inner.take("criteria"))
    initial = inner.seconds("initial_backoff", zero=True)
    limit = inner.whole("max_retries", high=100)
    read = {
        "enabled": inner.flag("enabled", default=True),
        "thresholds": _thresholds(inner, "default_thresholds"),
        "criteria": criteria.compiled if criteria else None,
        "retry_limit": limit,
        "backoff": inner.choice(SCORE_BACKOFFS, "backoff_strategy"),
        "initial_backoff": initial,
        "aggregation": inner.choice(AGGREGATIONS, "aggregation"),
    }
    inner.refuse(
        ("track_in_state",), lambda key: f"{quoted(key)} has no effect: `${{scoring}}` tells", warning=True
    )
    inner.done()
    if criteria is not None:
        kept["scoring.criteria"] = criteria
    return RunScoring(**cast("dict[str, Any]", {key: one for key, one in read.items() if one is not None}))


def check_evaluators(
    sink: Sink, drafts: Iterable[Draft], named: Iterable[tuple[KeyPath, str, str]]
) -> set[str]:
    """The steps that judge others; faults for those that cannot. `named`: where, by whom, and whom."""
    steps = {draft.name: draft for draft in drafts}
    judges = {evaluator for _, _, evaluator in named}
    for path, owner, evaluator in named:
        draft = steps.get(evaluator)
        if draft is None:
            sink.add(f"there is no step {quoted(evaluator)}", path, suggestion=meant(evaluator, steps))
        elif evaluator == owner or draft.uses.evaluators:
            sink.add(f"step {quoted(evaluator)} is judged itself, so it cannot judge", path)
        elif draft.step is not None and draft.step.operation == "hitl":
            sink.add(f"step {quoted(evaluator)} asks a person, which an evaluator cannot", path)
    return judges & steps.keys()


def _thresholds(reader: Reader, name: str) -> Thresholds | None:
    inner = reader.inner(name)
    if inner is None:
        return None
    minimum = _share(inner, "minimum")
    target, excellent = _share(inner, "target"), _share(inner, "excellent")
    if minimum is None and "minimum" not in inner.places:
        inner.sink.add("`minimum` is missing", inner.path)
    inner.done()
    return Thresholds(minimum=minimum or 0.0, target=target, excellent=excellent)


def _share(reader: Reader, name: str) -> float | None:
    """A number from 0 to 1."""
    found = reader.take(name)
    if found is None:
        return None
    if not isinstance(found.value, int | float) or isinstance(found.value, bool):
        reader.sink.wrong("a number from 0 to 1", *found)
        return None
    if not 0 <= found.value <= 1:
        reader.sink.add(f"{quoted(str(found.path[-1]))} must be from 0 to 1, not {found.value}", found.path)
    return float(found.value)
