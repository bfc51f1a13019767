"""Answers to one request that are wrong, odd, unfinished, or none."""

from __future__ import annotations

import asyncio
import gzip
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from tests.faults.http.modes.mode import acts, mode
from tests.faults.http.peer import refusal
from tests.faults.http.server import encode
from tests.faults.peer import text

if TYPE_CHECKING:
    from tests.faults.http.peer import Call, HttpPeer
    from tests.faults.http.server import Exchange, Json

LOGIN = b"<!DOCTYPE html><html><head><title>Sign in</title></head><body><form>Password</form></body></html>"
RETRY_AFTER = {429: "7", 503: "Wed, 21 Oct 2037 07:28:00 GMT"}


@mode
def plain(peer: HttpPeer) -> None:
    """Nothing wrong at all."""


@mode
def status(peer: HttpPeer) -> None:
    """A server, or a proxy before it, that answers a call with the status it is asked for."""

    @acts(peer)
    async def act(call: Call) -> None:
        code = int(call.arguments["code"])
        headers = {"X-Request-Id": f"req-{code}"}
        if code in RETRY_AFTER:
            headers["Retry-After"] = RETRY_AFTER[code]
        if code in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
            headers["WWW-Authenticate"] = 'Bearer error="insufficient_scope", scope="admin"'
        body = call.arguments.get("body", f"it went wrong: {code} " + "x" * 10_000)
        await call.exchange.reply(code, body.encode(), type="text/plain", headers=headers)


@mode
def broken_off(peer: HttpPeer) -> None:
    """A server that dies under a call: before or while it answers, by a RST or in good order."""

    @acts(peer)
    async def act(call: Call) -> None:
        how, exchange = call.arguments["how"], call.exchange
        whole = encode(call.answer(text("x" * 1000)))
        if "headers" in how:
            await exchange.raw(b"HTTP/1.1 200 OK\r\nContent-Ty")
        if "body" in how:
            await exchange.reply(200, whole[:500], length=len(whole))
        if "chunk" in how:
            await exchange.head(200, {"Content-Type": "application/json", "Transfer-Encoding": "chunked"})
            await exchange.raw(b"%x\r\n%s" % (len(whole), whole[:500]))
        if "event" in how:
            await exchange.stream()
            await exchange.chunk(b"event: message\ndata: " + whole[:500])
        if how.startswith("reset"):
            exchange.reset()
        else:
            exchange.cut()


@mode
def hangs(peer: HttpPeer) -> None:
    """A tool that never answers, without headers or with those of a stream; it notes when it is left."""

    @acts(peer)
    async def act(call: Call) -> None:
        if call.arguments.get("stream"):
            await call.exchange.stream()
        await call.exchange.left()
        peer.notes.kept.append({"left": call.id})


@mode
def wrong_ids(peer: HttpPeer) -> None:
    """Answers with another id than was asked for, or with none, as JSON and as events."""

    @acts(peer)
    async def act(call: Call) -> None:
        kind = call.arguments["kind"]
        messages: dict[str, Json] = {
            "other": call.answer(text("whose?")) | {"id": 987_654},
            "null": refusal(None, -32700, "Parse error"),
            "text": refusal(str(call.id), -32000, "an id as text"),
            "no_id": {"jsonrpc": "2.0", "error": {"code": -32000, "message": "no id"}},
        }
        await peer.answer(call.exchange, messages[kind])


@mode
def accepted(peer: HttpPeer) -> None:
    """A server that only takes note of a request: 202, or 204; some give the answer by the other stream."""

    @acts(peer)
    async def act(call: Call) -> None:
        await call.exchange.reply(int(call.arguments["code"]))
        for listener in peer.listeners if "later" in peer.arguments else []:
            await listener.event(call.answer(text("later")))

    async def no_stream(exchange: Exchange) -> None:
        await exchange.reply(405, headers={"Allow": "POST"})

    if "later" not in peer.arguments:
        peer.get = no_stream


@mode
def content_types(peer: HttpPeer) -> None:
    """Answers whose content type is missing or wrong, which are JSON all the same."""

    async def answer(exchange: Exchange, message: Json) -> None:
        kind: str | None = peer.arguments[0]
        await exchange.reply(200, encode(message), type=None if kind == "none" else kind)

    peer.answer = answer


@mode
def login_page(peer: HttpPeer) -> None:
    """A proxy that answers with its own page where the server should: at once, or from some call on."""
    state = {"on": "at-once" in peer.arguments}
    inner = peer.handle

    async def handle(exchange: Exchange) -> None:
        if state["on"]:
            await exchange.reply(200, LOGIN, type="text/html; charset=utf-8")
        else:
            await inner(exchange)

    @acts(peer)
    async def act(call: Call) -> None:
        await call.exchange.reply(200, LOGIN, type="text/html")

    peer.handle = handle


@mode
def nonsense(peer: HttpPeer) -> None:
    """Bodies that are no message: empty, cut, no JSON, JSON of another kind."""
    bodies: dict[str, bytes] = {
        "empty": b"",
        "cut": b'{"jsonrpc": "2.0", "id": 1, "resu',
        "words": b"Internal confusion",
        "number": b"5",
        "list": b"[]",
        "null": b"null",
        "bytes": b"\xff\xfe\x00\x01",
    }

    @acts(peer)
    async def act(call: Call) -> None:
        await call.exchange.reply(200, bodies[call.arguments["kind"]])


@mode
def too_much(peer: HttpPeer) -> None:
    """More than anybody wants: bodies beyond the limit, without an end, packed small, and huge headers."""
    bomb = gzip.compress(b" " * 30_000_000, compresslevel=1)

    @acts(peer)
    async def act(call: Call) -> None:
        kind, exchange = call.arguments["kind"], call.exchange
        if kind == "body":
            await exchange.json(call.answer(text("x" * 3_000_000)))
        elif kind == "bomb":
            await exchange.reply(200, bomb, headers={"Content-Encoding": "gzip"})
        elif kind == "headers":
            await exchange.reply(200, b"{}", headers={f"X-{n}": "x" * 1000 for n in range(2000)})
        elif kind == "endless body":
            await exchange.head(200, {"Content-Type": "application/json", "Transfer-Encoding": "chunked"})
            await _forever(exchange, b" " * 65_536)
        elif kind == "endless event":
            await exchange.stream()
            await exchange.chunk(b"data: ")
            await _forever(exchange, b"x" * 65_536)


async def _forever(exchange: Exchange, data: bytes) -> None:
    """Write until the client leaves; a bound, should it never."""
    for _ in range(4000):
        await exchange.chunk(data)
        if exchange.closing:
            return


@mode
def drip(peer: HttpPeer) -> None:
    """A server that keeps a call alive by a byte now and then, and never comes to the point."""

    @acts(peer)
    async def act(call: Call) -> None:
        exchange = call.exchange
        if call.arguments["kind"] == "comments":
            await exchange.stream()
            piece = b": still here\n\n"
        else:
            await exchange.head(200, {"Content-Type": "application/json", "Transfer-Encoding": "chunked"})
            piece = b" "
        gone = asyncio.ensure_future(exchange.left())
        while not gone.done():
            await exchange.chunk(piece)
            await asyncio.wait([gone], timeout=0.02)
        peer.notes.kept.append({"left": call.id})


@mode
def packed(peer: HttpPeer) -> None:
    """Answers that are packed with gzip, as many proxies do."""

    async def answer(exchange: Exchange, message: Json) -> None:
        await exchange.reply(200, gzip.compress(encode(message)), headers={"Content-Encoding": "gzip"})

    peer.answer = answer


@mode
def odd_results(peer: HttpPeer) -> None:
    """Results that are missing, null or of another kind."""
    results: dict[str, Any] = {"null": None, "list": [], "text": "words", "number": 5}

    @acts(peer)
    async def act(call: Call) -> None:
        kind = call.arguments["kind"]
        message: Json = {"jsonrpc": "2.0", "id": call.id}
        if kind != "missing":
            message["result"] = results[kind]
        await peer.answer(call.exchange, message)
