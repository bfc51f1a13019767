"""Calls of Luthier's own tools, as operations make them, and what becomes of their errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from luthier.errors import ConnectError, LuthierError, WireError
from luthier.outside.answers import error_in
from luthier.taint import UNTRUSTED
from luthier.tools import Refusal, ToolCall
from luthier.workflows.operations.calls import refused, settled, status_of

if TYPE_CHECKING:
    from luthier.taint import Labelled
    from luthier.tools import ToolResult
    from luthier.uri import ToolUri
    from luthier.workflows.operations.attempt import Attempt
    from luthier.workflows.retries import Outcome


def call_of(attempt: Attempt, uri: ToolUri, arguments: Labelled[dict[str, Any]], **more: Any) -> ToolCall:
    """The call of an attempt."""
    id = f"{attempt.context.run}/{attempt.step.name}/{attempt.number}"
    return ToolCall(id=id, uri=uri, arguments=arguments, context=attempt.context, **more)


async def called(attempt: Attempt, call: ToolCall) -> ToolResult | Outcome:
    """What a tool of this process answered, or the outcome that its failure makes."""
    try:
        answer = await settled(attempt, call)
    except LuthierError as error:
        wire = error if isinstance(error, WireError) else None
        return attempt.failed(
            error,
            label=attempt.label.join(UNTRUSTED),
            harmless=attempt.harmless or (wire is not None and not wire.sent),
            hopeless=isinstance(error, ConnectError) and not error.retryable,
            status=status_of(wire) if wire is not None else None,
        )
    if isinstance(answer, Refusal):
        return refused(attempt, answer, attempt.label)
    if (fault := error_in(answer.content)) is not None and answer.is_error:
        return attempt.failed(fault, label=attempt.label.join(answer.label), hopeless=True)
    return answer
