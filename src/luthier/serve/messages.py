"""The messages of clients over HTTP: each body is read once, whole, and no name in it stands twice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from luthier.given import RepeatedNameError, once
from luthier.redaction import logger

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping

    Scope = MutableMapping[str, Any]
    Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
    Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
    App = Callable[[Scope, Receive, Send], Awaitable[None]]

PARSE_ERROR, INVALID_REQUEST = -32700, -32600
_log = logger("luthier.serve")


class _Request(msgspec.Struct, frozen=True):
    method: str
    id: str | int


class Messages:
    """An ASGI application before another one, whose messages come to `path`. Bodies were bounded before."""

    def __init__(self, app: App, path: str) -> None:
        self._app = app
        self._path = path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "POST" or scope["path"] != self._path:
            await self._app(scope, receive, send)
            return
        pieces, more = [], True
        while more:
            message = await receive()
            if message["type"] != "http.request":
                return  # whoever asked is gone
            pieces.append(message.get("body", b""))
            more = message.get("more_body", False)
        body = b"".join(pieces)
        try:
            once(body)
        except RepeatedNameError as error:
            _log.warning("a message was refused: %s", error)
            await refuse(send, id_of(body), PARSE_ERROR, f"Parse error: {error}")
            return
        await self._app(scope, first_of(body, receive), send)


def first_of(body: bytes, receive: Receive) -> Receive:
    """What gives this body, and what comes after it."""
    left = [body]

    async def again() -> MutableMapping[str, Any]:
        if left:
            return {"type": "http.request", "body": left.pop(), "more_body": False}
        return await receive()

    return again


def id_of(body: bytes) -> str | int | None:
    """The id of a request; of a notification, an answer, or what is not known, None."""
    try:
        return msgspec.json.decode(body, type=_Request).id
    except (msgspec.DecodeError, RecursionError):
        return None


def error_of(id: str | int | None, code: int, message: str) -> bytes:
    """An error of the protocol."""
    return msgspec.json.encode({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})


async def refuse(send: Send, id: str | int | None, code: int, message: str) -> None:
    """Answer with an error, and 400."""
    body = error_of(id, code, message)
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 400, "headers": headers})
    await send({"type": "http.response.body", "body": body})
