"""Runs and ensembles as their callers see them. Pure.

Nothing that is labelled secret leaves, and of a failure only what its caller could have caused or can read.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec

from luthier.redaction import redact
from luthier.serve.answer import is_told, sayable
from luthier.serve.api.shapes import (
    ApprovalView,
    ArgumentView,
    EnsembleView,
    FaultView,
    Problem,
    RunView,
    Waiting,
)
from luthier.serve.api.shapes import Failure as FailureView
from luthier.serve.api.shapes import Label as LabelView
from luthier.serve.offers import input_schema
from luthier.taint import TRUSTED, Confidentiality, Label, join
from luthier.workflows.record import RunEnded, RunStarted, StepEnded
from luthier.workflows.runs import OPEN, status_after

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from luthier.errors import InputError
    from luthier.govern import Request
    from luthier.serve.board import Live
    from luthier.spec import Ensemble
    from luthier.workflows import Entry, Run, RunRow
    from luthier.workflows.runs import Waiting as Waits

CLIENT = "client:"


def of_live(live: Live) -> RunView:
    """A run that goes on."""
    return RunView(
        id=live.id,
        ensemble=live.ensemble,
        status="running",
        success=False,
        client=live.principal.removeprefix(CLIENT),
        durable=live.durable,
        started_at=_time(live.started_at),
    )


def of_ended(run: Run, live: Live) -> RunView:
    """A run that has just come to its end, or to where it waits for somebody."""
    view = msgspec.structs.replace(of_live(live), started_at=_time(run.record[0].at))
    if run.suspended:
        return msgspec.structs.replace(view, status="suspended", waiting=_waiting(run.suspended))
    ended = next((one.data for one in reversed(run.record) if isinstance(one.data, RunEnded)), None)
    at = _time(run.record[-1].at)
    view = msgspec.structs.replace(view, status=status_after(ended), success=run.success, ended_at=at)
    return _filled(view, run.record)


def of_row(row: RunRow, record: Sequence[Entry] = ()) -> RunView:
    """A run as it was kept; without its record, how it stands."""
    view = RunView(
        id=row.id,
        ensemble=row.ensemble,
        status=row.status,
        success=row.status == "ok",
        client=row.principal.removeprefix(CLIENT),
        parent=row.parent,
        durable=row.durable,
        started_at=_time(row.started_at),
        ended_at=_time(row.ended_at),
        waiting=_waiting(row.waiting),
    )
    return view if row.status in OPEN else _filled(view, record)


def _filled(view: RunView, record: Sequence[Entry]) -> RunView:
    """With what it delivered, or why it failed."""
    ended = next((entry.data for entry in reversed(record) if isinstance(entry.data, RunEnded)), None)
    if ended is None:
        return view
    if ended.error is not None:
        failed = (entry.data for entry in record if isinstance(entry.data, StepEnded))
        label = join([TRUSTED, *(step.label for step in failed if step.end == "failed")])
        told = is_told(ended.error.kind, label)
        message = sayable(redact(ended.error.message)) if told else ""
        error = FailureView(kind=ended.error.kind, message=message, step=ended.step)
        return msgspec.structs.replace(view, error=error)
    label = ended.output.whole.join(ended.response.whole)
    if label.confidentiality is Confidentiality.secret:
        return msgspec.structs.replace(view, withheld=True)
    return msgspec.structs.replace(
        view,
        output=sayable(ended.output.value),
        response=sayable(ended.response.value) if ended.response.value else msgspec.UNSET,
        label=_label(label),
    )


def of_request(request: Request) -> ApprovalView:
    """What waits for a person."""
    return ApprovalView(
        id=request.id,
        what=request.what,
        state=request.state,
        client=request.principals[0].removeprefix(CLIENT),
        run=request.run,
        step=request.step,
        uri=request.uri,
        prompt=sayable(request.prompt),
        reason=sayable(request.reason),
        arguments=[ArgumentView(at=one.at, shown=one.shown) for one in request.arguments],
        more=request.more,
        schema=request.schema,
        asked_at=datetime.fromtimestamp(request.asked, UTC),
        expires_at=datetime.fromtimestamp(request.expires, UTC),
        by=request.by,
    )


def of_ensemble(ensemble: Ensemble) -> EnsembleView:
    """What may be run, and with what."""
    return EnsembleView(
        name=ensemble.name, description=ensemble.description, input_schema=sayable(input_schema(ensemble))
    )


def of_fault(error: InputError) -> Problem:
    """Everything that is wrong with an input, as the command line says it."""
    faults = [
        FaultView(message=sayable(redact(fault.message)), suggestion=sayable(redact(fault.suggestion)))
        for fault in error.faults
    ]
    text = "\n".join(str(fault) for fault in error.faults)
    return Problem(error="Invalid input", message=sayable(redact(text)), faults=faults)


def steps_of(record: Sequence[Entry]) -> list[tuple[str, dict[str, Any]]]:
    """What was heard of a run that has ended, out of its record: names and data of events."""
    heard: list[tuple[str, dict[str, Any]]] = []
    for entry in record:
        match entry.data:
            case RunStarted() as began:
                heard.append(("start", {"id": began.run, "ensemble": began.ensemble}))
            case StepEnded() as ended:
                status = ended.end if ended.end in ("ok", "failed") else "skipped"
                heard.append(("step", {"step": entry.step, "status": status, "duration": ended.duration}))
            case _:
                pass
    return heard


def _waiting(waits: Iterable[Waits]) -> list[Waiting]:
    return [
        Waiting(step=one.step, what=one.what, approvals=list(one.requests), expires_at=_time(one.expires_at))
        for one in waits
    ]


def _label(label: Label) -> LabelView:
    return LabelView(
        integrity=label.integrity.name,  # type: ignore[arg-type]  # the names are those of the model
        confidentiality=label.confidentiality.name,  # type: ignore[arg-type]  # likewise
        sources=sorted({f"{source.server}:{source.tool}" for source in label.sources}),
    )


def _time(at: float | None) -> datetime | None:
    return None if at is None else datetime.fromtimestamp(at, UTC)
