"""What browsers ask before a page of another origin may call, and what they must read to hand it the answer.

It goes through only where the door would let the origin in. Nothing is answered by it but the question
itself, which browsers put without credentials.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from luthier.serve.locks import all_of

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from luthier.serve.door import Door, Receive, Scope, Send

_METHODS = "GET, POST, PUT, PATCH, DELETE"
_ASKED_WITH = (
    "authorization, content-type, accept, prefer, last-event-id, mcp-protocol-version, mcp-session-id, "
    "mcp-method, mcp-name, traceparent, tracestate"
)
_SHOWN = "location, mcp-session-id, preference-applied, retry-after, www-authenticate"
_KEPT = "600"


class Cors:
    """An ASGI application before the door, which tells whether a request comes from a place that it knows."""

    def __init__(self, door: Door) -> None:
        self._door = door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        origins = all_of(scope["headers"], "origin") if scope["type"] == "http" else []
        if not origins or self._door.place_fault(scope["headers"]) is not None:
            await self._door(scope, receive, send)
            return
        told = [(b"access-control-allow-origin", origins[0].encode("latin-1")), (b"vary", b"Origin")]
        if scope["method"] == "OPTIONS" and all_of(scope["headers"], "access-control-request-method"):
            told += [
                (b"access-control-allow-methods", _METHODS.encode()),
                (b"access-control-allow-headers", _ASKED_WITH.encode()),
                (b"access-control-max-age", _KEPT.encode()),
            ]
            await send({"type": "http.response.start", "status": 204, "headers": told})
            await send({"type": "http.response.body", "body": b""})
            return
        told.append((b"access-control-expose-headers", _SHOWN.encode()))

        async def shown(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", ()), *told]}
            await send(message)

        await self._door(scope, receive, shown)
