"""The state that the steps of a run share: what a step sets of it when it has ended."""

from __future__ import annotations

from collections import ChainMap
from typing import TYPE_CHECKING, Any

import msgspec

from luthier.errors import LuthierError, StepError
from luthier.expr import Scope
from luthier.spec.values import type_fault
from luthier.taint import Labelled, merge
from luthier.tools import delivered
from luthier.workflows.operations import failure_of
from luthier.workflows.record import StepEnded
from luthier.workflows.run import StepStatus
from luthier.workflows.scope import label_named, step_view

if TYPE_CHECKING:
    from luthier.spec import Ensemble
    from luthier.workflows.progress import Progress
    from luthier.workflows.retries import Outcome


def initial_state(ensemble: Ensemble, inputs: Labelled[Any], now: float) -> Labelled[Any]:
    """What the state begins with. Raises StepError for a value of the wrong type."""
    state = ensemble.state
    if state is None:
        return Labelled({})
    found = (
        Labelled({}) if state.initial is None else state.initial.evaluate(Scope({"input": inputs}, now=now))
    )
    value = dict.fromkeys(state.types) | delivered(found.value)
    _check({field: one for field, one in value.items() if one is not None}, state.types)
    return Labelled(value, found.label, found.parts)


def with_state(
    progress: Progress, ended: StepEnded, outcome: Outcome, scope: Scope, types: dict[str, Any]
) -> StepEnded:
    """The end of a step with what it sets; a failure where that cannot be made or is of the wrong type."""
    step = progress.node.step
    if step is None or step.state is None or ended.end != "ok":
        return ended
    made = {field: outcome.state.member(field, value) for field, value in (outcome.state.value or {}).items()}
    label = ended.label
    try:
        if step.state.values is not None:
            status = StepStatus(
                output=ended.output.value,
                success=True,
                executed=True,
                attempted=True,
                attempts=progress.attempt,
                cached=ended.cached,
            )
            own = step_view(status.view(), ended.output, ended.label)
            names = Scope(ChainMap({step.name: own}, scope.values), now=scope.now)  # type: ignore[arg-type]
            label = label.join(label_named(step.state.values, names.values))
            found = step.state.values.evaluate(names)
            made |= {field: found.member(field, delivered(one)) for field, one in found.value.items()}
        _check({field: one.value for field, one in made.items()}, types)
    except (LuthierError, RecursionError) as error:
        return StepEnded(end="failed", error=failure_of(error), output=Labelled(None, label), label=label)
    return msgspec.structs.replace(ended, state=merge(made).joined(progress.control))


def _check(values: dict[str, Any], types: dict[str, Any]) -> None:
    for field, value in values.items():
        type_ = types.get(field)
        if type_ is not None and value is not None and (fault := type_fault(value, type_)):
            raise StepError("code", f"state.{field} {fault}")
