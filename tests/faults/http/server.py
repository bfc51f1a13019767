"""HTTP/1.1 by hand, for a server that can do everything wrong: byte by byte, and with real resets."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import struct
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import ssl
    from collections.abc import Mapping

Json = dict[str, Any]
HEAD = 64 * 1024
"""The longest head of a request that is read, in bytes."""


@dataclass(frozen=True)
class Request:
    """One request, read to its end. Header names are in lower case."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    @property
    def message(self) -> Json:
        """The body as JSON."""
        message: Json = json.loads(self.body)
        return message


class Exchange:
    """A request and the means to answer it, well or badly. Once ended, nothing more is written."""

    def __init__(self, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.request = request
        self.keeps = True  # the connection can carry another request afterwards
        self.answered = False
        self._reader = reader
        self._writer = writer

    async def reply(
        self,
        status: int,
        body: bytes = b"",
        *,
        type: str | None = "application/json",
        headers: Mapping[str, str] | None = None,
        length: int | None = None,
    ) -> None:
        """A whole answer. `length` is what the header says where that is to be a lie."""
        given = {"Content-Length": str(len(body) if length is None else length)}
        if type is not None and body:
            given["Content-Type"] = type
        await self.head(status, given | dict(headers or {}))
        await self.raw(body)

    async def json(
        self, message: Json, *, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> None:
        await self.reply(status, encode(message), headers=headers)

    async def head(self, status: int, headers: Mapping[str, str]) -> None:
        """Status line and headers, as they are."""
        reason = HTTPStatus(status).phrase if status in set(HTTPStatus) else "Odd"
        lines = [f"HTTP/1.1 {status} {reason}", *(f"{name}: {value}" for name, value in headers.items())]
        self.answered = True
        await self.raw("\r\n".join([*lines, "", ""]).encode("latin-1"))

    async def stream(self, headers: Mapping[str, str] | None = None, *, status: int = 200) -> None:
        """Begin an event stream, in chunks."""
        given = {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked"}
        await self.head(status, given | dict(headers or {}))

    async def event(
        self,
        message: Json | None,
        *,
        id: str | None = None,
        name: str | None = "message",
        retry: int | None = None,
    ) -> None:
        """One event, as it should be. None: without data."""
        lines = [] if name is None else [f"event: {name}"]
        lines += [] if id is None else [f"id: {id}"]
        lines += [] if retry is None else [f"retry: {retry}"]
        lines += [f"data: {'' if message is None else encode(message).decode('utf-8', 'surrogatepass')}"]
        await self.chunk("\n".join([*lines, "", ""]).encode("utf-8", "surrogatepass"))

    async def chunk(self, data: bytes) -> None:
        await self.raw(b"%x\r\n%s\r\n" % (len(data), data))

    async def end(self) -> None:
        """The end of what was sent in chunks."""
        await self.raw(b"0\r\n\r\n")

    async def raw(self, data: bytes) -> None:
        with contextlib.suppress(ConnectionError):
            self._writer.write(data)
            await self._writer.drain()

    @property
    def closing(self) -> bool:
        """Whether the connection is at its end."""
        return self._writer.is_closing() or self._reader.at_eof()

    def cut(self) -> None:
        """Close the connection in an orderly way, whatever was left to say."""
        self.answered, self.keeps = True, False
        self._writer.close()

    def reset(self) -> None:
        """Close the connection by a real RST."""
        self.answered, self.keeps = True, False
        own: socket.socket = self._writer.get_extra_info("socket")
        own.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()

    async def left(self) -> None:
        """Return once the client has closed the connection. Nothing may be asked on it meanwhile."""
        self.keeps = False
        with contextlib.suppress(ConnectionError):
            while await self._reader.read(1024):
                continue


Handler = Callable[[Exchange], Awaitable[None]]


class HttpServer:
    """Listens on a loopback port of its own and gives each request to the handler."""

    def __init__(self, handler: Handler) -> None:
        self.handler = handler
        self.port = 0
        self.connections = 0  # that were ever accepted
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self, *, port: int = 0, tls: ssl.SSLContext | None = None) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", port, ssl=tls, limit=HEAD)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Stop listening and drop every connection."""
        if self._server is not None:
            self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def open(self) -> int:
        """Connections that stand now."""
        return len(self._tasks)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        try:
            while (request := await read(reader)) is not None:
                exchange = Exchange(request, reader, writer)
                await self.handler(exchange)
                if not exchange.keeps:
                    break
        except (ConnectionError, asyncio.CancelledError):
            pass  # the client is gone, or we are told to stop
        finally:
            self._tasks.discard(task)
            writer.close()


async def read(reader: asyncio.StreamReader) -> Request | None:
    """The next request; None at the end of the connection."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    method, target, _ = first.split(" ")
    pairs = (line.partition(":") for line in lines)
    headers = {name.lower(): value.strip() for name, _, value in pairs}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Request(method, target, headers, body)


def encode(message: Json) -> bytes:
    return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
