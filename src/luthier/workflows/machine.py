"""The workflow machine: a run's state is the fold of its record, and says what is to be done next. Pure.

`State.apply` takes one entry after another; `decide` reads the commands off the state; `settle` turns what
became of an attempt into the entry to append. Nothing here waits, calls or knows the time. A driver performs
the commands and appends an entry for each; a resumed run folds the same entries and goes on from there. The
state changes in place, so that a long record folds in linear time: every entry touches its own node and those
that wait for it.

    waiting → (judging) → due → running ⇄ resting → ended

A control step is a group: its rule says when its members begin and when it ends. Parallel is the only one so
far; another adds a branch to `_start` and `_member_ended`, and entries only for what the plan cannot tell.

A node is due when all it waits for has ended and its condition, if it has one, was true. What a failure means
is known from the plan: a failure that no step and no output looks at halts the run, and so does one whose
lookers are all blocked. Halted, the run starts nothing more and ends when what runs has ended.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from luthier.taint import TRUSTED, Label, Labelled, join, merge
from luthier.workflows.plan import OUTPUTS
from luthier.workflows.record import (
    NULL,
    AttemptFailed,
    BranchTaken,
    Entry,
    Failure,
    RunEnded,
    RunHalted,
    RunStarted,
    StepEnded,
    StepStarted,
)
from luthier.workflows.retries import Outcome, delay, repeats

if TYPE_CHECKING:
    from collections.abc import Iterable

    from luthier.workflows.plan import Node, Plan


class Judge(msgspec.Struct, frozen=True):
    """Read the step's condition, and append BranchTaken, or what `settle` makes of a condition that fails."""

    step: str


class Start(msgspec.Struct, frozen=True):
    """Append StepStarted and begin the attempt, once `due` (Unix seconds) has come. A group only starts."""

    step: str
    attempt: int = 1
    due: float = 0.0


class Cancel(msgspec.Struct, frozen=True):
    """Call the running step off; it ends as `settle` says when it has let go."""

    step: str


class End(msgspec.Struct, frozen=True):
    """Append this end: of a step that is skipped, or of a group whose members have ended."""

    step: str
    data: StepEnded


class Finish(msgspec.Struct, frozen=True):
    """All has ended. Without a failure the outputs are to be read; append RunEnded."""

    error: Failure | None = None
    step: str = ""
    label: Label = TRUSTED


Command = Judge | Start | Cancel | End | Finish

_BAD: tuple[Literal["failed"], Literal["blocked"]] = ("failed", "blocked")  # the worse first


class Phase(Enum):
    waiting = "waiting"
    judging = "judging"
    due = "due"
    running = "running"
    resting = "resting"  # between two attempts
    ended = "ended"


class Progress:
    """How far one node has come. Changed by the state only."""

    __slots__ = (
        "attempt",
        "awaited",
        "called_off",
        "control",
        "ended",
        "failed",
        "node",
        "phase",
        "unended",
        "winner",
    )

    def __init__(self, node: Node, control: Label) -> None:
        self.node = node
        self.phase = Phase.waiting
        self.awaited = len(node.waits_for) + (1 if node.parent else 0)
        self.attempt = 0
        self.control = control  # the label of the branch that the step stands in
        self.failed: AttemptFailed | None = None  # the last attempt, while another is to come
        self.ended: StepEnded | None = None
        self.called_off = False
        self.unended = len(node.members or ())  # of a group's members
        self.winner = ""  # of a group that does not wait for all


class Halt(msgspec.Struct, frozen=True):
    """Why nothing more starts: a step whose failure nobody deals with, or (`step` empty) from outside."""

    error: Failure
    step: str = ""
    label: Label = TRUSTED


class State:
    """The state of one run. Read `nodes`, `halt`, `started`, `ended`; change it by `apply` only."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.seq = 0
        self.nodes: dict[str, Progress] = {}
        self.started: RunStarted | None = None
        self.started_at = 0.0
        self.halt: Halt | None = None
        self.stopped: Failure | None = None  # by its user or its deadline
        self.ended: RunEnded | None = None
        self.agenda: dict[str, Command] = {}  # what is to be done, one command a node
        self._open = len(plan.nodes)
        self._failures: set[str] = set()  # that stand, because somebody may still look

    def apply(self, entry: Entry) -> None:
        """Take note of one entry. Raises ValueError where it cannot follow those before it."""
        if entry.seq != self.seq + 1:
            message = f"entry {entry.seq} follows entry {self.seq}"
            raise ValueError(message)
        self.seq = entry.seq
        match entry.data:
            case RunStarted() as data:
                self._begin(data, entry.at)
            case BranchTaken() as data:
                self._branch(self.nodes[entry.step], data)
            case StepStarted():
                self._start(self.nodes[entry.step], entry.attempt)
            case AttemptFailed() as data:
                self._rest(self.nodes[entry.step], data, entry.at)
            case StepEnded() as data:
                self._end(self.nodes[entry.step], data)
            case RunHalted() as data:
                self._stop(data.error)
            case RunEnded() as data:
                self.ended = data
                self.agenda.clear()
            case _:  # calls: kept for those who replay, resume or look
                pass

    def _begin(self, data: RunStarted, at: float) -> None:
        self.started, self.started_at = data, at
        for key, node in self.plan.nodes.items():
            self.nodes[key] = Progress(node, data.control)
        for progress in self.nodes.values():
            if not progress.awaited:
                self._ready(progress)
        self._finish_if_done()

    def _branch(self, progress: Progress, data: BranchTaken) -> None:
        progress.control = progress.control.join(data.label)
        if data.taken:
            self._due(progress)
        else:
            self._put(End(progress.node.key, StepEnded(end="skipped", **_nothing(progress.control))))

    def _start(self, progress: Progress, attempt: int) -> None:
        key = progress.node.key
        progress.phase, progress.attempt, progress.failed = Phase.running, attempt, None
        self.agenda.pop(key, None)
        members = progress.node.members
        if members is None:
            return
        for member in members:
            self._arrived(self.nodes[member])
        if not members:
            self._put(End(key, self._group_end(progress)))

    def _rest(self, progress: Progress, data: AttemptFailed, at: float) -> None:
        progress.phase, progress.failed = Phase.resting, data
        self._put(Start(progress.node.key, progress.attempt + 1, at + data.retry_in))

    def _end(self, progress: Progress, data: StepEnded) -> None:
        key = progress.node.key
        progress.phase, progress.ended, progress.failed = Phase.ended, data, None
        self.agenda.pop(key, None)
        self._open -= 1
        if data.end == "failed":
            self._failed(key)
        elif data.end == "blocked":
            self._no_longer_looks(progress.node)
        for follower in self.plan.followers[key]:
            self._arrived(self.nodes[follower])
        if progress.node.parent:
            self._member_ended(self.nodes[progress.node.parent], key, data)
        self._finish_if_done()

    def _arrived(self, progress: Progress) -> None:
        progress.awaited -= 1
        if not progress.awaited and progress.phase is Phase.waiting and progress.node.key not in self.agenda:
            self._ready(progress)

    def _ready(self, progress: Progress) -> None:
        key, node = progress.node.key, progress.node
        blocked = self._blocked(progress)
        if blocked is not None:
            self._put(End(key, blocked))
        elif node.conditional:
            progress.phase = Phase.judging
            self._put(Judge(key))
        else:
            self._due(progress)

    def _due(self, progress: Progress) -> None:
        progress.phase = Phase.due
        self._put(Start(progress.node.key))

    def _put(self, command: End | Start | Judge | Cancel) -> None:
        self.agenda[command.step] = command

    def _finish_if_done(self) -> None:
        if not self._open:
            halt = self.halt
            self.agenda[OUTPUTS] = Finish(halt.error, halt.step, halt.label) if halt else Finish()

    # Failures.

    def _blocked(self, progress: Progress) -> StepEnded | None:
        """The end of a step that needs what did not come and does not look at it; None: it may go on."""
        for key in progress.node.needs:
            ended = self.nodes[key].ended
            if ended is None or ended.end not in ("failed", "blocked") or key in progress.node.looks:
                continue
            if ended.end == "failed":
                error = Failure(kind="dependency", message=f"dependency {key} failed", facts={"failed": key})
            else:
                failed = ended.error.facts.get("failed", "") if ended.error else ""
                message = f"dependency {key} did not run, because {failed} failed"
                error = Failure(kind="dependency", message=message, facts={"failed": failed})
            return StepEnded(end="blocked", error=error, **_nothing(progress.control.join(ended.label)))
        return None

    def _failed(self, key: str) -> None:
        if self.plan.covers[key] != key:
            return  # a group around it answers for it
        progress = self.nodes[key]
        if progress.node.members is not None and progress.node.wait_for == "all":
            return  # its members answered for themselves
        self._failures.add(key)
        self._weigh(key)

    def _no_longer_looks(self, node: Node) -> None:
        """A step that was blocked has not looked; what it was to look at may be left with nobody."""
        for target in node.looks:
            for leaf in self.plan.leaves(target):
                cover = self.plan.covers[leaf]
                if cover in self._failures:
                    self._weigh(cover)

    def _weigh(self, key: str) -> None:
        failed = self.nodes[key].ended
        if self.halt is not None or failed is None or failed.error is None or self._is_looked_at(key):
            return
        self._halt(Halt(failed.error, key, failed.label))

    def _is_looked_at(self, key: str) -> bool:
        if self._has_looker(key):
            return True
        if self.nodes[key].node.members is None:
            return False
        ended = ((leaf, self.nodes[leaf].ended) for leaf in self.plan.leaves(key))
        return all(self._has_looker(leaf) for leaf, end in ended if end is not None and end.end == "failed")

    def _has_looker(self, key: str) -> bool:
        return any(looker == OUTPUTS or self._may_look(looker) for looker in self.plan.lookers[key])

    def _may_look(self, looker: str) -> bool:
        ended = self.nodes[looker].ended
        return ended is None or ended.end != "blocked"

    # Stopping.

    def _halt(self, halt: Halt) -> None:
        if self.halt is not None:
            return
        self.halt = halt
        for key, progress in self.nodes.items():
            if progress.failed is not None:
                last = progress.failed
                self._put(End(key, StepEnded(end="failed", error=last.error, **_nothing(last.label))))
            elif progress.phase in (Phase.judging, Phase.due):
                self._put(End(key, _not_started(progress, halt)))
            elif progress.phase is Phase.waiting and key not in self.agenda:
                self._put(End(key, self._blocked(progress) or _not_started(progress, halt)))

    def _stop(self, error: Failure) -> None:
        self.stopped = error
        self._halt(Halt(error))
        for key, progress in self.nodes.items():
            if progress.phase is Phase.running and progress.node.members is None:
                progress.called_off = True
                self._put(Cancel(key))
        self._finish_if_done()

    def _call_off(self, key: str) -> None:
        """Call off one node and all below it, because its group has its answer."""
        progress = self.nodes[key]
        if progress.phase is Phase.ended:
            return
        progress.called_off = True
        if progress.node.members is not None:
            for member in progress.node.members:
                self._call_off(member)
        if progress.phase is not Phase.running:
            self._put(End(key, _called_off(progress)))
        elif progress.node.members is None:
            self._put(Cancel(key))

    # Groups.

    def _member_ended(self, group: Progress, key: str, data: StepEnded) -> None:
        group.unended -= 1
        if group.phase is not Phase.running:
            return
        node = group.node
        settles = data.end == "ok" or (data.end == "failed" and node.wait_for == "any")
        if node.wait_for != "all" and settles and not group.winner:
            group.winner = key
            for member in node.members or ():
                self._call_off(member)
        if not group.unended:
            self._put(End(node.key, self._group_end(group)))

    def _group_end(self, group: Progress) -> StepEnded:
        if group.called_off:
            return _called_off(group)
        node = group.node
        ends = [(member, self.nodes[member].ended or _called_off(group)) for member in node.members or ()]
        if group.winner:
            ends = [(member, end) for member, end in ends if member == group.winner]
        label = join(end.label for _, end in ends).join(group.control)
        for bad in _BAD:
            for member, end in ends:
                if end.end == bad and end.error is not None:
                    return StepEnded(end=bad, error=_of_member(node, member, end.error), **_nothing(label))
        outputs = [end.output for _, end in ends] if node.wait_for == "all" or group.winner else []
        return StepEnded(end="ok", output=merge(outputs).joined(group.control), label=label)


def fold(plan: Plan, entries: Iterable[Entry]) -> State:
    """The state of a run after these entries."""
    state = State(plan)
    for entry in entries:
        state.apply(entry)
    return state


def decide(state: State) -> tuple[Command, ...]:
    """What is to be done now. A command stands until the entry that answers it: repetitions are harmless."""
    return tuple(state.agenda.values())


def settle(state: State, step: str, outcome: Outcome) -> AttemptFailed | StepEnded:
    """The entry that an attempt's outcome makes: its end, or the announcement of another attempt."""
    progress = state.nodes[step]
    label = outcome.label.join(progress.control)
    if outcome.error is None:
        output = outcome.output.joined(progress.control)
        return StepEnded(end="ok", output=output, label=output.whole, cached=outcome.cached)
    if outcome.cancelled and state.stopped is not None and state.stopped.kind == "timeout":
        return StepEnded(end="failed", error=state.stopped, **_nothing(label))
    if outcome.cancelled:
        return StepEnded(end="cancelled", error=outcome.error, **_nothing(label))
    retry = progress.node.retry
    again = retry is not None and progress.attempt < retry.max_attempts and repeats(retry, outcome)
    if retry is None or not again or state.halt is not None or progress.called_off or not progress.attempt:
        return StepEnded(end="failed", error=outcome.error, **_nothing(label))
    return AttemptFailed(error=outcome.error, retry_in=delay(retry, progress.attempt), label=label)


def _nothing(label: Label) -> dict[str, Any]:
    """The output and label of what ended without a value: null, with the label of the reason."""
    return {"output": NULL if label is TRUSTED else Labelled(None, label), "label": label}


def _called_off(progress: Progress) -> StepEnded:
    error = Failure(kind="cancelled", message="called off: the group around it has its answer")
    return StepEnded(end="cancelled", error=error, **_nothing(progress.control))


def _not_started(progress: Progress, halt: Halt) -> StepEnded:
    if halt.step:
        message = f"not started, because {halt.step} failed"
        error = Failure(kind="dependency", message=message, facts={"failed": halt.step})
    else:
        error = Failure(kind="cancelled", message=f"not started: {halt.error.message}")
    return StepEnded(end="blocked", error=error, **_nothing(progress.control.join(halt.label)))


def _of_member(node: Node, member: str, error: Failure) -> Failure:
    message = f"{member}: {error.message}"
    if node.wait_for == "first":
        message = f"no parallel step succeeded; {message}"
    return Failure(kind=error.kind, message=message, facts={**error.facts, "member": member}, note=error.note)
