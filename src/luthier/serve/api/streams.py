"""Server-sent events of a run: what has happened, what happens, and at last what came of it."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import msgspec

from luthier.clock import sleep

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from starlette.responses import Response

    from luthier.clock import Clock

ALIVE = 15.0
"""Seconds after which a comment is sent where nothing else is: what is in between may take that for death."""

_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


def event(number: int, name: str, data: Any) -> bytes:
    """One event."""
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (number, name.encode(), msgspec.json.encode(data))


def streamed(events: AsyncGenerator[bytes]) -> Response:
    """A response that tells them."""
    from starlette.responses import StreamingResponse

    return StreamingResponse(events, media_type="text/event-stream", headers=_HEADERS)


async def kept_alive(events: AsyncGenerator[bytes], clock: Clock) -> AsyncGenerator[bytes]:
    """The same events, with comments where they are far apart."""
    async with aclosing(events):
        while True:
            coming = asyncio.ensure_future(anext(events, None))
            try:
                while not coming.done():
                    pause = asyncio.ensure_future(sleep(clock, ALIVE))
                    await asyncio.wait({coming, pause}, return_when=asyncio.FIRST_COMPLETED)
                    if not pause.cancel():
                        yield b": alive\n\n"
            finally:
                coming.cancel()
            found = coming.result()
            if found is None:
                return
            yield found
