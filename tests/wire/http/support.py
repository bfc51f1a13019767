"""A server by HTTP that does to the byte what a test says, and sessions with it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Any, Self

import msgspec

from luthier.clock import SystemClock
from luthier.web import Reach
from luthier.wire.http import HttpClient, HttpTarget, Kind, Remembered, open_remote

if TYPE_CHECKING:
    import ssl

    from luthier.wire import Handlers, Session

BOUND = 20.0
"""Seconds that any single wait of a test may take."""

JSON = "application/json"
STREAM = "text/event-stream"
LEGACY = "2025-06-18"
TOOLS = [{"name": "echo", "inputSchema": {"type": "object"}}]


class Asked(msgspec.Struct):
    """A request as it came. `json` is its body, where that is JSON."""

    method: str
    path: str
    headers: dict[str, str]  # names in lower case
    body: bytes

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.body) if self.body else {}

    @property
    def rpc(self) -> str:
        """The method of the protocol, or that of HTTP."""
        found: str = self.json.get("method", self.method) if self.method == "POST" else self.method
        return found


class Answering:
    """The other side of one request."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def give(self, status: int = 200, body: Any = b"", kind: str = JSON, **headers: str) -> None:
        """A whole response."""
        data = body if isinstance(body, bytes) else msgspec.json.encode(body)
        self.head(status, kind, content_length=str(len(data)), **headers)
        self.writer.write(data)

    def head(self, status: int, kind: str = STREAM, **headers: str) -> None:
        lines = [f"HTTP/1.1 {status} Said"]
        lines += [f"Content-Type: {kind}"] if kind else []
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        self.writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())

    def begin(self, kind: str = STREAM, **headers: str) -> None:
        """The head of a response that comes in pieces."""
        self.head(200, kind, transfer_encoding="chunked", **headers)

    def piece(self, data: bytes) -> None:
        self.writer.write(b"%x\r\n%b\r\n" % (len(data), data))

    def event(self, message: Any, id: str | None = None, name: str = "") -> None:
        data = message if isinstance(message, bytes) else msgspec.json.encode(message)
        head = f"event: {name}\n" if name else ""
        head += f"id: {id}\n" if id is not None else ""
        self.piece(head.encode() + b"data: " + data + b"\n\n")

    def finish(self) -> None:
        self.writer.write(b"0\r\n\r\n")

    def cut(self) -> None:
        """End the connection here, after what was written."""
        self.writer.close()

    def reset(self) -> None:
        self.writer.transport.abort()

    async def gone(self) -> None:
        """Return when the client has gone away."""
        with contextlib.suppress(ConnectionError):
            await self.writer.drain()
            await self.reader.read(1)


Handler = Callable[[Asked, Answering], Awaitable[None] | None]


class Site:
    """`answer` is given each request; the default is a server of the old era with a tool `echo`."""

    def __init__(self, answer: Handler | None = None, *, tls: ssl.SSLContext | None = None) -> None:
        self._tls = tls
        self.asked: list[Asked] = []
        self.answer: Handler = answer or legacy
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self.port = 0

    @property
    def url(self) -> str:
        return f"{'http' if self._tls is None else 'https'}://127.0.0.1:{self.port}/mcp"

    def rpcs(self) -> list[str]:
        return [asked.rpc for asked in self.asked]

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._tls)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError), contextlib.closing(writer):
            while not writer.is_closing():
                asked = await _read(reader)
                self.asked.append(asked)
                done = self.answer(asked, Answering(reader, writer))
                if done is not None:
                    await done
                if not writer.is_closing():
                    await writer.drain()


async def _read(reader: asyncio.StreamReader) -> Asked:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    first, *lines = head.strip().split("\r\n")
    method, path, _ = first.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Asked(method, path, headers, body)


def result_of(asked: Asked, version: str = LEGACY) -> Any:
    """What a plain server of the old era answers; None to what wants no answer."""
    message = asked.json
    if "id" not in message:
        return None
    match message["method"]:
        case "initialize":
            result: Any = {
                "protocolVersion": version,
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "x"},
            }
        case "tools/list":
            result = {"tools": TOOLS}
        case "tools/call":
            result = text(str(message["params"]["arguments"].get("text", "")))
        case "ping":
            result = {}
        case other:
            return error(message["id"], -32601, f"no {other}")
    return {"jsonrpc": "2.0", "id": message["id"], "result": result}


def modern_result(asked: Asked, capabilities: Any = None) -> Any:
    message = asked.json
    if message["method"] == "server/discover":
        found = {"supportedVersions": ["2026-07-28"], "capabilities": capabilities or {"tools": {}}}
        return answer(message["id"], {**found, "resultType": "complete"})
    return result_of(asked)


def answer(id: Any, result: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "result": result}


def error(id: Any, code: int, message: str, data: Any = None) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message, "data": data}}


def text(said: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": said}]}


def legacy(asked: Asked, answering: Answering) -> None:
    """A server of the old era without a session and without a standing stream."""
    if asked.method != "POST":
        answering.give(405)
        return
    found = result_of(asked)
    if found is None:
        answering.give(202)
    else:
        answering.give(400 if asked.rpc == "server/discover" else 200, found)


def modern(asked: Asked, answering: Answering) -> None:
    answering.give(200, modern_result(asked))


def on_call(handler: Handler, otherwise: Handler = legacy) -> Handler:
    """Something of its own for calls, the rest as usual."""
    return lambda asked, answering: (handler if asked.rpc == "tools/call" else otherwise)(asked, answering)


async def bounded(awaitable: Awaitable[Any], seconds: float = BOUND) -> Any:
    async with asyncio.timeout(seconds):
        return await awaitable


def target_of(url: str, **fields: Any) -> HttpTarget:
    return HttpTarget(server="far", url=url, **{"reach": Reach.any, **fields})


@contextlib.asynccontextmanager
async def session_at(
    url: str,
    kind: Kind | Any = "http",
    *,
    pinned: str | None = None,
    remembered: Remembered | None = None,
    handlers: Handlers | None = None,
    timeout: float = BOUND,
    environ: dict[str, str] | None = None,
    **fields: Any,
) -> AsyncIterator[Session]:
    client = HttpClient(environ or {})
    try:
        remote = await bounded(
            open_remote(
                client,
                target_of(url, **fields),
                kind,
                clock=SystemClock(),
                timeout=timeout,
                pinned=pinned,
                remembered=remembered,
                handlers=handlers,
            )
        )
        try:
            yield remote.session
        finally:
            await bounded(remote.session.close())
    finally:
        await bounded(client.close())


async def call(session: Session, said: str = "hi", *, timeout: float = BOUND, **more: Any) -> str:
    """The text of one call's reply."""
    reply = await bounded(session.call_tool("echo", {"text": said}, timeout=timeout, **more))
    found: str = reply.blocks[0]["text"]
    return found


async def until(condition: Callable[[], object]) -> None:
    """Return once it holds."""
    async with asyncio.timeout(BOUND):
        while not condition():  # noqa: ASYNC110  (what is waited for has no event of its own)
            await asyncio.sleep(0.005)
