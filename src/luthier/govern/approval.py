"""The guard of approvals: a call that a policy wants asked for waits for a person, and is made once or never.

The request is kept where every process of the project can decide about it. A decision is taken from there and
nowhere else, and using an approval takes it away in the same move, so two calls cannot use the same one.
Whatever goes wrong on the way is a no.
"""

from __future__ import annotations

import asyncio
import inspect
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from luthier.clock import sleep
from luthier.errors import LuthierError
from luthier.govern.records import Asked
from luthier.govern.requests import Request, request_of
from luthier.redaction import redact as redact_known
from luthier.tools.threads import in_thread

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from luthier.clock import Clock
    from luthier.govern.approvals import Approvals
    from luthier.govern.audit import AuditLog
    from luthier.govern.checks import Decision
    from luthier.govern.guard import GateCall, Next, Up
    from luthier.tools import Refusal

    Callback = Callable[[Request], Any]

LIFE = 3600.0
"""Seconds after which a request is void, decided or not."""

POLL = 0.25
"""Seconds between two looks at what another process may have decided."""

CALLBACK_TIME = 300.0
"""Seconds that a callback has, where nothing else is said."""


class Approval:
    """Asks; `callback` gets the request and gives True or False, or a promise of it.

    `timeout` is seconds that a call waits; None: as long as a callback may take, and without one not at all.
    """

    def __init__(
        self,
        approvals: Approvals,
        audit: AuditLog,
        clock: Clock,
        *,
        timeout: float | None = None,
        callback: Callback | None = None,
        redact: Callable[[str], str] = redact_known,
    ) -> None:
        self._approvals = approvals
        self._audit = audit
        self._clock = clock
        self._timeout = timeout if timeout is not None else CALLBACK_TIME if callback else 0.0
        self._callback = callback
        self._redact = redact

    def guard(self, call: GateCall, inner: Next) -> Awaitable[Up]:
        """Let pass what nobody wants asked for."""
        decision = call.ledger.ask
        return inner(call) if decision is None else self._asked(call, inner, decision)

    async def _asked(self, call: GateCall, inner: Next, decision: Decision) -> Up:
        request = await self._request(call, decision)
        decided = request if request.state != "waiting" else await self._waited(call, request)
        if decided is None:
            return self._undecided(call, request)
        if not await self._approvals.swap(decided, None):
            return self._refused(call, decided, f"the approval {request.id} was used by another call")
        if decided.expires <= self._clock.now():
            return self._refused(call, decided, f"the approval {request.id} has expired")
        if decided.state != "approved":
            return self._refused(call, decided, f"{decided.by} said no")
        call.ledger.ask = None
        call.ledger.approval, call.ledger.approver = decided.id, f"{decided.by} ({decided.via})"
        return await inner(call)

    async def _request(self, call: GateCall, decision: Decision) -> Request:
        """The request for this call. Outside of a run it may be one that was raised, even decided, before."""
        now = self._clock.now()
        id = self._approvals.new_id()
        request = request_of(call, decision, id=id, now=now, expires=now + LIFE, redact=self._redact)
        if not call.call.context.run:
            before = await self._approvals.find(request.binding)
            if before is not None:
                return before
        self._audit.write(
            Asked(
                call=request.call,
                approval=request.id,
                request=request.binding,
                uri=request.uri,
                rule=request.rule,
                place=request.place,
                run=request.run,
                step=request.step,
            )
        )
        await self._approvals.put(request)
        return request

    async def _waited(self, call: GateCall, request: Request) -> Request | None:
        """The request when it has been decided; None when the time is up, or nobody can decide any more.

        A call of a run is the only one that its approval fits, so when it stops waiting the request goes.
        """
        asking = None
        if self._callback is not None:
            asking = asyncio.create_task(self._asked_back(request, self._callback))
        decided = None
        try:
            decided = await self._decision(request, self._clock.monotonic() + self._timeout)
        finally:
            if asking is not None:
                asking.cancel()
            if decided is None and call.call.context.run:
                with suppress(LuthierError):
                    await self._approvals.swap(request, None)
        return decided

    async def _decision(self, request: Request, until: float) -> Request | None:
        while True:
            changed = asyncio.ensure_future(self._approvals.changed())
            try:
                found = await self._approvals.read(request.id)
                if found is None or found.binding != request.binding:
                    return None
                if found.state != "waiting":
                    return found
                left = min(until - self._clock.monotonic(), found.expires - self._clock.now())
                if left <= 0:
                    return None
                pause = asyncio.ensure_future(sleep(self._clock, min(left, POLL)))
                try:
                    await asyncio.wait({changed, pause}, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    pause.cancel()
            finally:
                changed.cancel()

    async def _asked_back(self, request: Request, callback: Callback) -> None:
        """Have the callback decide; whatever is not True is a no, and so is a callback that fails."""
        via = getattr(callback, "via", "callback")
        try:
            if inspect.iscoroutinefunction(callback):
                answer = await callback(request)
            else:
                answer = await in_thread(lambda: callback(request), name="luthier-approve")
                if inspect.isawaitable(answer):
                    answer = await answer
        except (Exception, SystemExit) as error:  # noqa: BLE001  (a callback that fails has said no)
            answer, via = False, f"callback failed: {type(error).__name__}"
        if answer is not True and answer is not False:
            answer, via = False, f"callback answered with a {type(answer).__name__}"
        decide = self._approvals.approve if answer else self._approvals.deny
        with suppress(LuthierError):  # another was faster, or nothing can be decided: then it is a no
            await decide(request.id, via=via)

    def _undecided(self, call: GateCall, request: Request) -> Refusal:
        if call.call.context.run:
            hint = (
                "To be asked, run it on a terminal, set `approval_timeout` and decide with "
                "`luthier approvals`, or give Runtime.open an `approve` callback."
            )
        else:
            hint = f"Look at it with `luthier approvals show {request.id}`, then `luthier approvals approve"
            hint = f"{hint} {request.id}` and call it again."
        why = request.reason or request.rule
        return call.refuse(
            "approval",
            f"{request.uri} needs an approval: {why}",
            rule=request.rule,
            place=request.place,
            hint=hint,
        )

    def _refused(self, call: GateCall, request: Request, why: str) -> Refusal:
        return call.refuse(
            "denied",
            f"{request.uri} was not approved: {why}.",
            rule=request.rule,
            place=request.place,
            hint=f"The call can be made again, and is asked for again: {request.reason or request.rule}",
        )
