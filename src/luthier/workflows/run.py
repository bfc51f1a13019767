"""What a run leaves in the user's hands: its outcome, and the status of each step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from luthier.taint import TRUSTED, Label, Labelled
from luthier.tools import Envelope, delivered
from luthier.workflows.record import NULL, Entry
from luthier.workflows.runs import Waiting, waiting_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from luthier.context import CallContext
    from luthier.workflows.machine import State
    from luthier.workflows.progress import Progress
    from luthier.workflows.record import RunEnded

REFUSALS = frozenset({"denied", "approval"})
"""Kinds of failure that are a decision of the gate."""


class StepStatus(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One step as expressions and Python see it; of one that has not ended, nothing holds.

    `executed`: ended without failing. `attempted`: was started. `skipped`: did not run to its end, because of
    its condition, of another step's failure, or because it was called off. `duration` is milliseconds over
    all attempts; `score` is what its evaluator gave, null without one.
    """

    output: Any = None
    success: bool = False
    failed: bool = False
    executed: bool = False
    attempted: bool = False
    skipped: bool = False
    error: dict[str, Any] | None = None
    duration: float = 0.0
    attempts: int = 0
    cached: bool = False
    score: float | None = None
    label: Label = TRUSTED

    def view(self) -> dict[str, Any]:
        """The mapping that stands for the step in expressions."""
        return {
            "output": self.output,
            "success": self.success,
            "failed": self.failed,
            "executed": self.executed,
            "attempted": self.attempted,
            "skipped": self.skipped,
            "error": self.error,
            "duration": self.duration,
            "attempts": self.attempts,
            "retry_count": max(self.attempts - 1, 0),
            "cached": self.cached,
            "score": self.score,
            "envelope": _whole(self.output) if isinstance(self.output, Envelope) else None,
        }

    def to_json(self) -> dict[str, Any]:
        """The status as plain JSON values, the output as it is delivered."""
        shown = self.view()
        del shown["envelope"]
        return {**shown, "output": delivered(self.output), "label": self.label.to_json()}


def _whole(envelope: Envelope) -> dict[str, Any]:
    blocks = envelope.raw_blocks()
    return envelope.fields() if blocks is None else {**envelope.fields(), "blocks": blocks}


def status_of(progress: Progress) -> StepStatus:
    """What a node's progress means to its users."""
    ended = progress.ended
    if ended is None:
        return StepStatus(attempted=progress.attempt > 0, attempts=progress.attempt)
    return StepStatus(
        output=ended.output.value,
        success=ended.end == "ok",
        failed=ended.end == "failed",
        executed=ended.end == "ok",
        attempted=progress.attempt > 0,
        skipped=ended.end not in ("ok", "failed"),
        error=None if ended.error is None else ended.error.view(),
        duration=ended.duration,
        attempts=progress.attempt,
        cached=ended.cached,
        score=ended.score,
        label=ended.label,
    )


def statuses(state: State) -> dict[str, StepStatus]:
    """Every step and control step by its name; what stands in a loop by its id in each iteration too.

    By its name it is that of the last iteration, and has not run where there was none.
    """
    found = {
        key: StepStatus(skipped=True) if (progress := state.seen(key)) is None else status_of(progress)
        for key, node in state.plan.nodes.items()
        if node.kind != "sequence"
    }
    inside = (progress for progress in state.nodes.values() if len(progress.prefixes) > 1)
    return found | {progress.key: status_of(progress) for progress in inside if not progress.quiet}


def _suspended(context: CallContext, state: State, record: Sequence[Entry]) -> Run:
    waiting = waiting_of(state)
    steps = ", ".join(one.step for one in waiting)
    return Run(
        id=context.run,
        ensemble=state.plan.ensemble,
        success=False,
        labelled=NULL,
        steps=statuses(state),
        error={"kind": "approval", "message": f"it waits for somebody to decide, at {steps}"},
        record=tuple(record),
        suspended=waiting,
    )


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One execution of an ensemble, as far as it came.

    `output` is what it delivers and `label` where that came from; both also stand in `labelled`, with the
    labels of the parts. `error` is `{kind, message, step?, …}` where it failed. `duration` is milliseconds.
    One that is `suspended` has not ended: it goes on with `luthier runs resume`.
    """

    id: str
    ensemble: str
    success: bool
    labelled: Labelled[Any]
    response: Labelled[Any] = NULL  # `{status, headers}`, of an ensemble whose outputs are blocks
    steps: dict[str, StepStatus]
    error: dict[str, Any] | None = None
    note: str = ""  # on the error, for the operator only: the rule that refused, and where it is written
    duration: float = 0.0
    cached: bool = False  # what it delivers was kept from an earlier run
    record: tuple[Entry, ...] = ()
    suspended: tuple[Waiting, ...] = ()  # what it waits for, and goes on when that is decided

    def __repr__(
        self,
    ) -> str:  # short: asyncio.run spells its task's result when it puts the signal handlers back
        return f"Run(id={self.id!r}, ensemble={self.ensemble!r}, success={self.success!r})"

    @property
    def output(self) -> Any:
        return self.labelled.value

    @property
    def label(self) -> Label:
        """Of all that it delivers, status and headers among it."""
        return self.labelled.whole.join(self.response.whole)

    @property
    def status(self) -> int:
        """As in HTTP; 200 where the outputs do not say, 500 of a run that failed."""
        if not self.success:
            return 500
        return int(self.response.value["status"]) if self.response.value else 200

    @property
    def headers(self) -> dict[str, str]:
        return dict(self.response.value["headers"]) if self.response.value else {}

    @property
    def refused(self) -> bool:
        """Whether it failed because the gate said no, or waits for an approval."""
        return self.error is not None and self.error["kind"] in REFUSALS

    def to_json(self) -> dict[str, Any]:
        """The run as plain JSON values, without its record."""
        return {
            "id": self.id,
            "ensemble": self.ensemble,
            "success": self.success,
            "output": self.output,
            **({"status": self.status, "headers": self.headers} if self.response.value else {}),
            "label": self.label.to_json(),
            "steps": {name: status.to_json() for name, status in self.steps.items()},
            "error": self.error,
            "duration": self.duration,
            "cached": self.cached,
            **({"suspended": msgspec.to_builtins(self.suspended)} if self.suspended else {}),
        }


def run_of(context: CallContext, state: State, ended: RunEnded | None, record: Sequence[Entry]) -> Run:
    """What a run leaves behind that has ended so; None: it is suspended."""
    if ended is None:
        return _suspended(context, state, record)
    error = None
    if ended.error is not None:
        error = {**ended.error.view(), **({"step": ended.step} if ended.step else {})}
    return Run(
        id=context.run,
        ensemble=state.plan.ensemble,
        success=ended.success,
        labelled=ended.output,
        response=ended.response,
        cached=ended.cached,
        steps=statuses(state),
        error=error,
        note="" if ended.error is None else ended.error.note,
        duration=ended.duration,
        record=tuple(record),
    )
