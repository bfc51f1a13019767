"""`endorse`: a value becomes trusted where it is of a closed type; anything else fails the step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from luthier.errors import StepError
from luthier.taint import Integrity, Labelled
from luthier.tools import delivered
from luthier.tools.closed import ClosedType, id_of, read_closed
from luthier.workflows.retries import Outcome

if TYPE_CHECKING:
    from luthier.spec import EndorseConfig
    from luthier.taint import Label
    from luthier.workflows.operations.attempt import Attempt


def perform(attempt: Attempt, config: EndorseConfig) -> Outcome:
    """Endorse the value. Raises Refused where it is not of the type, StepError where the type is none."""
    read = attempt.evaluate(config.value)
    value = Labelled(delivered(read.value), read.label, read.parts)
    closed, ids = _type(attempt, config)
    output = attempt.services.gateway.endorse(value, closed, config.reason, attempt.context)
    if ids is not None:
        output = output.joined(ids)
    return Outcome(output=output, label=output.label)


def _type(attempt: Attempt, config: EndorseConfig) -> tuple[ClosedType, Label | None]:
    if config.ids is None:
        return read_closed(config.closed), None
    ids = attempt.evaluate(config.ids)
    if ids.whole.integrity is not Integrity.trusted:
        raise StepError("denied", "the ids that the value may be are not trusted themselves")
    try:
        return id_of(delivered(ids.value)), ids.whole
    except ValueError as error:
        raise StepError("arguments", str(error)) from None
