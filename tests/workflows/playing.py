"""Plays the machine without a driver: outcomes are given by hand, and the entries are kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from luthier.spec import Retry
from luthier.taint import TRUSTED, Label, Labelled
from luthier.workflows.machine import (
    Cancel,
    Command,
    End,
    Finish,
    Judge,
    Rest,
    Start,
    State,
    decide,
    fold,
    settle,
)
from luthier.workflows.nodes import Node
from luthier.workflows.plan import Plan, arrange
from luthier.workflows.progress import Progress
from luthier.workflows.record import (
    BranchTaken,
    Data,
    Entry,
    Failure,
    Resumed,
    RunEnded,
    RunHalted,
    RunStarted,
    StepStarted,
    Suspended,
)
from luthier.workflows.retries import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


def node(key: str, needs: str = "", **rest: Any) -> Node:
    """A node that needs the steps written in `needs`; those with a question mark it also looks at."""
    names = needs.split()
    return Node(
        key=key,
        needs=tuple(name.rstrip("?") for name in names),
        looks=frozenset(name.rstrip("?") for name in names if name.endswith("?")),
        **rest,
    )


def group(key: str, members: str, wait_for: Any = "all", **rest: Any) -> Node:
    return Node(key=key, kind="parallel", members=tuple(members.split()), wait_for=wait_for, **rest)


def table(*nodes: Node, looked_at: Iterable[str] = ()) -> Table:
    return Table(arrange(nodes, looked_at=looked_at))


def ok(value: Any = 1, label: Label = TRUSTED) -> Outcome:
    return Outcome(output=Labelled(value, label), label=label)


def failed(kind: str = "code", **rest: Any) -> Outcome:
    return Outcome(error=Failure(kind=kind, message=f"{kind} happened"), **rest)


def cancelled() -> Outcome:
    return Outcome(error=Failure(kind="cancelled", message="called off"), cancelled=True)


def waits(*requests: str) -> Outcome:
    return Outcome(suspended=Suspended(what="hitl", requests=requests))


def retry(attempts: int = 3, **rest: Any) -> Retry:
    return Retry(max_attempts=attempts, **rest)


class Table:
    """A run on the table: `commands` says what is to be done, the methods do it."""

    def __init__(self, plan: Plan, control: Label = TRUSTED) -> None:
        self.plan = plan
        self.entries: list[Entry] = []
        self.watchers: list[Callable[[], None]] = []
        self.state = State(plan)
        self.append(RunStarted(run="r", ensemble="e", plan="", control=control))

    def append(self, data: Data, step: str = "", attempt: int = 0) -> None:
        seq = len(self.entries) + 1
        entry = Entry(seq=seq, at=float(seq), data=data, step=step, attempt=attempt)
        self.entries.append(entry)
        self.state.apply(entry)
        for watcher in self.watchers:
            watcher()

    def commands(self) -> tuple[Command, ...]:
        return decide(self.state)

    @property
    def starting(self) -> list[str]:
        return [command.step for command in self.commands() if isinstance(command, Start)]

    def command(self, step: str) -> Command:
        return self.state.agenda[step]

    def start(self, *steps: str) -> None:
        for step in steps:
            command = self.command(step)
            assert isinstance(command, Start), command
            self.append(StepStarted(), step, command.attempt)

    def judge(self, step: str, *, taken: bool, label: Label = TRUSTED) -> None:
        assert self.command(step) == Judge(step)
        self.append(BranchTaken(taken=taken, label=label), step)

    def settle(self, step: str, outcome: Outcome) -> None:
        data = settle(self.state, step, outcome)
        self.append(data, step, self.state.nodes[step].attempt)

    def suspend(self, *steps: str) -> None:
        for step in steps:
            self.start(step)
            self.settle(step, waits("q"))

    def resume(self, *steps: str) -> None:
        """Decide, and begin the attempt again."""
        for step in steps:
            self.append(Resumed(decision="approved"), step, self.state.nodes[step].attempt)
            self.start(step)

    def resting(self) -> tuple[str, ...]:
        rest = self.state.agenda.get("")
        return rest.steps if isinstance(rest, Rest) else ()

    def end(self) -> None:
        """Append the ends that are due, until there are none."""
        while ends := [command for command in self.commands() if isinstance(command, End)]:
            self.append(ends[0].data, ends[0].step, self.state.nodes[ends[0].step].attempt)

    def run(self, step: str, outcome: Outcome) -> None:
        """One whole step, and what ends because of it."""
        self.start(step)
        self.settle(step, outcome)
        self.end()

    def halt(self, kind: str = "cancelled") -> None:
        self.append(RunHalted(error=Failure(kind=kind, message="stopped")))

    def finish(self) -> Finish:
        finish = self.command("")
        assert isinstance(finish, Finish)
        self.append(RunEnded(success=finish.error is None, error=finish.error, step=finish.step))
        return finish

    def end_of(self, step: str) -> str:
        ended = self.state.nodes[step].ended
        return "" if ended is None else ended.end

    def error_of(self, step: str) -> str:
        ended = self.state.nodes[step].ended
        return "" if ended is None or ended.error is None else ended.error.message

    def cancelling(self) -> list[str]:
        return [command.step for command in self.commands() if isinstance(command, Cancel)]


def snapshot(state: State) -> dict[str, Any]:
    """Everything a state holds, for comparing."""
    return {
        "nodes": {
            key: tuple(_shown(getattr(progress, slot)) for slot in type(progress).__slots__)
            for key, progress in state.nodes.items()
        },
        "rest": {name: _shown(value) for name, value in vars(state).items() if name != "nodes"},
    }


def _shown(value: Any) -> Any:
    """Progress by its id."""
    match value:
        case Progress():
            return value.key
        case list():
            return [_shown(item) for item in value]
        case dict():
            return {key: _shown(item) for key, item in value.items()}
        case _:
            return value


def folded_again(one: Table) -> dict[str, Any]:
    return snapshot(fold(one.plan, one.entries))
