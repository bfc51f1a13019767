"""Calls through the gate, as operations make them: written into the run's record before and after."""

from __future__ import annotations

from typing import TYPE_CHECKING

from luthier.errors import kind_of
from luthier.tools import Refusal
from luthier.workflows.operations.attempt import note_of
from luthier.workflows.record import CallIntended, CallSettled, Failure
from luthier.workflows.retries import Outcome

if TYPE_CHECKING:
    from luthier.errors import WireError
    from luthier.taint import Label
    from luthier.tools import ToolCall, ToolResult
    from luthier.workflows.operations.attempt import Attempt


async def settled(attempt: Attempt, call: ToolCall) -> ToolResult | Refusal:
    """Call, with the intent recorded before and the outcome after, whatever it is."""
    clock = attempt.services.clock
    attempt.tell(CallIntended(call=call.id, uri=str(call.uri), arguments=call.arguments))
    began, outcome = clock.monotonic(), "cancelled"
    try:
        answer = await attempt.services.gateway.call(call)
        outcome = answer.kind if isinstance(answer, Refusal) else "error" if answer.is_error else "ok"
        return answer
    except Exception as error:
        outcome = kind_of(error)
        raise
    finally:
        duration = (clock.monotonic() - began) * 1000
        attempt.tell(CallSettled(call=call.id, outcome=outcome, duration=duration))


def status_of(error: WireError) -> int | None:
    """The status that came over HTTP, where one did."""
    status = error.facts().get("status")
    return status if isinstance(status, int) else None


def refused(attempt: Attempt, refusal: Refusal, origin: Label) -> Outcome:
    """The outcome that a refusal makes."""
    # What is wrong with arguments is said in the words of the server's schema.
    label = attempt.label.join(origin) if refusal.kind == "arguments" else attempt.label
    facts = {"tool": str(refusal.uri)}
    error = Failure(kind=refusal.kind, message=refusal.reason, facts=facts, note=note_of(refusal))
    return Outcome(error=error, label=label)
