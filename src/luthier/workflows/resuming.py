"""How a run is gone on with: which steps were at work when its process ended. Pure.

Finished steps are not run again. A step that was at work is, as the same attempt; whether a call that it had
made may be made once more, its operation knows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from luthier.workflows.record import ASKS, CallIntended, CallSettled, StepStarted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from luthier.workflows.machine import State
    from luthier.workflows.progress import Progress
    from luthier.workflows.record import Entry


def at_work(state: State, entries: Iterable[Entry]) -> list[tuple[Progress, bool]]:
    """The steps that were at work after these entries, each with whether a call of it may have been sent."""
    called: dict[str, bool] = {}
    for entry in entries:
        if isinstance(entry.data, StepStarted):
            called[entry.step] = False
        elif isinstance(entry.data, CallIntended):
            called[entry.step] = True
        elif isinstance(entry.data, CallSettled) and entry.data.outcome == ASKS:
            called[entry.step] = False
    found = ((state.nodes[key], call) for key, call in called.items())
    return [
        (progress, call)
        for progress, call in found
        if progress.phase == "running" and progress.node.members is None
    ]


def began(entries: Iterable[Entry]) -> dict[str, float]:
    """When each step began for the first time."""
    found: dict[str, float] = {}
    for entry in entries:
        if isinstance(entry.data, StepStarted):
            found.setdefault(entry.step, entry.at)
    return found
