"""Refuses a request of a session whose id is that of one that is not answered yet.

The SDK would send one of the two answers to where the other is waited for, and the other nowhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping

    Scope = MutableMapping[str, Any]
    Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
    Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
    App = Callable[[Scope, Receive, Send], Awaitable[None]]

_SESSION = b"mcp-session-id"
_INVALID = -32600


class _Request(msgspec.Struct, frozen=True):
    method: str
    id: str | int


class Ids:
    """An ASGI application before another one. The bodies that it reads were bounded before."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._at_work: set[tuple[bytes, str | int]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        session = _session(scope)
        if not session:
            await self._app(scope, receive, send)
            return
        messages = [await receive()]
        while messages[-1]["type"] == "http.request" and messages[-1].get("more_body", False):
            messages.append(await receive())
        id = _id_of(b"".join(message.get("body", b"") for message in messages))

        async def again() -> MutableMapping[str, Any]:
            return messages.pop(0) if messages else await receive()

        if id is None:
            await self._app(scope, again, send)
        elif (session, id) in self._at_work:
            await _refuse(id, scope, again, send)
        else:
            self._at_work.add((session, id))
            try:
                await self._app(scope, again, send)
            finally:
                self._at_work.discard((session, id))


def _session(scope: Scope) -> bytes:
    if scope["type"] != "http" or scope["method"] != "POST":
        return b""
    return next((value for name, value in scope["headers"] if name.lower() == _SESSION), b"")


def _id_of(body: bytes) -> str | int | None:
    try:
        return msgspec.json.decode(body, type=_Request).id
    except (msgspec.DecodeError, RecursionError):  # a notification, an answer, or nothing that is known
        return None


async def _refuse(id: str | int, scope: Scope, receive: Receive, send: Send) -> None:
    from starlette.responses import JSONResponse

    error = {"code": _INVALID, "message": "The id is that of a request that is not answered yet"}
    body = {"jsonrpc": "2.0", "id": id, "error": error}
    await JSONResponse(body, status_code=400)(scope, receive, send)
