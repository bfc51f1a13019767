"""What observers hear of a run: events, without values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from luthier.events import RunBegan, RunDone, StepBegan, StepDone
from luthier.taint import Confidentiality, Label
from luthier.text import one_line
from luthier.workflows.record import WITHHELD

if TYPE_CHECKING:
    from luthier.events import Observers
    from luthier.workflows.plan import Plan
    from luthier.workflows.progress import Progress
    from luthier.workflows.record import Failure, RunEnded, StepEnded


class Teller:
    """Tells of one run."""

    def __init__(self, observers: Observers, plan: Plan, run: str) -> None:
        self._tell = observers.notify
        self._plan = plan
        self._run = run

    def run_began(self, at: float, parent: str) -> None:
        self._tell(
            RunBegan(
                at=at, run=self._run, ensemble=self._plan.ensemble, steps=self._plan.steps, parent=parent
            )
        )

    def run_done(self, at: float, ended: RunEnded) -> None:
        self._tell(
            RunDone(
                at=at,
                run=self._run,
                ensemble=self._plan.ensemble,
                success=ended.success,
                duration=ended.duration,
                reason=_shown(ended.error, ended.output.label),
            )
        )

    def run_rests(self, at: float, duration: float) -> None:
        self._tell(
            RunDone(
                at=at,
                run=self._run,
                ensemble=self._plan.ensemble,
                success=False,
                duration=duration,
                reason="it waits for somebody to decide",
                suspended=True,
            )
        )

    def step_began(self, at: float, progress: Progress, attempt: int) -> None:
        node = progress.node
        operation = node.kind if node.step is None else node.step.operation
        self._tell(StepBegan(at=at, run=self._run, step=progress.key, operation=operation, attempt=attempt))

    def step_done(self, at: float, key: str, ended: StepEnded) -> None:
        status = ended.end if ended.end in ("ok", "failed") else "skipped"
        self._tell(
            StepDone(
                at=at,
                run=self._run,
                step=key,
                status=status,
                duration=ended.duration,
                reason="condition"
                if ended.error is None and status == "skipped"
                else _shown(ended.error, ended.label),
            )
        )


def _shown(error: Failure | None, label: Label) -> str:
    """The reason as an event may carry it."""
    if error is None:
        return ""
    return WITHHELD if label.confidentiality is Confidentiality.secret else one_line(error.message)
