"""The rules of control steps: when their members begin, what their ends mean, and what comes of it. Pure.

Each function takes the state and a group of it, and is called by the state only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from luthier.taint import Labelled, join, merge
from luthier.workflows.commands import Judge, What
from luthier.workflows.failures import looked_at
from luthier.workflows.nodes import LOOPS
from luthier.workflows.progress import Halt, called_off, not_started, nothing, skipped
from luthier.workflows.record import NULL, Failure, StepEnded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from luthier.workflows.machine import State
    from luthier.workflows.nodes import Kind
    from luthier.workflows.progress import Progress
    from luthier.workflows.record import BranchTaken, End

_ASKS: dict[Kind, What] = {
    "branch": "condition",
    "while": "condition",
    "switch": "value",
    "foreach": "items",
    "map-reduce": "items",
}
_BAD: tuple[End, ...] = ("failed", "blocked", "cancelled")  # the worst first


def started(state: State, group: Progress) -> None:
    """The group itself has begun."""
    if group.node.kind in _ASKS:
        state.ask(Judge(group.key, _ASKS[group.node.kind]))
    elif group.node.kind == "try":
        state.begin(_part(state, group, "steps"), group.control)
    else:
        for member in list(state.below(group)):
            state.begin(member, group.control)
        if not group.unended:
            _conclude(state, group)


def judged(state: State, group: Progress, data: BranchTaken) -> None:
    """What the group goes by was read."""
    node = group.node
    match node.kind:
        case "while" if data.taken and len(group.bodies) >= node.limit:
            message = f"While loop exceeded maximum iterations ({node.limit})"
            error = Failure(kind="code", message=message, facts={"iterations": node.limit})
            state.close(group, StepEnded(end="failed", error=error, **nothing(group.control)))
        case "while" if data.taken:
            _iterate(state, group)
        case "while":
            _conclude(state, group)
        case "foreach" if data.taken:
            _conclude(state, group)
        case "foreach":
            _launch(state, group)
        case "switch" if data.taken:
            _choose(state, group, node.cases[data.case or ""])
        case "switch":
            _choose(state, group, node.parts.get("default", ""))
        case _:
            _choose(state, group, node.parts.get("then" if data.taken else "else", ""))


def items_read(state: State, group: Progress, items: Labelled[Any]) -> None:
    """The list that a loop goes over."""
    group.items = items.members()
    group.control = group.control.join(items.label)
    _launch(state, group)


def member_ended(state: State, group: Progress, member: Progress) -> None:
    """A member, a part or an iteration has ended."""
    if member.node.key == group.node.body:
        group.running -= 1
        group.cut = group.cut or _end_of(member) in _BAD
        _iteration_ended(state, group)
        return
    group.unended -= 1
    if group.phase == "ended":
        return  # it failed by itself before
    if group.phase != "running":
        if not group.unended and group.dropped is not None:
            state.close(group, group.dropped)
        return
    if group.node.wait_for != "all" and not group.winner and _settles(group, member):
        group.winner = member.key
        for other in list(state.below(group)):
            state.call_off(other)
    if group.node.kind == "try":
        _try_part_ended(state, group, member)
    if not group.unended and group.phase == "running":
        _conclude(state, group)


def each_inside(state: State, group: Progress, act: Callable[[Progress], None]) -> None:
    """Stop what is inside a group that runs, in the given manner. `finally` is left alone, also unbegun."""
    asked = group.node.kind in _ASKS and isinstance(state.agenda.get(group.key), Judge)
    if asked:
        del state.agenda[group.key]
        group.cut = True
    for member in list(state.below(group)):
        if group.node.kind == "try" and _is_left_alone(state, group, member):
            continue
        act(member)
    if asked and group.node.kind in LOOPS:
        _no_more(state, group)


def is_last_part(progress: Progress) -> bool:
    """Whether this is the `finally` of a try."""
    return progress.parent is not None and progress.parent.node.parts.get("finally") == progress.node.key


def in_last_part(progress: Progress) -> bool:
    around: Progress | None = progress
    while around is not None and not is_last_part(around):
        around = around.parent
    return around is not None


# Branch and switch.


def _choose(state: State, group: Progress, part: str) -> None:
    members = list(state.below(group))
    group.chosen = next((member for member in members if member.node.key == part), None)
    for member in members:
        if member is not group.chosen:
            state.drop(member, lambda one: skipped(one, group.control))
    if group.chosen is not None:
        state.begin(group.chosen, group.control)


# Try.


def _try_part_ended(state: State, group: Progress, member: Progress) -> None:
    """`catch` follows a failure of `steps`, `finally` whatever was before it."""
    if member is _part(state, group, "steps"):
        ended = member.ended
        catch = _written(state, group, "catch")
        if catch is None or ended is None:
            _begin_last(state, group)
        elif ended.end == "failed" and state.halted(group) is None:
            halt = member.halt or _halt_of(state, group)
            group.caught = Halt(halt.error, halt.step, ended.label)
            state.begin(catch, ended.label)
        elif ended.end == "ok":
            state.drop(catch, lambda one: skipped(one, group.control.join(ended.label)))
        else:
            halt = _halt_of(state, group)
            state.drop(catch, lambda one: not_started(one, halt))
    elif member is _written(state, group, "catch"):
        _begin_last(state, group)


def _begin_last(state: State, group: Progress) -> None:
    last = _written(state, group, "finally")
    if last is None:
        return
    if state.over:
        state.drop(last, lambda one: not_started(one, _halt_of(state, group)))
    else:
        state.begin(last, group.control)


def _is_left_alone(state: State, group: Progress, member: Progress) -> bool:
    if is_last_part(member):
        return not state.over
    return member.phase == "waiting" and member is not _part(state, group, "steps")


# Loops.


def _launch(state: State, group: Progress) -> None:
    """Begin as many items as may be in work at once."""
    count = len(group.items) if group.items is not None else 0
    group.since = len(group.bodies)
    while len(group.bodies) < count and group.running < group.node.limit and group.phase == "running":
        _iterate(state, group)
    if not group.running:
        _no_more(state, group)


def _iterate(state: State, group: Progress) -> None:
    prefixes = (*group.prefixes, f"{group.key}[{len(group.bodies)}].")
    body = state.make(group.node.body, group, prefixes, group.control)
    group.bodies.append(body)
    group.running += 1
    state.begin(body, group.control)


def _iteration_ended(state: State, group: Progress) -> None:
    if group.phase != "running":
        return
    more = group.items is None or len(group.bodies) < len(group.items)
    group.cut = group.cut or (more and state.halted(group) is not None)
    if group.cut or not more:
        if not group.running:
            _no_more(state, group)
    elif group.node.kind == "while":
        state.ask(Judge(group.key))
    elif group.node.breaks is None:
        _launch(state, group)
    elif not group.running:
        state.ask(Judge(group.key, "break"))


def _no_more(state: State, group: Progress) -> None:
    """All iterations have ended and no other begins."""
    if group.node.kind != "map-reduce":
        _conclude(state, group)
        return
    reduce = _part(state, group, "reduce")
    if group.cut:
        ends = (body.ended for body in group.bodies if body.ended is not None)
        halts = (Halt(end.error, group.key, end.label) for end in ends if end.error is not None)
        halt = next(halts, None) or _halt_of(state, group)
        state.drop(reduce, lambda one: not_started(one, halt))
    else:
        state.begin(reduce, group.control)


# Ends.


def _conclude(state: State, group: Progress) -> None:
    state.close(group, _end(state, group))


def _end(state: State, group: Progress) -> StepEnded:
    if group.called_off:
        return called_off(group)
    counted = _counted(state, group)
    label = join(member.ended.label for member in counted if member.ended is not None).join(group.control)
    if group.halt is not None:
        return StepEnded(end="failed", error=group.halt.error, **nothing(label.join(group.halt.label)))
    bad = _worst(state, group, counted)
    if bad is not None:
        end, error = bad
        return StepEnded(end=end, error=error, **nothing(label))
    if group.cut:
        return not_started(group, _halt_of(state, group))
    return StepEnded(end="ok", output=_output(group, counted).joined(group.control), label=label)


def _counted(state: State, group: Progress) -> list[Progress]:
    """The members whose ends make the group's."""
    match group.node.kind:
        case "branch" | "switch":
            return [] if group.chosen is None else [group.chosen]
        case "try":
            parts = [_written(state, group, part) for part in ("steps", "catch", "finally")]
            steps, catch, last = parts
            if last is not None and _end_of(last) == "failed":
                return [last]
            if catch is not None and catch.dropped is None and _end_of(catch) in ("ok", "failed"):
                return [catch]
            return [] if steps is None else [steps]
        case _ if group.winner:
            return [state.nodes[group.winner]]
        case _:
            return list(state.below(group))


def _worst(state: State, group: Progress, members: Iterable[Progress]) -> tuple[End, Failure] | None:
    """How the group ends badly: a failure that nobody inside looks at, or what stopped a member."""
    around = group.parent if group.parent is not None and group.parent.node.body == group.node.key else group
    found: dict[str, tuple[End, Failure]] = {}
    for member in members:
        ended = member.ended
        if ended is None or ended.error is None or ended.end in found:
            continue
        if ended.end == "failed" and group.node.wait_for == "all" and looked_at(state, member, around):
            continue
        if ended.end == "blocked" and _comes_from_inside(state, group, member, ended.error):
            continue
        found[ended.end] = (ended.end, _of_member(group, member, ended.error))
    return next((found[end] for end in _BAD if end in found), None)


def _output(group: Progress, counted: list[Progress]) -> Labelled[Any]:
    outputs = [NULL if member.ended is None else member.ended.output for member in counted]
    match group.node.kind:
        case "branch":
            return outputs[0] if outputs else Labelled([])
        case "switch" | "try":
            return outputs[0] if outputs else NULL
        case "map-reduce":
            return outputs[-1]
        case "sequence" if group.node.lone:
            return outputs[0]
        case "parallel" if group.node.wait_for != "all" and not group.winner:
            return Labelled([])
        case _:
            return merge(outputs)


def _of_member(group: Progress, member: Progress, error: Failure) -> Failure:
    """The error of a member as the group's. Parts are not seen, so they are not named."""
    node = group.node
    if member.quiet:
        if node.kind not in LOOPS or member.node.key != node.body:
            return error
        index = group.bodies.index(member)
        name = f"{'iteration' if node.kind == 'while' else 'item'} {index}"
        facts = {**error.facts, "index": index}
        return Failure(kind=error.kind, message=f"{name}: {error.message}", facts=facts, note=error.note)
    message = f"{member.node.key}: {error.message}"
    if node.wait_for == "first":
        message = f"no parallel step succeeded; {message}"
    facts = {**error.facts, "member": member.node.key}
    return Failure(kind=error.kind, message=message, facts=facts, note=error.note)


def _comes_from_inside(state: State, group: Progress, member: Progress, error: Failure) -> bool:
    """Whether what kept a member from running failed in the same group, which then answers for that."""
    key = str(error.facts.get("failed", ""))
    around = state.nodes.get(key) or (state.seen(key, member) if key in state.plan.nodes else None)
    around = around.parent if around is not None else None
    while around is not None and around is not group:
        around = around.parent
    return around is group


def _halt_of(state: State, group: Progress) -> Halt:
    return state.halted(group) or Halt(Failure(kind="cancelled", message="called off"))


def _settles(group: Progress, member: Progress) -> bool:
    end = _end_of(member)
    return end == "ok" or (end == "failed" and group.node.wait_for == "any")


def _part(state: State, group: Progress, name: str) -> Progress:
    return state.nodes[group.prefixes[-1] + group.node.parts[name]]


def _written(state: State, group: Progress, name: str) -> Progress | None:
    return _part(state, group, name) if name in group.node.parts else None


def _end_of(progress: Progress) -> str:
    return "" if progress.ended is None else progress.ended.end
