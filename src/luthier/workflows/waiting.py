"""What suspended steps wait for, and what has been decided about that since.

A decision is read where people left it and written into the run's record; only then is it taken away there.
So a process that ends anywhere in between loses none and uses none twice.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from luthier.taint import Labelled
from luthier.workflows.operations.hitl import decision_of
from luthier.workflows.record import Resumed, StepEnded, Suspended

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from luthier.govern import Desk, Request
    from luthier.workflows.record import Entry


def waits_of(entries: Iterable[Entry]) -> dict[str, Suspended]:
    """What each step waits for after these entries."""
    found: dict[str, Suspended] = {}
    for entry in entries:
        if isinstance(entry.data, Suspended):
            found[entry.step] = entry.data
        elif isinstance(entry.data, Resumed | StepEnded):
            found.pop(entry.step, None)
    return found


async def decisions_for(
    run: str, entries: Iterable[Entry], desk: Desk | None, now: float
) -> Mapping[str, Resumed]:
    """What was decided for the steps of a run with this record. Raises StoreError."""
    if desk is None:
        return {}
    requests = {request.id: request for request in await desk.approvals.list()}
    decided = {}
    for step, data in waits_of(entries).items():
        found = _decision(data, requests, now)
        if found is not None:
            decided[step] = found
    for request in requests.values():
        if run in (request.run, request.root):
            desk.know(request)
    return decided


async def is_decided(requests: Iterable[str], desk: Desk) -> bool:
    """Whether one of these has been decided, or is not there any more. Raises StoreError."""
    for id in requests:
        found = None
        with suppress(ValueError):
            found = await desk.approvals.read(id)
        if found is None or found.state != "waiting" or found.expires <= desk.clock.now():
            return True
    return False


def _decision(data: Suspended, requests: Mapping[str, Request], now: float) -> Resumed | None:
    """What was decided; of a run inside, that something was. What is gone, has expired."""
    for id in data.requests:
        request = requests.get(id)
        if request is None or request.expires <= now:
            found = Resumed(decision="expired", request=id)
        elif request.state == "waiting":
            continue
        else:
            found = decision_of(request)
        if data.what == "run":  # it looks for itself
            return Resumed(decision="approved", request=id, answer=Labelled(None))
        return found
    return None
