"""What waits for a person: kept in the state store, so that any process of the project can decide.

Only the operator decides: whoever has the project's files, by the command line or by Python. There is no tool
for it, so no agent, ensemble or client can answer what it raised itself; a decision in another name is
refused. A decision is written down in the audit log before it counts.
"""

from __future__ import annotations

import asyncio
import secrets
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from luthier.context import OPERATOR
from luthier.errors import NotFoundError, Refused
from luthier.govern.records import Decided
from luthier.govern.requests import Request, read_request
from luthier.govern.storing import asked
from luthier.text import near

if TYPE_CHECKING:
    from luthier.clock import Clock
    from luthier.connect import StateStore
    from luthier.govern.audit import AuditLog

KIND = "approvals"


class Approvals:
    """The requests of one project."""

    def __init__(self, state: StateStore, audit: AuditLog, clock: Clock) -> None:
        self._state = state
        self._audit = audit
        self._clock = clock
        self._changed = asyncio.Event()

    async def list(self) -> tuple[Request, ...]:
        """What waits for a decision or, decided, for its call; the oldest first. What is over is taken away.

        What cannot be read is nobody's request, and is left out.
        """
        rows = await asked(self._clock, lambda: self._state.list(KIND))
        requests = []
        for row in rows.values():
            with suppress(ValueError):
                request = read_request(row)
                if request.expires > self._clock.now():
                    requests.append(request)
                else:
                    await self.swap(request, None)
        return tuple(sorted(requests, key=lambda request: (request.asked, request.id)))

    async def get(self, id: str) -> Request:
        """The request of that id. Raises NotFoundError, also when it has expired."""
        requests = {request.id: request for request in await self.list()}
        if id not in requests:
            hint = "It may have expired or been used: `luthier approvals list` shows what waits."
            raise NotFoundError("request", id, near=near(id, requests), hint=hint)
        return requests[id]

    async def approve(self, id: str, *, by: str = OPERATOR, via: str = "python") -> Request:
        """Let that one call be made. Raises NotFoundError, and Refused where it is not for `by` to decide."""
        return await self._decide(id, "approved", by, via)

    async def deny(self, id: str, *, by: str = OPERATOR, via: str = "python") -> Request:
        """Have that call refused. Raises as `approve` does."""
        return await self._decide(id, "denied", by, via)

    async def _decide(self, id: str, decision: str, by: str, via: str) -> Request:
        request = await self.get(id)
        if by != OPERATOR:
            raise Refused(
                "denied",
                f"{by!r} may not decide about {id}: only the operator may.",
                rule="approvals",
                place=f"request {id}",
                hint=f"The operator decides: luthier approvals approve {id}",
            )
        if request.state != "waiting":
            raise _too_late(request)
        decided = msgspec.structs.replace(
            request,
            state="approved" if decision == "approved" else "denied",
            by=by,
            via=via,
            decided=self._clock.now(),
        )
        self._audit.write(
            Decided(
                call=request.call,
                approval=id,
                request=request.binding,
                decision=decided.state,
                by=by,
                via=via,
                uri=request.uri,
            )
        )
        if not await self.swap(request, decided):
            raise _too_late(request)
        return decided

    # For the guard

    async def put(self, request: Request) -> None:
        """Keep a new request."""
        if not await asked(
            self._clock, lambda: self._state.swap(KIND, request.id, None, msgspec.to_builtins(request))
        ):
            raise RuntimeError(f"the id {request.id} is taken")

    async def find(self, binding: str) -> Request | None:
        """The oldest request that is bound to this."""
        return next((request for request in await self.list() if request.binding == binding), None)

    async def read(self, id: str) -> Request | None:
        """A request as it stands. Raises ValueError where it cannot be read."""
        row = await asked(self._clock, lambda: self._state.get(KIND, id))
        return None if row is None else read_request(row)

    async def swap(self, request: Request, new: Request | None) -> bool:
        """Put another in its place, or take it away: once, however many try."""
        own, other = msgspec.to_builtins(request), None if new is None else msgspec.to_builtins(new)
        swapped = await asked(self._clock, lambda: self._state.swap(KIND, request.id, own, other))
        self._changed.set()
        self._changed = asyncio.Event()
        return swapped

    async def changed(self) -> None:
        """Wait until this process has decided something; others are not heard of."""
        await self._changed.wait()

    @staticmethod
    def new_id() -> str:
        """An id that is short enough to be typed and that nobody else makes."""
        return secrets.token_hex(4)


def _too_late(request: Request) -> Refused:
    return Refused(
        "denied",
        f"{request.id} has been decided already.",
        rule="approvals",
        place=f"request {request.id}",
        hint="`luthier approvals list` shows what waits.",
    )
