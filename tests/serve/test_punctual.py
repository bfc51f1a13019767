"""Whoever keeps a connection and sends no whole request is cut off; there is room for so many and no more."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import pytest
import uvicorn

from luthier.clock import FakeClock
from luthier.serve.listening import Listening, bind
from luthier.serve.punctual import PATIENCE, punctual, room

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

HEAD = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n"
Peer = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Nobody:
    """Stands for what is served."""

    async def close(self) -> None:
        """There is nothing."""


class App:
    """Reads a body and answers once it may."""

    def __init__(self) -> None:
        self.may = asyncio.Event()
        self.may.set()
        self.asked = asyncio.Event()
        self.gone = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await receive()
            return
        message = await receive()
        while message.get("more_body"):
            message = await receive()
        if message["type"] == "http.disconnect":
            self.gone += 1
            return
        self.asked.set()
        await self.may.wait()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})


@asynccontextmanager
async def listening(app: App, clock: FakeClock) -> AsyncIterator[int]:
    """The port."""
    offering: Any = Nobody()
    served = Listening(offering, app, bind("127.0.0.1:0"), clock=clock)
    serving = asyncio.create_task(served.serve())
    try:
        yield int(served.address.rpartition(":")[2])
    finally:
        serving.cancel()
        with suppress(asyncio.CancelledError):
            await serving


async def peer(port: int, said: bytes = b"") -> Peer:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(said)
    return reader, writer


@pytest.mark.parametrize("said", [b"", b"POST / HT", HEAD[:-2], HEAD, HEAD + b"abc"])
async def test_what_does_not_come_whole_in_its_time_is_cut_off(said: bytes) -> None:
    clock, app = FakeClock(), App()
    async with listening(app, clock) as port:
        reader, writer = await peer(port, said)
        other, whole = await peer(port, HEAD + b"abcd")
        assert (await other.readuntil(b"ok")).startswith(b"HTTP/1.1 200")  # so the first was read before
        await clock.advance(PATIENCE - 1)
        assert not reader.at_eof()
        await clock.advance(1)
        assert await reader.read() == b""
        assert app.gone == said.startswith(HEAD)
        writer.close()
        whole.close()


async def test_dripping_does_not_help() -> None:
    clock = FakeClock()
    async with listening(App(), clock) as port:
        reader, writer = await peer(port, HEAD[:1])
        other, whole = await peer(port, HEAD + b"abcd")
        assert (await other.readuntil(b"ok")).startswith(b"HTTP/1.1 200")
        for byte in HEAD[1:31]:
            writer.write(bytes([byte]))
            await clock.advance(PATIENCE / 30)
        assert await reader.read() == b""
        writer.close()
        whole.close()


async def test_an_answer_may_take_longer_and_the_next_request_has_its_own_time() -> None:
    clock, app = FakeClock(), App()
    app.may.clear()
    async with listening(app, clock) as port:
        reader, writer = await peer(port, HEAD + b"abcd")
        await app.asked.wait()
        await clock.advance(10 * PATIENCE)
        app.may.set()
        assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200")
        await clock.advance(PATIENCE - 1)
        writer.write(HEAD + b"abcd")
        assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200")
        writer.close()


async def test_there_is_room_for_so_many_and_one_more_is_closed_at_once() -> None:
    config = uvicorn.Config(App(), http=punctual(FakeClock(), 2), lifespan="off", log_config=None)
    server, bound = uvicorn.Server(config), bind("127.0.0.1:0")
    serving = asyncio.create_task(server.serve(sockets=[bound]))
    peers = []
    for expected in (b"ok", b"ok", b""):
        reader, writer = await peer(bound.getsockname()[1], HEAD + b"abcd")
        with suppress(ConnectionResetError, asyncio.IncompleteReadError):
            assert (await reader.readuntil(b"ok")).endswith(expected or b"never")
        assert reader.at_eof() is (expected == b"")
        peers.append(writer)
    for writer in peers:
        writer.close()
    server.should_exit = True
    await serving
    assert room() > 100
