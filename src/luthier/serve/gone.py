"""Tells whoever works for a request that its client has gone away in the middle of it.

Since 2026-07-28 the SDK takes that as a cancellation. A session of the kind before goes on without the stream
that an answer would have gone to, and nothing is kept for it here, so nobody could have it any more.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping

    Scope = MutableMapping[str, Any]
    Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
    Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
    App = Callable[[Scope, Receive, Send], Awaitable[None]]

_KEY = "luthier.gone"


class Gone:
    """An ASGI application before another one."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        async def heard() -> MutableMapping[str, Any]:
            message = await receive()
            if message["type"] == "http.disconnect" and not gone.done():
                gone.set_result(None)
            return message

        await self._app({**scope, _KEY: gone}, heard, send)


def ended_with(request: Any, task: asyncio.Task[Any]) -> None:
    """Call off the task when the client of the request goes away, where that can be told."""
    gone: asyncio.Future[None] | None = getattr(request, "scope", {}).get(_KEY)
    if gone is not None:
        gone.add_done_callback(lambda _: task.cancel())
