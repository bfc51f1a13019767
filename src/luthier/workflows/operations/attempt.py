"""One attempt of one step, as its operation sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from luthier.errors import ExpressionError, LuthierError, Refused, StepError, kind_of
from luthier.redaction import redact
from luthier.workflows.operations.texts import a_kind
from luthier.workflows.record import Failure
from luthier.workflows.retries import Outcome
from luthier.workflows.scope import label_named

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from luthier.context import CallContext
    from luthier.expr import Compiled, Scope
    from luthier.spec import Ensemble, Step
    from luthier.taint import Label, Labelled
    from luthier.tools import Refusal
    from luthier.workflows.record import Data, Resumed, Suspended
    from luthier.workflows.run import Run
    from luthier.workflows.services import Services

    Play = Callable[[Ensemble, Labelled[Any], CallContext], Awaitable[Run]]


class Attempt:
    """What an operation works with, and what it leaves for the case that it is cut off.

    `label` is the join of all that it has seen; `harmless` says that to do it again would do nothing twice;
    `notes` are sentences for whoever reads that it was cut off. `tell` appends to the run's record; `play`
    runs an ensemble inside. `waited` is what it waited for before, and `resumed` what was decided then.
    `written`, of a durable run, waits until what was told is written; `lost` says
    that a call of this attempt was made before the process ended, and nobody knows what became of it.
    `scored_before` is what the attempt before this one was judged.
    """

    def __init__(  # noqa: PLR0913  (its parts)
        self,
        step: Step,
        *,
        number: int,
        context: CallContext,
        scope: Scope,
        inputs: Labelled[Any],
        services: Services,
        tell: Callable[[Data], None],
        play: Play,
        waited: Suspended | None = None,
        resumed: Resumed | None = None,
    ) -> None:
        self.step = step
        self.number = number
        self.context = context
        self.scope = scope
        self.inputs = inputs
        self.services = services
        self.tell = tell
        self.play = play
        self.waited = waited
        self.resumed = resumed
        self.label: Label = context.control
        self.harmless = True
        self.notes: list[str] = []
        self.written: Callable[[], Awaitable[None]] | None = None
        self.lost = False
        self.scored_before: float | None = None

    async def committed(self) -> None:
        """To be awaited before anything leaves the process. Raises StoreError and RunLostError."""
        if self.written is not None:
            await self.written()

    def evaluate(self, compiled: Compiled) -> Labelled[Any]:
        """The value of an expression of the step, which the attempt has then seen.

        Where there is none, that is a fact about all that the expression names.
        """
        try:
            value = compiled.evaluate(self.scope)
        except ExpressionError:
            self.label = self.label.join(label_named(compiled, self.scope.values))
            raise
        self.label = self.label.join(value.whole)
        return value

    def given(self) -> Labelled[dict[str, Any]]:
        """The step's own inputs, else the ensemble's. Raises StepError where they are no mapping."""
        if self.step.inputs is None:
            self.label = self.label.join(self.inputs.whole)
            return self.inputs
        given = self.evaluate(self.step.inputs)
        if not isinstance(given.value, dict):
            raise StepError("arguments", f"the inputs of a step are a mapping, not {a_kind(given.value)}")
        return given

    def failed(self, error: BaseException, *, label: Label | None = None, **rest: Any) -> Outcome:
        """The outcome that an exception makes."""
        return Outcome(error=failure_of(error), label=self.label if label is None else label, **rest)


def failure_of(error: BaseException) -> Failure:
    """An exception as a step's error: its kind, its message, its facts, and its hint among them."""
    if not isinstance(error, LuthierError):
        return Failure(kind=kind_of(error), message=redact(f"{type(error).__name__}: {error}"))
    facts = error.facts()
    if isinstance(error, Refused):
        return Failure(kind=error.refusal_kind, message=error.reason, facts=facts, note=note_of(error))
    if error.hint:
        facts["hint"] = error.hint
    return Failure(kind=kind_of(error), message=error.message, facts=facts)


def note_of(refusal: Refused | Refusal) -> str:
    """What the operator may know of a refusal and its caller may not: the rule, its place, what to do."""
    return " ".join(part for part in (refusal.rule, refusal.place, refusal.hint) if part)
