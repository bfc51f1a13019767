"""`transform`: a value written down, several merged, or one that is reshaped by the pipeline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from luthier.errors import StepError
from luthier.taint import Labelled, join, merge
from luthier.tools import delivered
from luthier.workflows.operations.pipeline import reshaped
from luthier.workflows.operations.texts import a_kind
from luthier.workflows.retries import Outcome

if TYPE_CHECKING:
    from luthier.spec import TransformConfig
    from luthier.workflows.operations.attempt import Attempt


def perform(attempt: Attempt, config: TransformConfig) -> Outcome:
    """Make the value. Raises StepError where it does not have the form that the step asks for."""
    if config.value is not None:
        value = attempt.evaluate(config.value)
        output = Labelled(delivered(value.value), value.label, value.parts)
    elif config.merge is not None:
        output = merged(attempt.evaluate(config.merge))
    elif config.input is not None:
        given = delivered(attempt.evaluate(config.input).value)
        defaults = {} if config.defaults is None else delivered(attempt.evaluate(config.defaults).value)
        output = Labelled(reshaped(given, config, defaults), attempt.label)
    else:
        raise StepError("code", "a transform needs one of value, merge and input")
    return Outcome(output=output, label=attempt.label)


def merged(given: Labelled[Any]) -> Labelled[Any]:
    """Lists end to end, or mappings into one where the later wins; null, as of a skipped step, is nothing.

    Where an item stands, and whether it was overridden, tells of the lists and mappings beside it: so what
    is merged is nowhere better than they are as containers.
    """
    value = delivered(given.value)
    if not isinstance(value, list):
        raise StepError("code", f"merge takes a list of values, not {a_kind(value)}")
    members = [given.member(index, item) for index, item in enumerate(value)]
    label = join(member.label for member in members).join(given.label)
    items = [member.joined(label) for member in members if member.value is not None]
    if not items:
        return Labelled(None, label)
    if all(isinstance(item.value, list) for item in items):
        return merge(
            [item.member(index, one) for item in items for index, one in enumerate(item.value)], label
        )
    if all(isinstance(item.value, dict) for item in items):
        return merge({key: item.member(key, one) for item in items for key, one in item.value.items()}, label)
    kinds = " and ".join(sorted({a_kind(item.value) for item in items}))
    raise StepError("code", f"merge takes only lists or only mappings, not {kinds}")
