"""Calls through the gate, as operations make them: written into the run's record before and after.

The intent is written when the gate has let the call pass, right before it is sent. What ends before that,
while a person is to be asked perhaps, can be done again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from luthier.errors import StepError, kind_of
from luthier.govern.approval import LONG_LIFE
from luthier.tools import Refusal
from luthier.workflows.operations.attempt import note_of
from luthier.workflows.record import ASKS, CallIntended, CallSettled, Failure, Suspended
from luthier.workflows.retries import Outcome

if TYPE_CHECKING:
    from luthier.errors import WireError
    from luthier.taint import Label
    from luthier.tools import ToolCall, ToolResult
    from luthier.workflows.operations.attempt import Attempt


LOST = "See whether it was done. A tool that may be called twice can be named under `tools.idempotent`."


async def settled(attempt: Attempt, call: ToolCall) -> ToolResult | Refusal:
    """Call, with the intent recorded before it is sent and the outcome after, whatever it is.

    Raises StepError of the kind `unknown` where the attempt made it once before, and twice may do harm.
    """
    if attempt.lost and not attempt.harmless:
        message = f"the process ended while {call.uri} was called, so what became of the call is not known"
        raise StepError("unknown", message, hint=LOST)

    async def passed() -> None:
        attempt.tell(CallIntended(call=call.id, uri=str(call.uri), arguments=call.arguments))
        await attempt.committed()

    clock = attempt.services.clock
    began, outcome = clock.monotonic(), "cancelled"
    try:
        answer = await attempt.services.gateway.call(msgspec.structs.replace(call, passed=passed))
        outcome = _outcome_of(answer)
        return answer
    except Exception as error:
        outcome = kind_of(error)
        raise
    finally:
        duration = (clock.monotonic() - began) * 1000
        attempt.tell(CallSettled(call=call.id, outcome=outcome, duration=duration))


def _outcome_of(answer: ToolResult | Refusal) -> str:
    if isinstance(answer, Refusal):
        return answer.kind
    return ASKS if answer.reply.input_required is not None else "error" if answer.is_error else "ok"


def status_of(error: WireError) -> int | None:
    """The status that came over HTTP, where one did."""
    status = error.facts().get("status")
    return status if isinstance(status, int) else None


def refused(attempt: Attempt, refusal: Refusal, origin: Label) -> Outcome:
    """The outcome that a refusal makes; in a durable run the step waits for what may still be decided."""
    if refusal.request and attempt.context.durable:
        return Outcome(
            suspended=Suspended(
                what="approval",
                requests=(refusal.request,),
                prompt=refusal.reason,
                expires=attempt.services.clock.now() + LONG_LIFE,
            )
        )
    # What is wrong with arguments is said in the words of the server's schema.
    label = attempt.label.join(origin) if refusal.kind == "arguments" else attempt.label
    facts = {"tool": str(refusal.uri)}
    error = Failure(kind=refusal.kind, message=refusal.reason, facts=facts, note=note_of(refusal))
    return Outcome(error=error, label=label)
