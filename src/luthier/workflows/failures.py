"""What a failure means: whom it blocks, who looks at it, and which scope it halts. Pure.

Each function takes the state, and is called by it and by the rules of groups only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from luthier.workflows.plan import OUTPUTS
from luthier.workflows.progress import Halt, blocked_by

if TYPE_CHECKING:
    from collections.abc import Iterator

    from luthier.workflows.machine import State
    from luthier.workflows.progress import Progress
    from luthier.workflows.record import StepEnded


def blocked(state: State, progress: Progress) -> StepEnded | None:
    """The end of a step that needs what did not come and does not look at it; None: it may go on."""
    for key in progress.node.needs:
        if key in progress.node.looks:
            continue
        for ended in _ends_of(state, key, progress):
            if ended.end in ("failed", "blocked"):
                return blocked_by(progress, key, ended)
    return None


def failed(state: State, progress: Progress) -> None:
    """A node has failed; it is weighed unless a group around it or its members answer for it."""
    group = progress.parent
    if progress.node.scope or (group is not None and group.node.wait_for != "all"):
        return
    if _failed_by_members(state, progress):
        return
    state.failures.setdefault(progress.node.key, {})[progress.key] = progress
    _weigh(state, progress)


def no_longer_looks(state: State, looker: Progress) -> None:
    """A step that was blocked has not looked; what it was to look at may be left with nobody."""
    looked = state.plan.looked[looker.node.key]
    for key in dict.fromkeys((*looked, *(group for one in looked for group in state.plan.around[one]))):
        for one in _standing(state, key, looker):
            _weigh(state, one)


def looked_at(state: State, progress: Progress, around: Progress | None) -> bool:
    """Whether somebody in the group (None: anybody, the outputs too) looks at this failure.

    Of a group, at it or at all that it failed by.
    """
    if _has_looker(state, progress, around):
        return True
    found = list(causes(state, progress))
    return found != [progress] and all(_has_looker(state, cause, around) for cause in found)


def causes(state: State, progress: Progress) -> Iterator[Progress]:
    """The failures that a failure comes from; one that comes from nothing inside is its own."""
    halt = progress.halt
    if halt is not None and halt.step and halt.step != progress.key:
        yield from causes(state, state.nodes[halt.step])
        return
    found = list(_failed_below(state, progress))
    if progress.node.kind == "try":
        found = found[-1:]
    for member in found:
        yield from causes(state, member)
    if not found:
        yield progress


def _failed_below(state: State, progress: Progress) -> Iterator[Progress]:
    for member in state.below(progress):
        if member.ended is not None and member.ended.end == "failed":
            yield member


def _failed_by_members(state: State, progress: Progress) -> bool:
    """Whether what failed inside was weighed already: all of what waits for all."""
    if progress.node.members is None or progress.node.kind == "try" or progress.node.wait_for != "all":
        return False
    return any(True for _ in _failed_below(state, progress))


def _ends_of(state: State, key: str, viewer: Progress) -> Iterator[StepEnded]:
    """How a node ended, and the outermost loop that it is seen through."""
    loops = state.plan.loops[key][state.plan.shared(key, viewer.node.key) :]
    for name in (key, *loops[:1]):
        progress = state.seen(name, viewer)
        if progress is not None and progress.ended is not None:
            yield progress.ended


def _standing(state: State, key: str, viewer: Progress) -> list[Progress]:
    """Failures of a node that a viewer may see: its own one, or those of all iterations inside."""
    prefix = viewer.prefixes[state.plan.shared(key, viewer.node.key)]
    standing = state.failures.get(key, {})
    if prefix + key in standing:
        return [standing[prefix + key]]
    return [one for id, one in standing.items() if id.startswith(prefix)]


def _weigh(state: State, one: Progress) -> None:
    scope = one.parent
    while scope is not None and not scope.node.scope:
        scope = scope.parent
    there = state.halt if scope is None else scope.halt
    ended = one.ended
    if there is not None or ended is None or ended.error is None or looked_at(state, one, scope):
        return
    origin = next(causes(state, one)) if one.node.kind == "try" else one
    state.halt_in(scope, Halt(ended.error, origin.key, ended.label))


def _has_looker(state: State, progress: Progress, around: Progress | None) -> bool:
    for looker in state.plan.lookers[progress.node.key]:
        if looker == OUTPUTS:
            if around is None:
                return True
            continue
        if around is not None and around.node.key not in (looker, *state.plan.around[looker]):
            continue
        ended = state.nodes[progress.prefixes[len(state.plan.loops[looker])] + looker].ended
        if ended is None or ended.end != "blocked":
            return True
    return False
