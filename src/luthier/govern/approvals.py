"""What waits for a person: kept in the state store, so that any process of the project can decide.

The operator decides about all of it: whoever has the project's files, by the command line or by Python. Of
the clients that call from outside, those do whose role or name says so, and who holds a request's token, but
nobody about what they raised themselves, unless the step says so. There is no tool for it, so no agent and no
ensemble decides. A decision is written down in the audit log before it counts.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from luthier.context import OPERATOR
from luthier.errors import NotFoundError, Refused
from luthier.govern.audit import written_down
from luthier.govern.deciding import answer_fault, objection, refused
from luthier.govern.decisions import written_first
from luthier.govern.records import Decided
from luthier.govern.requests import Request, read_request
from luthier.govern.storing import asked
from luthier.text import near

if TYPE_CHECKING:
    from collections.abc import Collection, Coroutine, Iterable

    from luthier.clock import Clock
    from luthier.connect import StateStore
    from luthier.govern.audit import AuditLog

KIND = "approvals"
TOKEN = "hitl_"  # noqa: S105  (what they begin with)
TOKEN_BYTES = 32

KEPT = 30 * 86_400.0
"""Seconds that one is told of as expired, where nobody goes on with its run."""


class Approvals:
    """The requests of one project."""

    def __init__(self, state: StateStore, audit: AuditLog, clock: Clock) -> None:
        self._state = state
        self._audit = audit
        self._clock = clock
        self._changed = asyncio.Event()

    async def list(self) -> tuple[Request, ...]:
        """What waits for a decision or, decided, for its call; the oldest first. What is over is taken away.

        What is void and has suspended a run is told of as `expired`, until that goes on. What cannot be read
        is nobody's request, and is left out.
        """
        rows = await asked(self._clock, self._state, lambda: self._state.list(KIND))
        requests = []
        for row in rows.values():
            with suppress(ValueError):
                read = read_request(row)
                kept = read if read.expires > self._clock.now() else await self._expired(read)
                if kept is not None:
                    requests.append(kept)
        return tuple(sorted(requests, key=lambda request: (request.asked, request.id)))

    async def _expired(self, request: Request) -> Request | None:
        """What is left of a request that is void; where nobody has decided in time, that is written down."""
        if request.state == "waiting":
            await written_down(self._audit, _decided(request, "expired"))
        kept = None
        if request.durable and self._clock.now() < request.expires + KEPT:
            kept = msgspec.structs.replace(request, state="expired", token="")
        if kept != request:
            await self.swap(request, kept)
        return kept

    async def get(self, id: str) -> Request:
        """The request of that id, or token. Raises NotFoundError, also when it has expired."""
        requests = {request.id: request for request in await self.list()}
        if id.startswith(TOKEN):
            return self._by_token(id, requests.values())
        if id not in requests:
            hint = "It may have expired or been used: `luthier approvals list` shows what waits."
            raise NotFoundError("request", id, near=near(id, requests), hint=hint)
        return requests[id]

    @staticmethod
    def _by_token(token: str, requests: Iterable[Request]) -> Request:
        hashed = _hashed(token)
        for request in requests:
            if request.token and hmac.compare_digest(request.token, hashed):
                return request
        hint = "A token decides once, in time, and not after another was given out: `luthier approvals list`."
        raise NotFoundError("request with this token", "", hint=hint)

    async def approve(
        self,
        id: str,
        *,
        answer: Any = msgspec.UNSET,
        why: str = "",
        by: str = OPERATOR,
        roles: Collection[str] = (),
        via: str = "python",
    ) -> Request:
        """Let that one call be made, or give the answer that is asked for. `id` may be a token.

        Raises NotFoundError, Refused where it is not for `by` to decide, has been decided, or the answer does
        not fit, and AuditError.
        """
        request = await self.get(id)
        self._may(request, id, by, roles)
        if (fault := answer_fault(request.schema, answer)) is not None:
            raise refused(request, "arguments", fault)
        given = None if answer is msgspec.UNSET else answer
        return await self._decide(request, "approved", by=by, via=via, why=why, answer=given)

    async def deny(
        self,
        id: str,
        *,
        why: str = "",
        by: str = OPERATOR,
        roles: Collection[str] = (),
        via: str = "python",
    ) -> Request:
        """Have that call refused, or the question answered with no. Raises as `approve` does."""
        request = await self.get(id)
        self._may(request, id, by, roles)
        return await self._decide(request, "denied", by=by, via=via, why=why, answer=None)

    async def token(self, id: str, *, by: str = OPERATOR, roles: Collection[str] = ()) -> str:
        """A token that decides about this request, once, in place of whoever may; it is kept as a hash only.

        One that was given out before is void from now on. Raises as `approve` does.
        """
        request = await self.get(id)
        self._may(request, id, by, roles)
        made = TOKEN + secrets.token_urlsafe(TOKEN_BYTES)
        if request.state != "waiting" or not await self.swap(
            request, msgspec.structs.replace(request, token=_hashed(made))
        ):
            raise _too_late(request)
        return made

    def _may(self, request: Request, id: str, by: str, roles: Collection[str]) -> None:
        """Refuse whom it is not for. Who comes with the token needs no role."""
        if request.state != "waiting":
            raise _too_late(request)
        why = objection(request, by, roles, token=id.startswith(TOKEN))
        if why:
            raise refused(request, "denied", why)

    async def _decide(self, request: Request, decision: Literal["approved", "denied"], **how: Any) -> Request:
        decided = msgspec.structs.replace(request, state=decision, decided=self._clock.now(), token="", **how)
        async with written_first(self._audit, _decided(decided, decision)):
            if not await self.swap(request, decided):
                raise _too_late(request)
        return decided

    # For the desk

    async def put(self, request: Request) -> None:
        """Keep a new request."""
        if not await asked(
            self._clock,
            self._state,
            lambda: self._state.swap(KIND, request.id, None, msgspec.to_builtins(request)),
        ):
            raise RuntimeError(f"the id {request.id} is taken")

    async def find(self, binding: str) -> Request | None:
        """The oldest request that is bound to this, and is not void."""
        found = (request for request in await self.list() if request.state != "expired")
        return next((request for request in found if request.binding == binding), None)

    async def read(self, id: str) -> Request | None:
        """A request as it stands. Raises ValueError where it cannot be read."""
        row = await asked(self._clock, self._state, lambda: self._state.get(KIND, id))
        return None if row is None else read_request(row)

    async def swap(self, request: Request, new: Request | None) -> bool:
        """Put another in its place, or take it away: once, however many try."""
        own, other = msgspec.to_builtins(request), None if new is None else msgspec.to_builtins(new)
        swapped = await asked(
            self._clock, self._state, lambda: self._state.swap(KIND, request.id, own, other)
        )
        self._changed.set()
        self._changed = asyncio.Event()
        return swapped

    def changed(self) -> Coroutine[Any, Any, object]:
        """Waits until this process has decided something since the asking; others are not heard of."""
        return self._changed.wait()

    @staticmethod
    def new_id() -> str:
        """An id that is short enough to be typed and that nobody else makes."""
        return secrets.token_hex(4)


def _hashed(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def _decided(request: Request, decision: str) -> Decided:
    return Decided(
        call=request.call,
        approval=request.id,
        request=request.binding,
        decision=decision,
        by=request.by,
        via=request.via,
        uri=request.uri,
    )


def _too_late(request: Request) -> Refused:
    what = "has expired" if request.state == "expired" else "has been decided already"
    return Refused(
        "denied",
        f"{request.id} {what}.",
        rule="approvals",
        place=f"request {request.id}",
        hint="`luthier approvals list` shows what waits.",
    )
