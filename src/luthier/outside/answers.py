"""Answers of Luthier's own tools: what was found, or why there is nothing, which is an answer as well."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from luthier.errors import StepError
from luthier.taint import TRUSTED, UNTRUSTED, Label
from luthier.tools import Reply

if TYPE_CHECKING:
    from luthier.errors import LuthierError


def answer(found: dict[str, Any], label: Label = TRUSTED, *, is_error: bool = False) -> Reply:
    """A value as an answer."""
    block = {"type": "text", "text": msgspec.json.encode(found).decode()}
    return Reply(structured=found, blocks=[block], label=label, is_error=is_error)


def failure(error: LuthierError) -> Reply:
    """`{error: {kind, message, hint}}`."""
    kind = error.step_kind if isinstance(error, StepError) else "code"
    told = {"kind": kind, "message": error.message, "hint": error.hint}
    return answer({"error": told}, UNTRUSTED, is_error=True)


def error_in(reply: Any) -> StepError | None:
    """The error that such an answer tells of; None where it holds what was found."""
    told = reply.get("error") if isinstance(reply, dict) else None
    if not isinstance(told, dict):
        return None
    return StepError(str(told["kind"]), str(told["message"]), hint=str(told["hint"]))
