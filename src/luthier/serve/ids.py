"""Refuses a request of a session whose id is that of one that is not answered yet.

The SDK would send one of the two answers to where the other is waited for, and the other nowhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from luthier.serve.messages import INVALID_REQUEST, MESSAGE, id_of, refuse

if TYPE_CHECKING:
    from luthier.serve.messages import App, Receive, Scope, Send

_SESSION = b"mcp-session-id"


class Ids:
    """An ASGI application before another one, behind what reads the messages."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._at_work: set[tuple[bytes, str | int]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        session, id = _session(scope), id_of(scope.get(MESSAGE))
        if not session or id is None:
            await self._app(scope, receive, send)
        elif (session, id) in self._at_work:
            await refuse(send, id, INVALID_REQUEST, "The id is that of a request that is not answered yet")
        else:
            self._at_work.add((session, id))
            try:
                await self._app(scope, receive, send)
            finally:
                self._at_work.discard((session, id))


def _session(scope: Scope) -> bytes:
    if scope["type"] != "http":
        return b""
    return next((value for name, value in scope["headers"] if name.lower() == _SESSION), b"")
