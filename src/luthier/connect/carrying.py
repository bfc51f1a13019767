"""Carries calls to their servers and the answers back, each within its time and in its turn.

Nothing that was sent is ever sent again from here.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from luthier.clock import Deadline
from luthier.connect.schemas import Schemas
from luthier.errors import CallTimeoutError, ConnectionLostError
from luthier.events import CallProgressed
from luthier.taint import Label, Source
from luthier.tools.output import checked

if TYPE_CHECKING:
    from collections.abc import Awaitable
    from typing import TypeVar

    from luthier.clock import Clock
    from luthier.connect.links import Link, Links, Server
    from luthier.context import CallContext
    from luthier.events import Observers
    from luthier.tools import Reply, Tool, ToolCall
    from luthier.uri import ToolUri
    from luthier.wire import Session

    T = TypeVar("T")


class Carrier:
    """Carries over the connections that there are, or that are made for it."""

    def __init__(self, links: Links, *, clock: Clock, observers: Observers) -> None:
        self._links = links
        self._clock = clock
        self._observers = observers
        self._outputs = Schemas()

    async def carry(self, call: ToolCall, tool: Tool) -> Reply:
        """Carry a call to its server and the answer back. Raises NotFoundError and WireError."""
        server = self._links.server(call.uri.server)
        link = self._links.link(server, call.context)
        deadline = self.deadline(call.timeout, call.context)
        admitted = server.breakers.ask(call.uri.name)
        link.calls += 1
        try:
            try:
                reply = await self._send(server, link, call, deadline)
            except ConnectionLostError as error:
                if error.sent:
                    raise
                # The connection had ended before it took the call: once more, on another.
                reply = await self._send(server, link, call, deadline)
        except BaseException as error:
            server.breakers.raised(call.uri.name, admitted, error)
            await self._links.look_at(server, link, error, own=1, deadline=deadline)
            raise
        finally:
            link.calls -= 1
        server.breakers.answered(call.uri.name, admitted, reply)
        if tool.output_schema is None:
            return reply
        return checked(reply, tool, self._outputs.output(tool))

    async def _send(self, server: Server, link: Link, call: ToolCall, deadline: float | None) -> Reply:
        session = link.connection.live or await self._session(link, call.uri, deadline)
        now = self._clock.monotonic()
        soft, longest = _limits(server, call, now, deadline)
        limited = server.limiter.limit is not None
        if limited:
            await self.by(soft, server.limiter.acquire(), call.uri, "waiting for its turn")
        try:
            if limited:
                session = await self._session(link, call.uri, soft)  # the one before may have ended meanwhile
                now = self._clock.monotonic()
            if soft <= now:
                raise _too_late(call.uri, "before it was sent")
            return await session.call_tool(
                call.uri.name,
                call.arguments.value,
                timeout=soft - now,
                timeout_max=None if longest is None else longest - now,
                meta=None if call.context.trace is None else call.context.trace.meta,
                on_progress=partial(self._progressed, server, call),
                headers=call.headers,
                forms=call.forms,
            )
        finally:
            if limited:
                server.limiter.release()

    async def _session(self, link: Link, uri: ToolUri, deadline: float | None) -> Session:
        live = link.connection.live
        if live is not None:
            return live
        try:
            return await self.by(
                deadline, link.connection.session(), uri, "while its server was being connected"
            )
        except CallTimeoutError as error:
            if link.connection.last_error is not None:
                error.hint = f"The last try failed: {link.connection.last_error}"
            raise

    async def by(self, deadline: float | None, awaitable: Awaitable[T], uri: ToolUri, when: str) -> T:
        """What an awaitable gives. Raises CallTimeoutError that says `when` it was too late."""
        if deadline is None:
            return await awaitable
        try:
            async with Deadline(self._clock, deadline - self._clock.monotonic()):
                return await awaitable
        except TimeoutError:
            raise _too_late(uri, when) from None

    def deadline(self, timeout: float | None, context: CallContext | None) -> float | None:
        """The earlier of a call's own deadline and that of its context."""
        own = None if timeout is None else self._clock.monotonic() + timeout
        return _earlier(own, None if context is None else context.deadline)

    def _progressed(
        self, server: Server, call: ToolCall, progress: float, total: float | None, message: str
    ) -> None:
        source = Source(call.uri.server, call.uri.name, call.id)
        self._observers.notify(
            CallProgressed(
                at=self._clock.now(),
                call_id=call.id,
                uri=call.uri,
                progress=progress,
                total=total,
                message=message,
                run=call.context.run,
                step=call.context.step,
                label=server.entry.trust.join(Label(sources=frozenset({source}))),
            )
        )


def _limits(server: Server, call: ToolCall, now: float, deadline: float | None) -> tuple[float, float | None]:
    """When a call's time is up, and until when progress may put that off (None: not at all)."""
    if call.timeout is not None and deadline is not None:
        return deadline, None
    soft, longest = now + server.timeout, now + server.timeout_max
    return (soft, longest) if deadline is None else (min(soft, deadline), min(longest, deadline))


def _earlier(one: float | None, other: float | None) -> float | None:
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)


def _too_late(uri: ToolUri, when: str) -> CallTimeoutError:
    return CallTimeoutError(
        f"There was no time left for {uri} {when}.",
        server=uri.server,
        tool=uri.name,
        phase="call",
        sent=False,
    )
