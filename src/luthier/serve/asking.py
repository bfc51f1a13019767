"""Questions to a client and their answers, between plain values and the SDK's types. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from luthier.errors import SchemaError
from luthier.tools.schema import Schema

if TYPE_CHECKING:
    from collections.abc import Mapping

    from luthier.caller import Ability


_PLAIN = ("string", "number", "integer", "boolean")


def question(what: Ability, params: Mapping[str, Any]) -> Any:
    """The request of the protocol that asks it."""
    from mcp_types import CreateMessageRequest, ElicitRequest, ListRootsRequest

    match what:
        case "elicitation":
            return ElicitRequest.model_validate({"params": {"mode": "form", **params}})
        case "sampling":
            return CreateMessageRequest.model_validate({"params": dict(params)})
        case "roots":
            return ListRootsRequest()


def unaskable(what: Ability, params: Mapping[str, Any]) -> str:
    """Why this cannot be asked; "" where it can. The protocol's forms have plain values and choices only."""
    if what != "elicitation":
        return ""
    for name, field in params["requestedSchema"]["properties"].items():
        if field.get("type") not in _PLAIN and not (field.get("type") == "array" and "items" in field):
            return f"the field {name!r} of a form must be {', '.join(_PLAIN)}, or a list of choices"
    return ""


def result_type_of(what: Ability) -> Any:
    """The type of the answer to it."""
    from mcp_types import CreateMessageResult, ElicitResult, ListRootsResult

    return {"elicitation": ElicitResult, "sampling": CreateMessageResult, "roots": ListRootsResult}[what]


def answer_of(what: Ability, params: Mapping[str, Any], given: Any) -> dict[str, Any] | None:
    """An answer as plain values; None where it answers something else, or is a form filled in wrong."""
    if not isinstance(given, result_type_of(what)):
        return None
    answer: dict[str, Any] = given.model_dump(mode="json", by_alias=True, exclude_none=True)
    if what == "elicitation" and answer["action"] == "accept":
        try:
            fits = Schema(params["requestedSchema"]).ok(answer.setdefault("content", {}))
        except SchemaError:
            fits = False
        if not fits:
            return None
    return answer


def capabilities(needs: set[Ability]) -> dict[str, Any]:
    """What a client would have to declare."""
    return {what: {} for what in sorted(needs)}
