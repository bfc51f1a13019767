"""Who may decide about a request, and which answers it takes. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from luthier.context import OPERATOR
from luthier.errors import Refused, SchemaError
from luthier.tools.schema import Schema

if TYPE_CHECKING:
    from collections.abc import Collection

    from luthier.govern.requests import Request

CALLER = "caller"
"""Among the approvers: the client whose own run asks."""

APPROVERS = frozenset({"approve", "admin"})
"""The roles that may decide where a step names nobody."""

_SHOWN = 5  # faults of an answer


def objection(request: Request, by: str, roles: Collection[str], *, token: bool = False) -> str:
    """Why it is not for this one to decide; empty where it is."""
    if by == OPERATOR:
        return ""
    if by in request.principals:
        own = CALLER in request.approvers and by == request.principals[0]
        return "" if own else f"{by!r} may not decide about what it raised itself."
    if token:
        return ""
    allowed = set(request.approvers) - {CALLER} or (APPROVERS if not request.approvers else set())
    if allowed & {by, by.removeprefix("client:"), *roles}:
        return ""
    return f"{by!r} may not decide about {request.id}."


def answer_fault(schema: dict[str, Any] | None, answer: Any) -> str | None:
    """Why this is no answer to a question with that schema; None where it is one."""
    if schema is None:
        if answer is msgspec.UNSET:
            return None
        return "it takes no answer: it is approved or denied."
    if answer is msgspec.UNSET:
        return "it wants an answer that fits its schema."
    try:
        faults = Schema(schema).faults(answer)
    except SchemaError as error:
        return f"no answer can be checked: {error.message}"
    if not faults:
        return None
    return f"the answer does not fit: {'; '.join(map(str, faults[:_SHOWN]))}"


def refused(request: Request, kind: str, why: str) -> Refused:
    """The refusal of a decision."""
    hint = (
        f"Look at it: luthier approvals show {request.id}"
        if kind == "arguments"
        else f"The operator decides: luthier approvals approve {request.id}"
    )
    return Refused(kind, why, rule="approvals", place=f"request {request.id}", hint=hint)
