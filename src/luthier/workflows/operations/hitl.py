"""`hitl`: a person is asked, and their answer is the output.

`{status, approved, answer, reason, approver}`; `status` is approved, rejected or expired. In a durable run
the step waits without holding anything; in any other they are asked in place. What a person says is trusted,
and they are its source; only the client whose run it is stays untrusted where it answers itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from luthier.context import OPERATOR
from luthier.errors import StepError
from luthier.govern.requests import Question
from luthier.taint import UNTRUSTED, Label, Labelled, Source, merge
from luthier.tools import delivered
from luthier.workflows.operations.elicited import elicited
from luthier.workflows.operations.texts import spelled
from luthier.workflows.record import Failure, Resumed, Suspended
from luthier.workflows.retries import Outcome

if TYPE_CHECKING:
    from luthier.govern import Desk, Request
    from luthier.spec import HitlConfig
    from luthier.workflows.operations.attempt import Attempt

_NOW_WHAT = (
    "Run it on a terminal or with `--durable`, set `approval_timeout` and decide with `luthier approvals`, "
    "or give Runtime.open an `approve` callback."
)


async def perform(attempt: Attempt, config: HitlConfig) -> Outcome:
    """Ask; or go on with what was decided. Raises StepError where nobody can be asked."""
    if attempt.resumed is not None:
        return _outcome(attempt, config, attempt.resumed)
    desk = attempt.services.people
    if desk is None:
        raise StepError("approval", "nobody can be asked here", hint=_NOW_WHAT)
    question = _question(attempt, config)
    await attempt.committed()
    request = await desk.ask(question, attempt.context)
    if request.state == "waiting":
        request = await elicited(attempt, desk, request) or request
    if request.state != "waiting":
        if not attempt.context.durable:
            await desk.used(request)
        return _outcome(attempt, config, decision_of(request))
    if attempt.context.durable:
        return Outcome(suspended=suspended_by(request), label=attempt.label)
    return await _in_place(attempt, config, desk, request)


async def _in_place(attempt: Attempt, config: HitlConfig, desk: Desk, request: Request) -> Outcome:
    decided = await desk.waited(request)
    if decided is not None:
        await desk.used(decided)
        return _outcome(attempt, config, decision_of(decided))
    if attempt.services.clock.now() >= request.expires:
        return _outcome(attempt, config, Resumed(decision="expired", request=request.id))
    raise StepError("approval", f"it needs somebody's answer: {request.prompt}", hint=_NOW_WHAT)


def suspended_by(request: Request) -> Suspended:
    """What the record says of a step that waits for this."""
    return Suspended(
        what="hitl" if request.what == "hitl" else "approval" if request.what == "call" else "input",
        requests=(request.id,),
        prompt=request.prompt or request.reason or request.rule,
        schema=request.schema,
        expires=request.expires,
    )


def decision_of(request: Request) -> Resumed:
    """What the record says of a request that has been decided."""
    if request.state == "expired":
        return Resumed(decision="expired", request=request.id)
    return Resumed(
        decision="approved" if request.state == "approved" else "denied",
        request=request.id,
        answer=Labelled(request.answer, _said_by(request)),
        by=f"{request.by} ({request.via})",
        reason=request.why,
    )


def _said_by(request: Request) -> Label:
    """The label of the answer; what comes from a client about its own run is a client's input like any."""
    said = Label(sources=frozenset({Source("people", request.by)}))
    return said.join(UNTRUSTED) if request.by in request.principals[:1] and request.by != OPERATOR else said


def _question(attempt: Attempt, config: HitlConfig) -> Question:
    step = attempt.step
    prompt: Labelled[Any] = Labelled(step.description or f"May the step {step.name!r} go on?")
    if config.prompt is not None:
        prompt = attempt.evaluate(config.prompt)
    return Question(
        what="hitl",
        prompt=Labelled(spelled(delivered(prompt.value)), prompt.whole),
        shown=_shown(attempt, config),
        schema=config.schema,
        approvers=config.approvers,
        life=config.timeout,
        rule=f"step {step.name}",
        place=step.origin.place(),
    )


def _shown(attempt: Attempt, config: HitlConfig) -> Labelled[Any]:
    """What is shown beside the prompt: the step's `data`, else its own inputs."""
    if config.data is not None:
        shown = attempt.evaluate(config.data)
    elif attempt.step.inputs is not None:
        shown = attempt.evaluate(attempt.step.inputs)
    else:
        return Labelled({})
    clean = Labelled(delivered(shown.value), shown.label, shown.parts)
    return clean if isinstance(clean.value, dict | list) else merge({"data": clean})


def _outcome(attempt: Attempt, config: HitlConfig, decided: Resumed) -> Outcome:
    label = attempt.context.control
    match decided.decision:
        case "approved":
            return _output(decided, status="approved")
        case "denied" if config.on_reject == "continue":
            return _output(decided, status="rejected")
        case "expired" if config.on_timeout == "continue":
            return _output(decided, status="expired")
        case "denied":
            why = f": {decided.reason}" if decided.reason else ""
            facts = {"approver": decided.by, "reason": decided.reason}
            error = Failure(kind="denied", message=f"{decided.by} said no{why}", facts=facts)
        case _:
            error = Failure(kind="approval", message="nobody has answered in time")
    return Outcome(error=error, label=label)


def _output(decided: Resumed, *, status: str) -> Outcome:
    label = decided.answer.whole
    told = {
        "status": status,
        "approved": status == "approved",
        "answer": decided.answer.value,
        "reason": decided.reason,
        "approver": decided.by,
    }
    return Outcome(output=Labelled(told, label), label=label)
