"""The messages of clients over HTTP: each is read once, whole, and nobody behind reads it in another way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from luthier.given import RepeatedNameError, given_json
from luthier.redaction import logger

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping

    Scope = MutableMapping[str, Any]
    Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
    Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
    App = Callable[[Scope, Receive, Send], Awaitable[None]]

PARSE_ERROR, INVALID_REQUEST = -32700, -32600

MESSAGE = "luthier.message"
"""Where in the scope of a request its message stands, for those before the SDK."""

_log = logger("luthier.serve")


class Messages:
    """An ASGI application before another one, whose messages come to `path`. Bodies were bounded before."""

    def __init__(self, app: App, path: str) -> None:
        self._app = app
        self._path = path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "POST" or scope["path"] != self._path:
            await self._app(scope, receive, send)
            return
        body = await _whole(receive)
        if body is None:  # whoever asked is gone
            return
        try:
            message = given_json(body)
        except (msgspec.DecodeError, RecursionError) as error:
            twice = isinstance(error, RepeatedNameError)
            why = "it is nested too deeply" if isinstance(error, RecursionError) else error
            _log.warning("a message was refused: %s", why)
            await refuse(send, read_id(body) if twice else None, PARSE_ERROR, f"Parse error: {why}")
            return
        await self._app({**scope, MESSAGE: message}, _again(body, receive), send)


async def _whole(receive: Receive) -> bytes | None:
    pieces, more = [], True
    while more:
        message = await receive()
        if message["type"] != "http.request":
            return None
        pieces.append(message.get("body", b""))
        more = message.get("more_body", False)
    return b"".join(pieces)


def _again(body: bytes, receive: Receive) -> Receive:
    """What gives this body, and what comes after it."""
    left = [body]

    async def again() -> MutableMapping[str, Any]:
        if left:
            return {"type": "http.request", "body": left.pop(), "more_body": False}
        return await receive()

    return again


def id_of(message: Any) -> str | int | None:
    """The id of a request; of a notification, an answer, or what is not known, None."""
    if not isinstance(message, dict) or not isinstance(message.get("method"), str):
        return None
    id = message.get("id")
    return id if type(id) in {str, int} else None


def read_id(text: bytes) -> str | int | None:
    """The id of a request in a text that is JSON but for a name that stands twice."""
    return id_of(msgspec.json.decode(text))


def error_of(id: str | int | None, code: int, message: str) -> bytes:
    """An error of the protocol."""
    return msgspec.json.encode({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})


async def refuse(send: Send, id: str | int | None, code: int, message: str) -> None:
    """Answer with an error, and 400."""
    body = error_of(id, code, message)
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 400, "headers": headers})
    await send({"type": "http.response.body", "body": body})
