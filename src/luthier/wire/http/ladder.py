"""Which way a URL is spoken to: as was said or learned, else modern, 2025, SSE, REST, one after another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from luthier.wire.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable

    from luthier.clock import Clock
    from luthier.wire.http.client import HttpClient
    from luthier.wire.http.target import HttpTarget
    from luthier.wire.peer import Handlers
    from luthier.wire.transport import Transport

Kind = Literal["http", "sse", "rest"]


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
    from luthier.wire.http.streamable import StreamableTransport

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
    raise NotImplementedError
