"""Refuses a request of a session whose id is that of one that is not answered yet.

The SDK would send one of the two answers to where the other is waited for, and the other nowhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from luthier.serve.messages import INVALID_REQUEST, first_of, id_of, refuse

if TYPE_CHECKING:
    from luthier.serve.messages import App, Receive, Scope, Send

_SESSION = b"mcp-session-id"


class Ids:
    """An ASGI application before another one, whose messages come to `path`, each in one piece."""

    def __init__(self, app: App, path: str) -> None:
        self._app = app
        self._path = path
        self._at_work: set[tuple[bytes, str | int]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        session = _session(scope, self._path)
        if not session:
            await self._app(scope, receive, send)
            return
        body = (await receive()).get("body", b"")
        receive, id = first_of(body, receive), id_of(body)
        if id is None:
            await self._app(scope, receive, send)
        elif (session, id) in self._at_work:
            await refuse(send, id, INVALID_REQUEST, "The id is that of a request that is not answered yet")
        else:
            self._at_work.add((session, id))
            try:
                await self._app(scope, receive, send)
            finally:
                self._at_work.discard((session, id))


def _session(scope: Scope, path: str) -> bytes:
    if scope["type"] != "http" or scope["method"] != "POST" or scope["path"] != path:
        return b""
    return next((value for name, value in scope["headers"] if name.lower() == _SESSION), b"")
