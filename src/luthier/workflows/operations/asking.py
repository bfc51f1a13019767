"""What a server asks for before it answers a call: forms, which a person fills in.

In a durable run the step waits for that, and the server's state waits with it, unread; in any other they are
asked in place. The server is named, its words are marked as its own, and what is filled in must fit its form.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import msgspec

from luthier.errors import StepError
from luthier.govern.approval import LONG_LIFE
from luthier.govern.requests import Question
from luthier.taint import Labelled
from luthier.tools import Refusal
from luthier.workflows.operations.calls import settled
from luthier.workflows.operations.hitl import decision_of, suspended_by
from luthier.workflows.retries import Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping

    from luthier.tools import ToolCall, ToolResult
    from luthier.workflows.operations.attempt import Attempt
    from luthier.workflows.record import Resumed

MOST_ROUNDS = 10
"""Times that a call is made again because of what it asked for."""

_WARY = ("pass", "secret", "token", "credential", "key", "pin")
_WARNING = "Do not give passwords, keys or the like: no server may ask for them in a form."


async def in_rounds(attempt: Attempt, call: ToolCall) -> ToolResult | Refusal | Outcome:
    """What the call comes to; an outcome where the step waits, or nobody can give what is asked for."""
    forms = _forms_for(attempt)
    number = 0
    while True:
        id = f"{call.id}/{number}" if number else call.id
        answer = await settled(attempt, msgspec.structs.replace(call, id=id, forms=forms))
        if isinstance(answer, Refusal) or answer.reply.input_required is None:
            return answer
        given = await _answered(attempt, answer) if number < MOST_ROUNDS else _unmet(attempt, answer)
        if isinstance(given, Outcome):
            return given
        forms, number = given, number + 1


def _forms_for(attempt: Attempt) -> dict[str, Any] | None:
    """What the first call brings along: what was filled in while the step waited; None: nobody could."""
    waited, resumed = attempt.waited, attempt.resumed
    if waited is not None and resumed is not None and waited.what == "input":
        return _responses(waited.asked.value, resumed)
    return {} if _is_possible(attempt) else None


def _is_possible(attempt: Attempt) -> bool:
    desk = attempt.services.people
    return desk is not None and (attempt.context.durable or desk.asks)


async def _answered(attempt: Attempt, answer: ToolResult) -> dict[str, Any] | Outcome:
    """What the next round brings along; or the outcome: that the step waits, or that nobody can be asked."""
    asked, desk = answer.reply.input_required or {}, attempt.services.people
    attempt.label = attempt.label.join(answer.label)
    forms = _forms(asked)
    if forms is None or desk is None or not _is_possible(attempt):
        return _unmet(attempt, answer)
    await attempt.committed()
    request = await desk.ask(_question(attempt, answer, forms), attempt.context)
    if request.state == "waiting" and attempt.context.durable:
        waits = suspended_by(request)
        return Outcome(suspended=msgspec.structs.replace(waits, asked=Labelled(asked, answer.label)))
    found = request if request.state != "waiting" else await desk.waited(request)
    if found is None:
        return _unmet(attempt, answer)
    if not attempt.context.durable:
        await desk.used(found)
    return _responses(asked, decision_of(found))


def _unmet(attempt: Attempt, answer: ToolResult) -> Outcome:
    message = f"{answer.uri} asks for more input before it answers, which nobody here can give"
    unmet = StepError("protocol", message, facts={"input_required": answer.reply.input_required})
    return attempt.failed(unmet)


def _forms(asked: Mapping[str, Any]) -> dict[str, dict[str, Any]] | None:
    """The params of each form by its key; None where there is none, or anything else is asked."""
    requests = asked.get("inputRequests")
    if not isinstance(requests, dict) or not requests or "taskId" in asked:
        return None
    forms = {}
    for key, request in requests.items():
        params = request.get("params") if isinstance(request, dict) else None
        if not isinstance(params, dict) or request.get("method") != "elicitation/create":
            return None
        if params.get("mode", "form") != "form" or not isinstance(params.get("requestedSchema", {}), dict):
            return None
        forms[key] = params
    return forms


def _question(attempt: Attempt, answer: ToolResult, forms: dict[str, dict[str, Any]]) -> Question:
    said = [f"{key}: {form.get('message', '')}" for key, form in forms.items()]
    if len(forms) == 1:
        said = [str(form.get("message", "")) for form in forms.values()]
    wary = [_WARNING] if any(word in name.lower() for name in _fields(forms) for word in _WARY) else []
    state = msgspec.json.encode([answer.reply.input_required], enc_hook=repr)
    return Question(
        what="input",
        prompt=Labelled("\n".join((*said, *wary)), answer.label),
        shown=Labelled({}),
        schema=_schema(forms),
        life=LONG_LIFE,
        uri=str(answer.uri),
        call=answer.call_id,
        rule=f"step {attempt.step.name}",
        place=attempt.step.origin.place(),
        mark=hashlib.sha256(state).hexdigest(),
    )


def _fields(forms: Mapping[str, Mapping[str, Any]]) -> list[str]:
    found = (form.get("requestedSchema", {}).get("properties") for form in forms.values())
    return [name for properties in found if isinstance(properties, dict) for name in properties]


def _schema(forms: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """What an answer must fit: the one form, or all of them by their keys."""
    schemas = {key: form.get("requestedSchema") or {"type": "object"} for key, form in forms.items()}
    if len(schemas) == 1:
        return next(iter(schemas.values()))
    return {"type": "object", "properties": schemas, "required": list(schemas), "additionalProperties": False}


def _responses(asked: Mapping[str, Any], said: Resumed) -> dict[str, Any]:
    """The further params of the call: a response for each form, and the state as it came."""
    keys, given = list(asked["inputRequests"]), said.answer.value
    responses: dict[str, Any] = {key: {"action": "decline"} for key in keys}
    if said.decision == "approved":
        contents = {keys[0]: given} if len(keys) == 1 else given
        responses = {key: {"action": "accept", "content": contents[key]} for key in keys}
    state = {"requestState": asked["requestState"]} if "requestState" in asked else {}
    return {"inputResponses": responses, **state}
