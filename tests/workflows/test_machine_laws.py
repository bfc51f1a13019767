"""What holds for every plan, whatever becomes of its steps and in whatever order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import given, settings
from hypothesis import strategies as st

from luthier.expr import compile_value
from luthier.spec import Retry
from luthier.taint import SECRET, TRUSTED, UNTRUSTED, Labelled
from luthier.workflows.machine import Cancel, End, Finish, Judge, Rest, Start, decide, fold
from luthier.workflows.nodes import Kind, Node
from luthier.workflows.plan import Plan, arrange
from luthier.workflows.record import (
    BranchTaken,
    ItemsRead,
    Resumed,
    StepEnded,
    StepStarted,
    decode,
    encode_all,
)
from tests.workflows.playing import Table, cancelled, failed, folded_again, ok, snapshot, waits

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from luthier.workflows.progress import Progress

LABELS = st.sampled_from([TRUSTED, UNTRUSTED])
KINDS = st.sampled_from(["code", "connect", "timeout", "denied"])


READS = compile_value("${true}")
KINDS_OF_GROUPS: list[Kind] = ["parallel", "branch", "switch", "try", "foreach", "while", "map-reduce"]


class Drawing:
    """Draws the nodes of a plan: steps and control steps within each other; steps name some before them."""

    def __init__(self, draw: Any) -> None:
        self.draw = draw
        self.nodes: list[Node] = []
        self.names: list[str] = []

    def item(self, depth: int, parent: str, after: tuple[str, ...]) -> str:
        if depth == 0 or self.draw(st.integers(0, 2)):
            return self.step(parent, after)
        return self.group(depth, parent, after)

    def step(self, parent: str, after: tuple[str, ...]) -> str:
        draw, key = self.draw, f"s{len(self.nodes)}"
        names = draw(st.lists(st.sampled_from(self.names), unique=True, max_size=3)) if self.names else []
        retry = draw(
            st.sampled_from([None, Retry(max_attempts=2), Retry(max_attempts=3, retry_on=("code",))])
        )
        self.nodes.append(
            Node(
                key=key,
                needs=tuple(names),
                after=tuple(name for name in after if name not in names),
                looks=frozenset(name for name in names if draw(st.booleans())),
                parent=parent,
                conditional=draw(st.booleans()),
                retry=retry,
            )
        )
        self.names.append(key)
        return key

    def group(self, depth: int, parent: str, after: tuple[str, ...]) -> str:
        kind = self.draw(st.sampled_from(KINDS_OF_GROUPS))
        key, place = f"g{len(self.nodes)}", len(self.nodes)
        self.nodes.append(Node(key=key))
        fields: dict[str, Any] = {"reads": READS, "limit": self.draw(st.integers(1, 3))}
        if kind == "parallel":
            members = tuple(self.item(depth - 1, key, ()) for _ in range(self.draw(st.integers(0, 3))))
            fields = {"wait_for": self.draw(st.sampled_from(["all", "any", "first"]))}
        else:
            parts = {name: f"{key}.{name}" for name in self.parts(kind)}
            for part in parts.values():
                self.sequence(depth - 1, key, part, scope=kind == "try")
            members = tuple(parts.values())
            cases = {name: part for name, part in parts.items() if name.startswith("case")}
            fields |= {"parts": parts, "cases": cases}
            if kind == "foreach" and self.draw(st.booleans()):
                fields["breaks"] = READS
        self.nodes[place] = Node(key=key, kind=kind, after=after, parent=parent, members=members, **fields)
        self.names.append(key)
        return key

    def parts(self, kind: Kind) -> list[str]:
        must: dict[str, list[str]] = {
            "branch": ["then"],
            "try": ["steps"],
            "map-reduce": ["body", "reduce"],
        } | {"switch": ["case0"]}
        may = {"branch": ["else"], "try": ["catch", "finally"], "switch": ["case1", "default"]}
        found = must.get(kind, ["body"] if kind in ("foreach", "while") else [])
        return found + [part for part in may.get(kind, []) if self.draw(st.booleans())]

    def sequence(self, depth: int, parent: str, key: str, *, scope: bool) -> None:
        place = len(self.nodes)
        self.nodes.append(Node(key=key))
        members: list[str] = []
        for _ in range(self.draw(st.integers(1, 2))):
            members.append(self.item(depth, key, tuple(members[-1:])))
        self.nodes[place] = Node(key=key, kind="sequence", parent=parent, members=tuple(members), scope=scope)


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """A flow of steps and control steps, within each other."""
    drawing = Drawing(draw)
    written = draw(st.booleans())
    after: tuple[str, ...] = ()
    for _ in range(draw(st.integers(0, 5))):
        last = drawing.item(2, "", after)
        after = (last,) if written else ()
    names = drawing.names
    looked_at = draw(st.lists(st.sampled_from(names), unique=True)) if names else []
    return arrange(drawing.nodes, looked_at=looked_at)


def play(table: Table, draw: Any) -> None:
    """Answer commands and end running steps in a drawn order, now and then stopping from outside."""
    stops = draw(st.integers(0, 2))
    while table.state.ended is None:
        running = [
            key
            for key, progress in table.state.nodes.items()
            if progress.phase == "running" and progress.node.members is None
        ]
        commands = [command for command in table.commands() if not isinstance(command, Cancel)]
        assert commands or running, "the run is stuck"
        waiting = list(table.state.suspended) if draw(st.integers(0, 3)) == 0 else []
        choice = draw(st.sampled_from([*commands, *running, *waiting]))
        match choice:
            case Judge():
                judge(table, draw, choice)
            case Start(step=key, attempt=attempt):
                table.append(StepStarted(), key, attempt)
            case End(step=key, data=data):
                table.append(data, key, table.state.nodes[key].attempt)
            case Finish():
                table.finish()
            case Rest(steps=steps):
                assert not running, "a run rests only when nothing else goes on"
                assert set(steps) == set(table.state.suspended)
                decide_about(table, draw(st.sampled_from(steps)))
            case str() if choice in table.state.suspended:
                decide_about(table, choice)
            case str():
                let_go(table, draw, choice)
        if stops and draw(st.integers(0, 15)) == 0 and table.state.ended is None:
            stops -= 1
            table.halt(draw(st.sampled_from(["cancelled", "timeout"])))


def let_go(table: Table, draw: Any, step: str) -> None:
    """End the attempt in a drawn way."""
    called_off = step in table.cancelling()
    match draw(st.sampled_from(["ok", "cancelled" if called_off else "failed", "failed", "waits"])):
        case "ok":
            table.settle(step, ok(step, draw(LABELS)))
        case "waits":
            table.settle(step, waits("q"))
        case "cancelled":
            table.settle(step, cancelled())
        case _:
            table.settle(step, failed(draw(KINDS), harmless=draw(st.booleans())))


def decide_about(table: Table, step: str) -> None:
    table.append(Resumed(decision="approved", by="operator"), step, table.state.nodes[step].attempt)


def judge(table: Table, draw: Any, judge: Judge) -> None:
    cases = sorted(table.state.nodes[judge.step].node.cases)
    match judge.what:
        case _ if draw(st.integers(0, 3)) == 0:
            table.settle(judge.step, failed("condition"))
        case "items":
            items = Labelled(draw(st.lists(st.integers(0, 9), max_size=4)), draw(LABELS))
            table.append(ItemsRead(items=items), judge.step)
        case "value":
            case = draw(st.sampled_from([None, *cases]))
            table.append(BranchTaken(taken=case is not None, case=case, label=draw(LABELS)), judge.step)
        case _:
            table.append(BranchTaken(taken=draw(st.booleans()), label=draw(LABELS)), judge.step)


@settings(deadline=None)
@given(st.data(), plans())
def test_every_run_ends_and_keeps_the_rules(data: st.DataObject, plan: Plan) -> None:
    table = Table(plan)
    play(table, data.draw)
    assert table.entries[-1].kind == "RunEnded"
    ends = [entry.step for entry in table.entries if isinstance(entry.data, StepEnded)]
    seen = [progress for progress in table.state.nodes.values() if not progress.quiet]
    assert sorted(ends) == sorted(progress.key for progress in seen), "every step ends exactly once"
    assert all(progress.ended for progress in table.state.nodes.values()), "parts end too"
    assert not list(started_too_early(table)), "no step starts before what it waits for has ended"
    assert not list(started_though_blocked(table)), (
        "no step starts that needs a failed one it does not look at"
    )
    assert not list(started_after_halt(table)), "no step starts after a failure that nobody looks at"
    halts = sum(entry.kind == "RunHalted" for entry in table.entries)
    assert halts > 1 or not list(lasts_not_begun(table)), "what stands under finally starts in any case"
    assert_success_is_what_the_failures_say(table)


@settings(deadline=None, max_examples=50)
@given(st.data(), plans(), st.sampled_from([TRUSTED, SECRET]))
def test_every_prefix_of_a_record_folds_to_the_state_that_it_was_written_in(
    data: st.DataObject, plan: Plan, control: Any
) -> None:
    table = Table(plan, control)
    seen: list[tuple[int, str, tuple[Any, ...]]] = []
    table.watchers.append(
        lambda: seen.append((len(table.entries), repr(snapshot(table.state)), decide(table.state)))
    )
    play(table, data.draw)
    assert folded_again(table) == snapshot(table.state)
    for length, text, commands in seen:
        state = fold(plan, table.entries[:length])
        assert repr(snapshot(state)) == text
        assert decide(state) == commands


@settings(deadline=None, max_examples=50)
@given(st.data(), plans())
def test_a_record_written_and_read_folds_to_the_same_state(data: st.DataObject, plan: Plan) -> None:
    table = Table(plan)
    play(table, data.draw)
    read = decode(encode_all(table.entries))
    assert list(read) == table.entries
    assert snapshot(fold(plan, read)) == snapshot(table.state)


def started_too_early(table: Table) -> Iterator[str]:
    ended: set[str] = set()
    begun: set[str] = set()
    for entry in table.entries:
        if isinstance(entry.data, StepStarted | BranchTaken):
            one = table.state.nodes[entry.step]
            awaited = {one.prefixes[-1] + key for key in table.plan.waits[one.node.key]}
            if not ended.issuperset(awaited) or not begun.issuperset(group.key for group in seen_around(one)):
                yield entry.step
            begun.add(entry.step)
        elif isinstance(entry.data, StepEnded):
            ended.add(entry.step)


def around(one: Progress) -> Iterator[Progress]:
    while one.parent is not None:
        one = one.parent
        yield one


def seen_around(one: Progress) -> Iterator[Progress]:
    return (group for group in around(one) if not group.quiet)


def started_though_blocked(table: Table) -> Iterator[str]:
    ends: dict[str, str] = {}
    for entry in table.entries:
        if isinstance(entry.data, StepEnded):
            ends[entry.step] = entry.data.end
        elif isinstance(entry.data, StepStarted):
            one = table.state.nodes[entry.step]
            for key in one.node.needs:
                known = ends.get(one.prefixes[table.plan.shared(key, one.node.key)] + key)
                if key not in one.node.looks and known in ("failed", "blocked"):
                    yield entry.step


def is_last(one: Progress) -> bool:
    return one.node.key.endswith(".finally")


def scopes(one: Progress) -> Iterator[Progress | None]:
    """The scopes that a failure could keep this from starting in: none beyond a `finally`."""
    for group in around(one):
        if group.node.scope:
            yield group
        if is_last(group):
            return
    yield None


def nearest(one: Progress) -> Progress | None:
    return next((group for group in around(one) if group.node.scope), None)


def is_looked_at(table: Table, ends: Mapping[str, str], one: Progress, scope: Progress | None) -> bool:
    """Whether somebody in the scope looks at this failure, told independently of the machine."""
    for looker in table.plan.lookers[one.node.key]:
        if not looker:
            if scope is None:
                return True
            continue
        loops = len(table.plan.loops[looker])
        inside = scope is None or scope.node.key in (looker, *table.plan.around[looker])
        if inside and ends.get(one.prefixes[loops] + looker) != "blocked":
            return True
    return False


def counts(one: Progress) -> bool:
    """Whether this is a step whose failure is weighed by itself."""
    return one.node.members is None and (one.parent is None or one.parent.node.wait_for == "all")


def started_after_halt(table: Table) -> Iterator[str]:
    """Steps that start although a scope around them has a failure that nobody in it looks at."""
    ends: dict[str, str] = {}
    halted: set[str] = set()  # ids of scopes; the run is ""
    for entry in table.entries:
        if isinstance(entry.data, StepStarted):
            here = {"" if scope is None else scope.key for scope in scopes(table.state.nodes[entry.step])}
            if here & halted:
                yield entry.step
        if entry.kind == "RunHalted":
            halted.add("")
        if isinstance(entry.data, StepEnded):
            ends[entry.step] = entry.data.end
            for key, end in ends.items():
                one = table.state.nodes[key]
                scope = nearest(one)
                if end == "failed" and counts(one) and not is_looked_at(table, ends, one, scope):
                    halted.add("" if scope is None else scope.key)


def lasts_not_begun(table: Table) -> Iterator[str]:
    """Steps at the beginning of a `finally` that nothing keeps from running, and that did not run."""
    started = {entry.step for entry in table.entries if isinstance(entry.data, StepStarted)}
    for one in table.state.nodes.values():
        group = one.parent
        if group is None or not is_last(group) or group.parent is None or group.parent.key not in started:
            continue
        free = not (one.node.needs or one.node.conditional or one.node.members or one.node.after)
        if free and one.key not in started:
            yield one.key


def assert_success_is_what_the_failures_say(table: Table) -> None:
    ended = table.state.ended
    assert ended is not None
    ends = {key: one.ended.end for key, one in table.state.nodes.items() if one.ended}
    stopped = any(entry.kind == "RunHalted" for entry in table.entries)
    failures = [one for one in table.state.nodes.values() if ends[one.key] == "failed" and counts(one)]
    lonely = [one for one in failures if nearest(one) is None and not is_looked_at(table, ends, one, None)]
    if ended.success:
        assert not stopped
        assert not lonely
    else:
        assert stopped or ends[ended.step] == "failed"
