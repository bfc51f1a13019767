"""What holds for every plan, whatever becomes of its steps and in whatever order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import given, settings
from hypothesis import strategies as st

from luthier.spec import Retry
from luthier.taint import SECRET, TRUSTED, UNTRUSTED
from luthier.workflows.machine import Cancel, End, Finish, Judge, Start, decide, fold
from luthier.workflows.plan import Node, Plan, arrange
from luthier.workflows.record import BranchTaken, StepEnded, StepStarted, decode, encode_all
from tests.workflows.playing import Table, cancelled, failed, folded_again, ok, snapshot

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

LABELS = st.sampled_from([TRUSTED, UNTRUSTED])
KINDS = st.sampled_from(["code", "connect", "timeout", "denied"])


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """A flow of steps and groups, groups within groups; steps name some of those before or beside them."""
    nodes: list[Node] = []
    names: list[str] = []

    def step(parent: str, after: tuple[str, ...]) -> str:
        key = f"s{len(nodes)}"
        needs = tuple(draw(st.lists(st.sampled_from(names), unique=True, max_size=3))) if names else ()
        looks = frozenset(name for name in needs if draw(st.booleans()))
        retry = draw(
            st.sampled_from([None, Retry(max_attempts=2), Retry(max_attempts=3, retry_on=("code",))])
        )
        nodes.append(
            Node(
                key=key,
                needs=needs,
                after=tuple(name for name in after if name not in needs),
                looks=looks,
                parent=parent,
                conditional=draw(st.booleans()),
                retry=retry,
            )
        )
        names.append(key)
        return key

    def item(depth: int, parent: str, after: tuple[str, ...]) -> str:
        if depth == 0 or draw(st.integers(0, 2)):
            return step(parent, after)
        key, place = f"g{len(nodes)}", len(nodes)
        nodes.append(Node(key=key))
        members = tuple(item(depth - 1, key, ()) for _ in range(draw(st.integers(0, 3))))
        wait_for: Any = draw(st.sampled_from(["all", "any", "first"]))
        nodes[place] = Node(key=key, after=after, parent=parent, members=members, wait_for=wait_for)
        names.append(key)
        return key

    written = draw(st.booleans())
    after: tuple[str, ...] = ()
    for _ in range(draw(st.integers(0, 5))):
        last = item(2, "", after)
        after = (last,) if written else ()
    looked_at = draw(st.lists(st.sampled_from(names), unique=True)) if names else []
    return arrange(nodes, looked_at=looked_at)


def play(table: Table, draw: Any) -> None:
    """Answer commands and end running steps in a drawn order, now and then stopping from outside."""
    stops = draw(st.booleans())
    while table.state.ended is None:
        running = [
            key
            for key, progress in table.state.nodes.items()
            if progress.phase.name == "running" and progress.node.members is None
        ]
        commands = [command for command in table.commands() if not isinstance(command, Cancel)]
        assert commands or running, "the run is stuck"
        choice = draw(st.sampled_from([*commands, *running]))
        match choice:
            case Judge(step=key):
                if draw(st.booleans()):
                    table.judge(key, taken=draw(st.booleans()), label=draw(LABELS))
                else:
                    table.settle(key, failed("condition"))
            case Start(step=key, attempt=attempt):
                table.append(StepStarted(), key, attempt)
            case End(step=key, data=data):
                table.append(data, key, table.state.nodes[key].attempt)
            case Finish():
                table.finish()
            case str():
                called_off = choice in table.cancelling()
                outcome = draw(st.sampled_from(["ok", "cancelled" if called_off else "failed", "failed"]))
                match outcome:
                    case "ok":
                        table.settle(choice, ok(choice, draw(LABELS)))
                    case "cancelled":
                        table.settle(choice, cancelled())
                    case _:
                        table.settle(choice, failed(draw(KINDS), harmless=draw(st.booleans())))
        if stops and draw(st.integers(0, 15)) == 0 and table.state.ended is None:
            stops = False
            table.halt(draw(st.sampled_from(["cancelled", "timeout"])))


@settings(deadline=None)
@given(st.data(), plans())
def test_every_run_ends_and_keeps_the_rules(data: st.DataObject, plan: Plan) -> None:
    table = Table(plan)
    play(table, data.draw)
    assert table.entries[-1].kind == "RunEnded"
    ends = [entry.step for entry in table.entries if isinstance(entry.data, StepEnded)]
    assert sorted(ends) == sorted(plan.nodes), "every step ends exactly once"
    assert not list(started_too_early(table)), "no step starts before what it waits for has ended"
    assert not list(started_though_blocked(table)), (
        "no step starts that needs a failed one it does not look at"
    )
    assert not list(started_after_halt(table)), "no step starts after a failure that nobody looks at"
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
            node = table.plan.nodes[entry.step]
            if not ended.issuperset(node.waits_for) or (node.parent and node.parent not in begun):
                yield entry.step
            begun.add(entry.step)
        elif isinstance(entry.data, StepEnded):
            ended.add(entry.step)


def started_though_blocked(table: Table) -> Iterator[str]:
    ends: dict[str, str] = {}
    for entry in table.entries:
        if isinstance(entry.data, StepEnded):
            ends[entry.step] = entry.data.end
        elif isinstance(entry.data, StepStarted):
            node = table.plan.nodes[entry.step]
            if any(ends.get(key) in ("failed", "blocked") for key in node.needs if key not in node.looks):
                yield entry.step


def unlooked(table: Table, ends: Mapping[str, str], key: str) -> bool:
    """Whether this failure is one that nobody looks at, told independently of the machine."""
    return not any(ends.get(looker) != "blocked" for looker in table.plan.lookers[key])


def matters(table: Table, key: str) -> bool:
    node = table.plan.nodes[key]
    return table.plan.covers[key] == key and (node.members is None or node.wait_for != "all")


def started_after_halt(table: Table) -> Iterator[str]:
    ends: dict[str, str] = {}
    halted = False
    for entry in table.entries:
        if isinstance(entry.data, StepStarted) and halted:
            yield entry.step
        if entry.kind == "RunHalted":
            halted = True
        if isinstance(entry.data, StepEnded):
            ends[entry.step] = entry.data.end
            halted = halted or any(
                end == "failed" and matters(table, key) and unlooked(table, ends, key) and leaf(table, key)
                for key, end in ends.items()
            )


def leaf(table: Table, key: str) -> bool:
    return table.plan.nodes[key].members is None


def assert_success_is_what_the_failures_say(table: Table) -> None:
    ended = table.state.ended
    assert ended is not None
    ends = {key: progress.ended.end for key, progress in table.state.nodes.items() if progress.ended}
    stopped = any(entry.kind == "RunHalted" for entry in table.entries)
    lonely = [key for key, end in ends.items() if end == "failed" and matters(table, key)]
    lonely = [key for key in lonely if unlooked(table, ends, key)]
    if ended.success:
        assert not stopped
        assert not [key for key in lonely if leaf(table, key)]
    else:
        assert stopped or ended.step in lonely
