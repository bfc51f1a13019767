"""Which way a URL is spoken to: as was said or learned, else modern, 2025, SSE, REST, one after another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from luthier.errors import ConnectError
from luthier.web import shown
from luthier.wire.era import LATEST_HANDSHAKE, MODERN_VERSIONS
from luthier.wire.http.facts import UnreachableError
from luthier.wire.http.legacy_sse import SseTransport
from luthier.wire.http.rest import RestTransport
from luthier.wire.http.streamable import StreamableTransport
from luthier.wire.negotiate import open_session
from luthier.wire.noise import Noise
from luthier.wire.peer import Handlers
from luthier.wire.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable

    from luthier.clock import Clock
    from luthier.wire.http.client import HttpClient
    from luthier.wire.http.target import HttpTarget
    from luthier.wire.transport import Transport

Kind = Literal["http", "sse", "rest"]

GUESS = 10.0
"""Seconds for a transport that is only guessed."""

_ORDER: tuple[Kind, ...] = ("http", "sse", "rest")
_FINAL = frozenset({401, 403, 407, 408, 429})


class Remembered(msgspec.Struct, frozen=True):
    """What a server answered to before."""

    kind: Kind
    version: str


class Remote(msgspec.Struct, frozen=True):
    """A session and the transport it runs over: what is worth remembering, besides `session.version`."""

    session: Session
    kind: Kind


def http_transport(
    client: HttpClient,
    target: HttpTarget,
    kind: Kind,
    clock: Clock,
    on_noise: Callable[[str], None] | None = None,
) -> Transport:
    """A fresh transport to that server, for `open_session`."""
    if kind == "sse":
        return SseTransport(client, target, clock, on_noise)
    if kind == "rest":
        return RestTransport(client, target, clock, on_noise)
    return StreamableTransport(client, target, clock, on_noise)


async def open_remote(
    client: HttpClient,
    target: HttpTarget,
    transport: Kind | Literal["auto"],
    *,
    clock: Clock,
    timeout: float,
    pinned: str | None = None,
    remembered: Remembered | None = None,
    handlers: Handlers | None = None,
) -> Remote:
    """A session within `timeout` seconds, or one ConnectError.

    `transport` says how the server is spoken to; `auto` finds it out, beginning with what is remembered.
    `pinned` is a revision that the operator insists on.
    """
    ladder = _Ladder(client, target, clock, pinned, handlers or Handlers())
    until = clock.monotonic() + timeout
    if transport != "auto":
        version = remembered.version if remembered is not None and remembered.kind == transport else None
        return await ladder.step(transport, timeout, version)
    if remembered is not None:
        try:
            return await ladder.step(remembered.kind, timeout, remembered.version)
        except ConnectError as error:
            if _is_final(error):
                raise
            ladder.noise(f"it is no longer spoken to by {remembered.kind}: it is asked again")
    return await ladder.climb(until)


class _Ladder:
    """One server, and the ways that are tried one after another."""

    def __init__(
        self, client: HttpClient, target: HttpTarget, clock: Clock, pinned: str | None, handlers: Handlers
    ) -> None:
        self._client = client
        self._target = target
        self._clock = clock
        self._pinned = pinned
        self._handlers = handlers
        self.noise = Noise(handlers.on_noise).tell

    async def step(self, kind: Kind, timeout: float, remembered: str | None = None) -> Remote:
        """A session over that transport."""
        pinned = self._pinned
        if kind != "http" and pinned is None:
            pinned = LATEST_HANDSHAKE  # these transports are older than anything that could be discovered
        session = await open_session(
            lambda: http_transport(self._client, self._target, kind, self._clock, self.noise),
            server=self._target.server,
            clock=self._clock,
            timeout=timeout,
            pinned=pinned,
            remembered=remembered,
            handlers=self._handlers,
            place=shown(self._target.url),
        )
        return Remote(session, kind)

    async def climb(self, until: float) -> Remote:
        """The first transport that works. Raises the first error, which speaks of the likeliest one."""
        first: ConnectError | None = None
        kinds: tuple[Kind, ...] = ("http",) if self._pinned in MODERN_VERSIONS else _ORDER
        for kind in kinds:
            left = until - self._clock.monotonic()
            if left <= 0:
                break
            try:
                return await self.step(kind, left if kind == "http" else min(left, GUESS))
            except ConnectError as error:
                first = first or error
                if _is_final(error):
                    break
        if first is None:
            first = ConnectError("There was no time to connect.", server=self._target.server)
        raise first


def _is_final(error: ConnectError) -> bool:
    """Whether another transport would meet the same: no connection, no credentials, not now."""
    if error.http is None:
        return isinstance(error, UnreachableError) or not error.retryable
    return error.http.status in _FINAL or error.http.status // 100 == 5  # noqa: PLR2004
