"""How far each node of a run has come, and the ends of those that do not run to theirs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec

from luthier.taint import TRUSTED, Label, Labelled
from luthier.workflows.nodes import LOOPS
from luthier.workflows.record import NULL, Failure, StepEnded

if TYPE_CHECKING:
    from luthier.workflows.nodes import Node
    from luthier.workflows.record import AttemptFailed, Resumed, Suspended


Phase = Literal["waiting", "judging", "due", "running", "resting", "suspended", "ended"]
"""`resting` is between two attempts, `suspended` until somebody decides."""


class Halt(msgspec.Struct, frozen=True):
    """Why nothing more starts: a step whose failure nobody deals with, or (`step` empty) from outside."""

    error: Failure
    step: str = ""
    label: Label = TRUSTED


_NONE: list[Progress] = []
"""The iterations of all that are no loops; nothing is added to it."""


class Progress:
    """One node, or one iteration's own of it. `key` is its id: `loop[3].step`. Changed by the state only.

    `prefixes` are those of the ids in the loops around it, outermost first; the last is its own.
    """

    __slots__ = (
        "attempt",
        "awaited",
        "bodies",
        "called_off",
        "caught",
        "chosen",
        "control",
        "cut",
        "dropped",
        "ended",
        "failed",
        "halt",
        "items",
        "key",
        "node",
        "parent",
        "phase",
        "prefixes",
        "quiet",
        "resumed",
        "running",
        "since",
        "suspended",
        "unended",
        "winner",
    )

    def __init__(
        self, node: Node, parent: Progress | None, prefixes: tuple[str, ...], control: Label, awaited: int
    ) -> None:
        self.node = node
        self.key = prefixes[-1] + node.key
        self.parent = parent
        self.prefixes = prefixes
        self.quiet = node.kind == "sequence"  # it begins and ends without an entry
        self.phase: Phase = "waiting"
        self.awaited = awaited + (1 if parent is not None else 0)
        self.attempt = 0
        self.control = control  # the label of the branch that the step stands in
        self.failed: AttemptFailed | None = None  # the last attempt, while another is to come
        self.suspended: Suspended | None = None  # what the attempt waited for last
        self.resumed: Resumed | None = None  # what was decided about that
        self.ended: StepEnded | None = None
        self.dropped: StepEnded | None = None  # how it will end without having run
        self.called_off = False
        # Of groups only:
        self.unended = len(node.inside)
        self.halt: Halt | None = None  # of a scope
        self.winner = ""  # of one that does not wait for all
        self.chosen: Progress | None = None  # the part of a branch or switch that runs
        self.cut = False  # of a loop, branch or switch: it was stopped before its rule was done
        self.caught: Halt | None = None  # of a try whose `catch` runs
        # Of loops only:
        self.items: list[Labelled[Any]] | None = None
        self.bodies: list[Progress] = [] if node.kind in LOOPS else _NONE  # one an iteration
        self.running = 0  # iterations
        self.since = 0  # where the last batch began


def nothing(label: Label) -> dict[str, Any]:
    """The output and label of what ended without a value: null, with the label of the reason."""
    return {"output": NULL if label is TRUSTED else Labelled(None, label), "label": label}


def skipped(progress: Progress, label: Label = TRUSTED) -> StepEnded:
    return StepEnded(end="skipped", **nothing(progress.control.join(label)))


def called_off(progress: Progress) -> StepEnded:
    error = Failure(kind="cancelled", message="called off: the group around it has its answer")
    return StepEnded(end="cancelled", error=error, **nothing(progress.control))


def withdrawn(progress: Progress, halt: Halt) -> StepEnded:
    """The end of what waits for somebody, where nobody needs to decide any more."""
    label = progress.control.join(halt.label)
    if not halt.step and halt.error.kind == "timeout":
        return StepEnded(end="failed", error=halt.error, **nothing(label))
    why = f"{halt.step} failed" if halt.step else halt.error.message
    error = Failure(kind="cancelled", message=f"not decided about, because {why}")
    return StepEnded(end="cancelled", error=error, **nothing(label))


def not_started(progress: Progress, halt: Halt) -> StepEnded:
    if halt.step:
        message = f"not started, because {halt.step} failed"
        error = Failure(kind="dependency", message=message, facts={"failed": halt.step})
    else:
        error = Failure(kind="cancelled", message=f"not started: {halt.error.message}")
    return StepEnded(end="blocked", error=error, **nothing(progress.control.join(halt.label)))


def blocked_by(progress: Progress, key: str, ended: StepEnded) -> StepEnded:
    """The end of a step that needs one which failed, or which did not run because another failed."""
    if ended.end == "failed":
        error = Failure(kind="dependency", message=f"dependency {key} failed", facts={"failed": key})
    else:
        failed = ended.error.facts.get("failed", "") if ended.error else ""
        message = f"dependency {key} did not run, because {failed} failed"
        error = Failure(kind="dependency", message=message, facts={"failed": failed})
    return StepEnded(end="blocked", error=error, **nothing(progress.control.join(ended.label)))
