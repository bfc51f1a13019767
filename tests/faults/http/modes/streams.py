"""Event streams, written in every manner, legal and not; and the transport that is made of them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tests.faults.http.modes.mode import acts, mode
from tests.faults.http.peer import refusal
from tests.faults.http.server import encode
from tests.faults.peer import text

if TYPE_CHECKING:
    from tests.faults.http.peer import Call, HttpPeer
    from tests.faults.http.server import Exchange, Json

FRAMES: dict[str, tuple[bytes, ...]] = {
    # What may be written, around the data D.
    "plain": (b"data: D\n\n",),
    "no space": (b"data:D\n\n",),
    "named": (b"event: message\ndata: D\n\n",),
    "crlf": (b"event: message\r\ndata: D\r\n\r\n",),
    "cr": (b"event: message\rdata: D\r\r",),
    "cr cut": (b"data: D\r", b"\n\r", b"\n"),
    "bom": (b"\xef\xbb\xbfdata: D\n\n",),
    "comments": (b": hello\n\n:\ndata: D\n: between\n\n",),
    "lines": (b"data: {\ndata: D1\ndata: }\n\n",),
    "other events": (b"event: ping\ndata: {}\n\nevent: endpoint\ndata: /x\n\ndata: D\n\n",),
    "empty data": (b"id: 1\ndata:\n\ndata\n\ndata: D\n\n",),
    "unknown fields": (b"foo: bar\nretry: soon\nid: a\x00b\ndata: D\n\n",),
    "one by one": tuple(bytes([byte]) for byte in b"event: message\ndata: D\n\n"),
    "no final newline": (b"data: D\n",),
}

BROKEN = {
    "words": b"data: not json\n\ndata: D\n\n",
    "number": b"data: 5\n\ndata: D\n\n",
    "bytes": b"data: \xff\xfe\n\ndata: D\n\n",
}

UNFINISHED = {"cut": b"data: D", "nothing": b"", "comment": b": soon\n\n", "other": b'data: {"jsonrpc"'}


@mode
def frames(peer: HttpPeer) -> None:
    """A stream whose one answer is written in the manner that is asked for."""

    @acts(peer)
    async def act(call: Call) -> None:
        await call.exchange.stream()
        data = encode(call.answer(text("arrived")))
        for piece in FRAMES[call.arguments["kind"]]:
            await call.exchange.chunk(piece.replace(b"D1", data[1:-1]).replace(b"D", data))
            await asyncio.sleep(0)
        await call.exchange.end()


@mode
def broken_events(peer: HttpPeer) -> None:
    """A stream in which an event that is no message stands before the answer."""

    @acts(peer)
    async def act(call: Call) -> None:
        await call.exchange.stream()
        data = encode(call.answer(text("arrived")))
        await call.exchange.chunk(BROKEN[call.arguments["kind"]].replace(b"D", data))
        await call.exchange.end()


@mode
def unfinished(peer: HttpPeer) -> None:
    """A stream that ends, in good order, before the answer is in it."""

    @acts(peer)
    async def act(call: Call) -> None:
        await call.exchange.stream()
        data = encode(call.answer(text("never")))[:-20]
        if piece := UNFINISHED[call.arguments["kind"]].replace(b"D", data):
            await call.exchange.chunk(piece)
        await call.exchange.end()


@mode
def resumes(peer: HttpPeer) -> None:
    """A stream that ends after an event with an id; the answer is given to whoever asks from there on."""
    waiting: dict[str, Json] = {}
    inner = peer.get

    @acts(peer)
    async def act(call: Call) -> None:
        key = f"event-{call.id}"
        waiting[key] = call.answer(text("resumed"))
        await call.exchange.stream()
        await call.exchange.event(None, id=key, retry=30)
        if call.arguments.get("how") == "reset":
            call.exchange.reset()
        elif call.arguments.get("how") == "cut":
            call.exchange.cut()
        else:
            await call.exchange.end()

    async def handle(exchange: Exchange) -> None:
        last = exchange.request.headers.get("last-event-id", "")
        if exchange.request.method == "GET" and last in waiting:
            await exchange.stream()
            await exchange.event(waiting.pop(last), id=f"{last}-2")
            await exchange.end()
        elif exchange.request.method == "GET" and exchange.request.path == peer.path:
            await inner(exchange)
        else:
            await peer.route(exchange)

    peer.handle = handle


@mode
def large_events(peer: HttpPeer) -> None:
    """A single event of as many bytes as asked for."""

    @acts(peer)
    async def act(call: Call) -> None:
        await call.exchange.stream()
        await call.exchange.event(call.answer(text("x" * int(call.arguments["size"]))))
        await call.exchange.end()


@mode
def interleaved(peer: HttpPeer) -> None:
    """A stream in which notifications, and requests to the host, stand before the answer."""

    @acts(peer)
    async def act(call: Call) -> None:
        await call.exchange.stream()
        for n in range(50):
            params = {"level": "info", "data": f"line {n}"}
            await call.exchange.event({"jsonrpc": "2.0", "method": "notifications/message", "params": params})
        await call.exchange.event({"jsonrpc": "2.0", "id": "p", "method": "ping"})
        await call.exchange.event(call.answer(text("arrived")))
        await call.exchange.end()


NAMED = {
    "path": "/messages",
    "relative": "messages",
    "prefix": "/proxied/messages",
    "hidden": "/messages",
    "whole": "BASE/messages",
    "away": "AWAY/messages",
    "wrong": "/nowhere",
}


class OldSse:
    """HTTP with SSE: answers come by the stream of the session whose address was posted to."""

    def __init__(self, peer: HttpPeer, kind: str) -> None:
        self.peer, self.kind = peer, kind
        self.prefix = "/proxied" if kind in {"prefix", "hidden", "relative"} else ""
        self.lines: dict[str, Exchange] = {}

    async def handle(self, exchange: Exchange) -> None:
        request = exchange.request
        if request.method == "GET" and request.path == self.peer.path:
            await self.open(exchange)
        elif request.method == "POST" and request.path == f"{self.prefix}/messages":
            await self.post(exchange)
        elif request.method == "POST" and request.path == self.peer.path:
            await exchange.reply(405, headers={"Allow": "GET"})
        else:
            await exchange.reply(404, b"Not Found", type="text/plain")

    async def open(self, exchange: Exchange) -> None:
        session = f"s{len(self.peer.notes.kept)}"
        self.lines[session] = exchange
        away = self.peer.base.replace("127.0.0.1", "localhost")
        where = NAMED[self.kind].replace("BASE", self.peer.base).replace("AWAY", away)
        await exchange.stream()
        await exchange.chunk(f"event: endpoint\ndata: {where}?session_id={session}\n\n".encode())
        await exchange.left()
        del self.lines[session]

    async def post(self, exchange: Exchange) -> None:
        line, message = self.line(exchange), exchange.request.message
        if line is None:
            await exchange.reply(404, b"no such session", type="text/plain")
            return
        await exchange.reply(202)
        method, methods = message.get("method"), self.peer.methods
        if "id" not in message or method is None:
            return
        if method == "tools/call":
            await self.peer.call(exchange, message)
        elif method in methods and method != "server/discover":
            await line.event({"jsonrpc": "2.0", "id": message["id"], "result": methods[method](message)})
        else:
            await line.event(refusal(message["id"], -32601, f"Method not found: {method}"))

    def line(self, exchange: Exchange) -> Exchange | None:
        return self.lines.get(exchange.request.target.partition("session_id=")[2])

    async def answer(self, exchange: Exchange, message: Json) -> None:
        line = self.line(exchange)
        if line is not None:
            await line.event(message)


@mode
def old_sse(peer: HttpPeer) -> None:
    """A server of 2024-11-05: an event stream, which names where to post; the argument says how."""
    old = OldSse(peer, peer.arguments[0])
    peer.eras = {"legacy"}
    peer.path = f"{old.prefix}/sse"
    peer.handle = old.handle
    peer.answer = old.answer

    async def drop(_: Call) -> None:
        for line in old.lines.values():
            line.cut()

    peer.tool("drop", drop)
