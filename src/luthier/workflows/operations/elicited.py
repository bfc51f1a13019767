"""A question put to the client whose run it is, where the step says so and the client can be asked."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from luthier.errors import CallerError, Refused
from luthier.govern.deciding import CALLER

if TYPE_CHECKING:
    from luthier.govern import Desk, Request
    from luthier.workflows.operations.attempt import Attempt

_PLAIN = frozenset({"string", "number", "integer", "boolean"})
_YES_OR_NO = {
    "type": "object",
    "properties": {"approved": {"type": "boolean"}, "reason": {"type": "string"}},
    "required": ["approved"],
}


async def elicited(attempt: Attempt, desk: Desk, request: Request) -> Request | None:
    """The request as the client has decided it; None where it cannot be asked, or has not answered."""
    line, form = attempt.services.lines.of(attempt.context.root), _form(request.schema)
    if CALLER not in request.approvers or form is None or not line.can("elicitation"):
        return None
    shown = [f"{one.at} = {one.shown}" for one in request.arguments]
    asked = {"message": "\n".join((request.prompt, *shown)), "requestedSchema": form}
    try:
        said = await line.ask("elicitation", asked, attempt.context.step)
    except CallerError:
        return None
    with suppress(Refused):  # somebody else was faster, or it does not fit
        await _decide(desk, request, said, attempt.context.principals[0])
    found = await desk.approvals.read(request.id)
    return None if found is None or found.state == "waiting" else found


async def _decide(desk: Desk, request: Request, said: dict[str, Any], by: str) -> None:
    content = said.get("content") or {}
    how: dict[str, Any] = {"by": by, "via": "elicitation"}
    if said["action"] == "decline":
        await desk.approvals.deny(request.id, **how)
    elif said["action"] == "accept" and request.schema is None:
        decide = desk.approvals.approve if content["approved"] is True else desk.approvals.deny
        await decide(request.id, why=content.get("reason", ""), **how)
    elif said["action"] == "accept":
        answer = content if _is_form(request.schema) else content["answer"]
        await desk.approvals.approve(request.id, answer=answer, **how)


def _form(schema: dict[str, Any] | None) -> dict[str, Any] | None:
    """The question as a form of the protocol, which has plain fields only; None where it is none."""
    if schema is None:
        return _YES_OR_NO
    if _is_form(schema):
        return schema
    if not _is_plain(schema):
        return None
    field = {"type": "string", **schema} if "enum" in schema else schema
    return {"type": "object", "properties": {"answer": field}, "required": ["answer"]}


def _is_form(schema: dict[str, Any] | None) -> bool:
    properties = (schema or {}).get("properties")
    return isinstance(properties, dict) and all(map(_is_plain, properties.values()))


def _is_plain(schema: Any) -> bool:
    if not isinstance(schema, dict):
        return False
    words = schema.get("enum")
    return schema.get("type") in _PLAIN or (
        isinstance(words, list) and all(isinstance(one, str) for one in words)
    )
