"""The workflow machine: a run's state is the fold of its record, and says what is to be done next. Pure.

`State.apply` takes one entry after another; `decide` reads the commands off the state; `settle` turns what
became of an attempt into the entry to append. Nothing here waits, calls or knows the time. A driver performs
the commands and appends an entry for each; a resumed run folds the same entries and goes on from there. The
state changes in place, so that a long record folds in linear time: every entry touches its own node and those
that wait for it.

    waiting → (judging) → due → running ⇄ resting → ended
                                running → suspended → due

A suspended node waits for somebody outside; where nothing else can move, the run rests as a whole.

A control step is a group: its rule (`groups.py`) says when its members begin and when it ends.

A node is due when all it waits for has ended and its condition, if it has one, was true. What a failure means
is known from the plan. It is weighed in the scope that it happened in: a part of a `try`, a group inside one
that does not wait for all, or else the run. A failure that nobody in the scope looks at halts it, and so does
one whose lookers are all blocked. Halted, a scope starts nothing more and ends when what runs has ended; a
scope that fails is a failure to what stands around it. `finally` starts whatever has halted around it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from luthier.workflows import failures, groups
from luthier.workflows.commands import Cancel, Command, End, Finish, Judge, Rest, Start
from luthier.workflows.plan import OUTPUTS
from luthier.workflows.progress import (
    Halt,
    Phase,
    Progress,
    blocked_by,
    called_off,
    not_started,
    nothing,
    withdrawn,
)
from luthier.workflows.record import (
    AttemptFailed,
    BranchTaken,
    Entry,
    Failure,
    ItemsRead,
    Resumed,
    RunEnded,
    RunHalted,
    RunStarted,
    StepEnded,
    StepStarted,
    Suspended,
    uncollected,
)
from luthier.workflows.retries import Outcome, delay, repeats

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from luthier.taint import Label, Labelled
    from luthier.workflows.plan import Plan

__all__ = [
    "Cancel",
    "Command",
    "End",
    "Finish",
    "Halt",
    "Judge",
    "Phase",
    "Progress",
    "Rest",
    "Start",
    "State",
    "decide",
    "fold",
    "settle",
]

_CALLED_OFF = Halt(Failure(kind="cancelled", message="called off"))
_NO_TIME = Halt(Failure(kind="cancelled", message="there is no time left"))
_NOT_BEGUN = frozenset({"waiting", "judging", "due"})


class State:
    """The state of one run. Read `nodes`, `halt`, `started`, `ended`; change it by `apply` only.

    `nodes` holds the progress of every node by its id; what stands in a loop once for each iteration.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.seq = 0
        self.nodes: dict[str, Progress] = {}
        self.started: RunStarted | None = None
        self.started_at = 0.0
        self.halt: Halt | None = None
        self.stopped: Failure | None = None  # by its user or its deadline
        self.over = False  # stopped a second time: `finally` has no time left
        self.ended: RunEnded | None = None
        self.values: dict[str, Labelled[Any]] = {}  # of the run's state, as steps have set them
        self.agenda: dict[str, Command] = {}  # what is to be done, one command a node
        self.suspended: dict[str, Progress] = {}  # what waits for somebody outside
        self._open = 0
        self._running = 0  # steps, groups left out
        self.failures: dict[str, dict[str, Progress]] = {}  # that stand, because somebody may still look

    def apply(self, entry: Entry) -> None:
        """Take note of one entry. Raises ValueError where it cannot follow those before it."""
        if entry.seq != self.seq + 1:
            message = f"entry {entry.seq} follows entry {self.seq}"
            raise ValueError(message)
        self.seq = entry.seq
        match entry.data:
            case StepStarted():
                self._start(self.nodes[entry.step], entry.attempt)
            case StepEnded() as data:
                self._end(self.nodes[entry.step], data)
            case BranchTaken() as data:
                self._judged(self.nodes[entry.step], data)
            case ItemsRead() as data:
                groups.items_read(self, self._answered(entry.step), data.items)
            case AttemptFailed() as data:
                self._retry(self.nodes[entry.step], data, entry.at)
            case Suspended() | Resumed() as data:
                self._hold(self.nodes[entry.step], data)
            case RunStarted() as data:
                self._begin(data, entry.at)
            case RunHalted() as data:
                self._stop(data.error)
            case RunEnded() as data:
                self.ended = data
                self.agenda.clear()
            case _:  # calls: kept for those who replay, resume or look
                return
        if self.suspended or OUTPUTS in self.agenda:
            self._rest_if_idle()

    def seen(self, key: str, viewer: Progress | None = None) -> Progress | None:
        """A node as it is seen from another: in a loop that the viewer is not in, that of the last iteration.

        None: it has not begun, or stands in a loop without iterations.
        """
        depth = self.plan.shared(key, viewer.node.key) if viewer is not None else 0
        prefix = viewer.prefixes[depth] if viewer is not None else ""
        for loop in self.plan.loops[key][depth:]:
            progress = self.nodes.get(prefix + loop)
            if progress is None or not progress.bodies:
                return None
            prefix = progress.bodies[-1].prefixes[-1]
        return self.nodes.get(prefix + key)

    def below(self, progress: Progress) -> Iterator[Progress]:
        """What stands right inside a group, iterations of a loop included."""
        yield from progress.bodies
        for member in progress.node.inside:
            yield self.nodes[progress.prefixes[-1] + member]

    def halted(self, progress: Progress) -> Halt | None:
        """Why nothing more starts in this group; None: it may."""
        around: Progress | None = progress
        while around is not None:
            if around.called_off:
                return _CALLED_OFF
            if around.halt is not None:
                return around.halt
            if groups.is_last_part(around):
                return _NO_TIME if self.over else None
            around = around.parent
        return self.halt

    # For the rules of groups.

    def make(self, key: str, parent: Progress | None, prefixes: tuple[str, ...], control: Label) -> Progress:
        """Make the progress of a node and of all below it, except what a loop repeats."""
        node = self.plan.nodes[key]
        progress = Progress(node, parent, prefixes, control, len(self.plan.waits[key]))
        self.nodes[progress.key] = progress
        self._open += 1
        for member in node.inside:
            self.make(member, progress, prefixes, control)
        return progress

    def begin(self, member: Progress, control: Label) -> None:
        """The group around has begun, so this may, when all it waits for has ended."""
        member.control = member.control.join(control)
        self._arrived(member)

    def close(self, group: Progress, data: StepEnded) -> None:
        """All inside has ended."""
        if group.quiet:
            self._end(group, data)
        else:
            self._put(End(group.key, data))

    def ask(self, judge: Judge) -> None:
        self._put(judge)

    def drop(self, progress: Progress, reason: Callable[[Progress], StepEnded]) -> None:
        """End what has not begun, and all below it."""
        if progress.phase == "ended" or progress.dropped is not None:
            return
        progress.dropped = data = reason(progress)
        if progress.node.members is None:
            self._put(End(progress.key, data))
            return
        self.agenda.pop(progress.key, None)
        for member in list(self.below(progress)):
            self.drop(member, reason)
        if not progress.unended and progress.ended is None:
            self.close(progress, data)

    def quench(self, progress: Progress, halt: Halt) -> None:
        """Let nothing more start here or below."""
        if progress.phase == "ended" or progress.dropped is not None:
            return
        if progress.failed is not None:
            last = progress.failed
            self._put(End(progress.key, StepEnded(end="failed", error=last.error, **nothing(last.label))))
        elif progress.phase == "suspended":
            self._put(End(progress.key, withdrawn(progress, halt)))
        elif progress.phase in _NOT_BEGUN:
            known = progress.phase == "waiting"
            self.drop(progress, lambda one: (known and failures.blocked(self, one)) or not_started(one, halt))
        elif progress.node.members is not None:
            groups.each_inside(self, progress, lambda member: self.quench(member, halt))

    def call_off(self, progress: Progress) -> None:
        """Call off one node and all below it, because its group has its answer."""
        if progress.phase == "ended" or progress.dropped is not None or progress.called_off:
            return
        progress.called_off = True
        if progress.node.members is not None:
            if progress.phase == "running":
                groups.each_inside(self, progress, self.call_off)
            else:
                self.drop(progress, called_off)
        elif progress.phase == "running":
            self._put(Cancel(progress.key))
        else:
            self._put(End(progress.key, called_off(progress)))

    # The life of a node.

    def _begin(self, data: RunStarted, at: float) -> None:
        self.started, self.started_at = data, at
        tops = [
            self.make(key, None, ("",), data.control)
            for key, node in self.plan.nodes.items()
            if not node.parent
        ]
        for progress in tops:
            if not progress.awaited:
                self._ready(progress)
        self._finish_if_done()

    def _answered(self, key: str) -> Progress:
        self.agenda.pop(key, None)
        return self.nodes[key]

    def _judged(self, progress: Progress, data: BranchTaken) -> None:
        progress.control = progress.control.join(data.label)
        if progress.node.members is not None:
            groups.judged(self, self._answered(progress.key), data)
        elif data.taken:
            self._due(progress)
        else:
            self._put(End(progress.key, StepEnded(end="skipped", **nothing(progress.control))))

    def _start(self, progress: Progress, attempt: int) -> None:
        progress.phase, progress.attempt, progress.failed = "running", attempt, None
        self.agenda.pop(progress.key, None)
        if progress.node.members is not None:
            groups.started(self, progress)
        else:
            self._running += 1

    def _let_go(self, progress: Progress, phase: Phase) -> None:
        """The attempt is over, in whatever way."""
        if progress.phase == "running" and progress.node.members is None:
            self._running -= 1
        elif progress.phase == "suspended":
            del self.suspended[progress.key]
        progress.phase = phase

    def _retry(self, progress: Progress, data: AttemptFailed, at: float) -> None:
        self._let_go(progress, "resting")
        progress.failed = data
        progress.suspended = progress.resumed = None  # the next attempt waits for itself
        self._put(Start(progress.key, progress.attempt + 1, at + data.retry_in))

    def _hold(self, progress: Progress, data: Suspended | Resumed) -> None:
        """The attempt waits for somebody outside, or need not wait any more."""
        if isinstance(data, Suspended):
            self._let_go(progress, "suspended")
            progress.suspended, progress.resumed = data, None
            self.suspended[progress.key] = progress
            self.agenda.pop(progress.key, None)
        elif progress.key not in self.agenda:  # else it is called off already: its end is to come
            self._let_go(progress, "due")
            progress.resumed = data
            self._put(Start(progress.key, progress.attempt))

    def _rest_if_idle(self) -> None:
        """Rest, where all that is left waits for somebody outside."""
        if isinstance(self.agenda.get(OUTPUTS), Rest):
            del self.agenda[OUTPUTS]
        if self.suspended and not self._running and not self.agenda:
            self.agenda[OUTPUTS] = Rest(tuple(self.suspended))

    def _end(self, progress: Progress, data: StepEnded) -> None:
        self._let_go(progress, "ended")
        progress.ended, progress.failed = data, None
        self.agenda.pop(progress.key, None)
        self._open -= 1
        for field, value in (data.state.value or {}).items():
            self.values[field] = data.state.member(field, value)
        for member in self.below(progress) if progress.unended else ():  # it failed by itself
            self.drop(member, lambda one: blocked_by(one, progress.key, data))
        if data.end == "failed":
            failures.failed(self, progress)
        elif data.end == "blocked":
            failures.no_longer_looks(self, progress)
        for follower in self.plan.followers[progress.node.key]:
            self._arrived(self.nodes[progress.prefixes[-1] + follower])
        if progress.parent is not None:
            groups.member_ended(self, progress.parent, progress)
        self._finish_if_done()

    def _arrived(self, progress: Progress) -> None:
        progress.awaited -= 1
        waits = progress.phase == "waiting" and progress.dropped is None
        if not progress.awaited and waits and progress.key not in self.agenda:
            self._ready(progress)

    def _ready(self, progress: Progress) -> None:
        blocked = failures.blocked(self, progress)
        if progress.quiet:
            self._start(progress, 1)
        elif blocked is not None:
            self.drop(
                progress, lambda one: blocked if one is progress else blocked_by(one, progress.key, blocked)
            )
        elif progress.node.conditional:
            progress.phase = "judging"
            self._put(Judge(progress.key))
        else:
            self._due(progress)

    def _due(self, progress: Progress) -> None:
        progress.phase = "due"
        self._put(Start(progress.key))

    def _put(self, command: End | Start | Judge | Cancel) -> None:
        self.agenda[command.step] = command

    def _finish_if_done(self) -> None:
        if not self._open:
            halt = self.halt
            self.agenda[OUTPUTS] = Finish(halt.error, halt.step, halt.label) if halt else Finish()

    # Stopping.

    def halt_in(self, scope: Progress | None, halt: Halt) -> None:
        """Let nothing more start in a scope; None: in the run."""
        if scope is not None:
            scope.halt = halt
            self.quench(scope, halt)
            return
        self.halt = self.halt or halt
        for key, node in self.plan.nodes.items():
            if not node.parent:
                self.quench(self.nodes[key], halt)

    def _stop(self, error: Failure) -> None:
        self.over = self.stopped is not None
        self.stopped = self.stopped or error
        if self.halt is None or self.over:
            self.halt_in(None, Halt(error))
        for progress in self.nodes.values():
            if progress.phase == "suspended":  # under `finally` too: there is no time for people
                self._put(End(progress.key, withdrawn(progress, Halt(self.stopped))))
            runs = progress.phase == "running" and progress.node.members is None
            if runs and (self.over or not groups.in_last_part(progress)):
                progress.called_off = True
                self._put(Cancel(progress.key))
        self._finish_if_done()


def fold(plan: Plan, entries: Iterable[Entry]) -> State:
    """The state of a run after these entries."""
    state = State(plan)
    with uncollected():
        for entry in entries:
            state.apply(entry)
    return state


def decide(state: State) -> tuple[Command, ...]:
    """What is to be done now. A command stands until the entry that answers it: repetitions are harmless."""
    return tuple(state.agenda.values())


def settle(state: State, step: str, outcome: Outcome) -> AttemptFailed | Suspended | StepEnded:
    """The entry that an attempt's outcome makes: its end, another attempt announced, or what it waits for."""
    progress = state.nodes[step]
    label = outcome.label.join(progress.control)
    if outcome.suspended is not None:
        halt = state.halted(progress)
        if halt is None and state.stopped is None:
            return outcome.suspended
        return withdrawn(progress, halt or Halt(state.stopped or _CALLED_OFF.error))
    if outcome.error is None:
        output = outcome.output.joined(progress.control)
        return StepEnded(
            end="ok", output=output, label=output.whole, cached=outcome.cached, score=outcome.score
        )
    if outcome.cancelled and state.stopped is not None and state.stopped.kind == "timeout":
        return StepEnded(end="failed", error=state.stopped, **nothing(label))
    if outcome.cancelled:
        return StepEnded(end="cancelled", error=outcome.error, **nothing(label))
    retry = progress.node.retry
    again = retry is not None and progress.attempt < retry.max_attempts and repeats(retry, outcome)
    if retry is None or not again or state.halted(progress) is not None or not progress.attempt:
        return StepEnded(end="failed", error=outcome.error, score=outcome.score, **nothing(label))
    wait = delay(retry, progress.attempt, outcome.retry_after)
    return AttemptFailed(error=outcome.error, retry_in=wait, label=label)
