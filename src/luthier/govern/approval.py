"""The guard of approvals: a call that a policy wants asked for waits for a person, and is made once or never.

Using an approval takes it away in the same move, so two calls cannot use the same one. A call of a run that
can be suspended does not wait here: its request stays, and the same call finds the decision when it is made
again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from luthier.govern.requests import request_of

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from luthier.govern.checks import Decision
    from luthier.govern.desk import Desk
    from luthier.govern.guard import GateCall, Next, Up
    from luthier.govern.requests import Request
    from luthier.tools import Refusal

LIFE = 3600.0
"""Seconds after which a request is void, decided or not."""

LONG_LIFE = 86_400.0
"""The same, where a run is suspended for it."""


class Approval:
    """Asks people at the desk."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._approvals = desk.approvals

    def guard(self, call: GateCall, inner: Next) -> Awaitable[Up]:
        """Let pass what nobody wants asked for."""
        decision = call.ledger.ask
        return inner(call) if decision is None else self._asked(call, inner, decision)

    async def _asked(self, call: GateCall, inner: Next, decision: Decision) -> Up:
        request = await self._request(call, decision)
        if request.state == "waiting":
            decided = await self._waited(call, request)
        else:
            decided = request
        if decided is None:
            return self._undecided(call, request)
        if not await self._desk.used(decided):
            return self._refused(call, decided, f"the approval {request.id} was used by another call")
        if decided.expires <= self._desk.clock.now():
            return self._refused(call, decided, f"the approval {request.id} has expired")
        if decided.state != "approved":
            why = f": {decided.why}" if decided.why else ""
            return self._refused(call, decided, f"{decided.by} said no{why}")
        call.ledger.ask = None
        call.ledger.approval, call.ledger.approver = decided.id, f"{decided.by} ({decided.via})"
        return await inner(call)

    async def _request(self, call: GateCall, decision: Decision) -> Request:
        """The request for this call; one that was raised before, even decided, where such are left behind."""
        context, now = call.call.context, self._desk.clock.now()
        request = request_of(
            call,
            decision,
            id=self._approvals.new_id(),
            now=now,
            expires=now + (LONG_LIFE if context.durable else LIFE),
            redact=self._desk.redact,
        )
        if not context.run or context.durable:
            before = await self._approvals.find(request.binding)
            if before is not None:
                return before
        await self._desk.put(request)
        return request

    async def _waited(self, call: GateCall, request: Request) -> Request | None:
        """A call of a run that is not suspended is the only one that its approval fits: it goes with it."""
        context = call.call.context
        if context.durable:
            return None
        return await self._desk.waited(request, keep=not context.run)

    def _undecided(self, call: GateCall, request: Request) -> Refusal:
        context, id = call.call.context, request.id
        if context.durable:
            hint = f"Decide: luthier approvals approve {id}, then go on: luthier runs resume {context.root}"
        elif context.run:
            hint = (
                "To be asked, run it on a terminal, run it with `--durable`, set `approval_timeout` and "
                "decide with `luthier approvals`, or give Runtime.open an `approve` callback."
            )
        else:
            hint = f"Look at it with `luthier approvals show {id}`, then `luthier approvals approve"
            hint = f"{hint} {id}` and call it again."
        why = request.reason or request.rule
        return call.refuse(
            "approval",
            f"{request.uri} needs an approval: {why}",
            rule=request.rule,
            place=request.place,
            hint=hint,
            request=id if context.durable else "",
        )

    def _refused(self, call: GateCall, request: Request, why: str) -> Refusal:
        return call.refuse(
            "denied",
            f"{request.uri} was not approved: {why}.",
            rule=request.rule,
            place=request.place,
            hint=f"The call can be made again, and is asked for again: {request.reason or request.rule}",
        )
