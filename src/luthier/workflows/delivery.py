"""What a run delivers, what is remembered of it, and what takes the place of a step that took too long."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from luthier.errors import LuthierError
from luthier.taint import Labelled, join, merge
from luthier.tools import delivered
from luthier.workflows.operations import failure_of
from luthier.workflows.plan import named_by_outputs, names_state
from luthier.workflows.record import NULL, Failure, StepEnded
from luthier.workflows.response import respond
from luthier.workflows.scope import label_named

if TYPE_CHECKING:
    from luthier.expr import Scope
    from luthier.workflows.machine import State
    from luthier.workflows.nodes import Node
    from luthier.workflows.plan import Plan
    from luthier.workflows.scope import RunScope


def deliver(plan: Plan, scope: Scope) -> tuple[Labelled[Any], Labelled[Any], Failure | None]:
    """What the run delivers, how (`{status, headers}`), or why it cannot."""
    response = NULL
    try:
        if plan.blocks:
            found, made = respond(plan.blocks, scope)
            response = Labelled({"status": made.status, "headers": made.headers}, made.label)
        elif plan.outputs is not None:
            found = plan.outputs.evaluate(scope)
        elif plan.last:
            last = scope.values[plan.last]
            found = last.member("output", last.value["output"])
        else:
            found = NULL
        return Labelled(delivered(found.value), found.label, found.parts), response, None
    except (LuthierError, RecursionError) as error:
        read = (plan.outputs, *(one for block in plan.blocks for one in block.expressions))
        label = join(label_named(one, scope.values) for one in read if one is not None)
        return Labelled(None, label), NULL, failure_of(error)


def memory_of(state: State, view: RunScope) -> Labelled[Any] | None:
    """What the outputs name, by name; None where a step among it failed."""
    named = named_by_outputs(state.plan)
    for key in named:
        progress = state.seen(key)
        if progress is not None and progress.ended is not None and progress.ended.error is not None:
            return None
    seen = (*named, "state") if names_state(state.plan) else named
    return merge({key: view[key] for key in seen})


def instead(node: Node, ended: StepEnded, scope: Scope) -> StepEnded:
    """What a step that took too long ends with; as it ended where it does not say."""
    wanted = node.step.on_timeout if node.step is not None else None
    if wanted is None or ended.error is None or ended.error.kind != "timeout":
        return ended
    if wanted.fallback is None:
        error = msgspec.structs.replace(ended.error, message=wanted.error)
        return msgspec.structs.replace(ended, error=error)
    try:
        output = wanted.fallback.evaluate(scope).joined(ended.label)
    except (LuthierError, RecursionError) as failure:
        label = label_named(wanted.fallback, scope.values).join(ended.label)
        output = Labelled(None, label)
        return StepEnded(end="failed", error=failure_of(failure), output=output, label=label)
    return StepEnded(end="ok", output=output, label=output.whole)
