"""Sessions, redirects, notifications and revisions: how a connection comes about, and how it is lost."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tests.faults.http.modes.mode import acts, mode
from tests.faults.http.peer import refusal
from tests.faults.http.server import encode
from tests.faults.peer import RpcError, text

if TYPE_CHECKING:
    from tests.faults.http.peer import Call, HttpPeer
    from tests.faults.http.server import Exchange, Json


@mode
def forgetful(peer: HttpPeer) -> None:
    """A server that was restarted behind its address: `forget` ends every session, `always` each at once."""

    async def forget(_: Call) -> Json:
        peer.sessions.clear()
        return text("who are you?")

    @acts(peer)
    async def act(_: Call) -> Json:
        return text("done")

    if "always" in peer.arguments:
        inner = peer.take

        async def take(exchange: Exchange, message: Json) -> None:
            if message.get("method") == "tools/call" and message["params"]["name"] == "act":
                peer.sessions.clear()
            await inner(exchange, message)

        peer.take = take
    peer.tool("forget", forget)


@mode
def redirects(peer: HttpPeer) -> None:
    """A server behind an address that sends one elsewhere: to a slash, to another origin, in circles."""
    kind, code = peer.arguments[0], int(peer.arguments[1])
    peer.path = "/mcp/"
    inner = peer.handle
    targets = {
        "slash": "/mcp/",
        "whole": "BASE/mcp/",
        "away": "AWAY/mcp/",
        "circle": "/mcp",
        "nowhere": "",
    }

    async def handle(exchange: Exchange) -> None:
        if exchange.request.path == "/mcp":
            away = peer.base.replace("127.0.0.1", "localhost")
            target = targets[kind].replace("BASE", peer.base).replace("AWAY", away)
            await exchange.reply(code, headers={"Location": target} if target else {})
        else:
            await inner(exchange)

    peer.handle = handle


@mode
def notices(peer: HttpPeer) -> None:
    """A server that answers notifications in a way of its own."""
    kind = peer.arguments[0]

    async def notified(exchange: Exchange, message: Json) -> None:
        match kind:
            case "200json":
                await exchange.json({"jsonrpc": "2.0", "result": {}})
            case "200null":
                await exchange.reply(200, b"null")
            case "200sse":
                await exchange.stream()
                await exchange.end()
            case _:
                await exchange.reply(int(kind))

    peer.notified = notified


@mode
def one_era(peer: HttpPeer) -> None:
    """A server that speaks one era only; the second argument says how it turns down the other."""
    era, how = peer.arguments
    peer.eras = {era}
    inner = peer.take

    async def take(exchange: Exchange, message: Json) -> None:
        foreign = (message.get("method") == "server/discover") if era == "legacy" else False
        match how if foreign else "":
            case "":
                await inner(exchange, message)
            case "-32601":
                await exchange.json(refusal(message["id"], -32601, "Method not found"))
            case "html":
                await exchange.reply(400, b"<html>Bad Request</html>", type="text/html")
            case code:
                await exchange.reply(int(code), b"no", type="text/plain")

    peer.take = take


@mode
def at_start(peer: HttpPeer) -> None:
    """A server that fails whatever it is asked first, with a status, silence or a broken connection."""
    kind = peer.arguments[0]

    async def handle(exchange: Exchange) -> None:
        match kind:
            case "silent":
                await exchange.left()
            case "reset":
                exchange.reset()
            case "closed":
                exchange.cut()
            case code:
                await exchange.reply(int(code), b"out of order", type="text/plain")

    peer.handle = handle


@mode
def slow_tools(peer: HttpPeer) -> None:
    """Tools that take their time: `act` is answered after `release`, or when its call is cancelled."""
    released = asyncio.Event()

    @acts(peer)
    async def act(call: Call) -> Json:
        events = (call.cancelled.wait(), released.wait(), call.exchange.left())
        waits = [asyncio.ensure_future(event) for event in events]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()
        return text("released" if released.is_set() else "too late")

    async def release(_: Call) -> Json:
        released.set()
        return text("ok")

    peer.tool("release", release)


@mode
def progress(peer: HttpPeer) -> None:
    """A long tool that reports progress in its stream: so many times, with so many seconds in between."""

    @acts(peer)
    async def act(call: Call) -> None:
        times, pause = int(call.arguments["times"]), float(call.arguments["pause"])
        await call.exchange.stream()
        left = asyncio.ensure_future(call.exchange.left())
        for n in range(times):
            await asyncio.wait([left], timeout=pause)
            if left.done() or call.cancelled.is_set():
                break
            await call.exchange.event(call.progress(n + 1, times, f"part {n + 1}"))
        left.cancel()
        await call.exchange.event(call.answer(text("with a token")))
        await call.exchange.end()


@mode
def changing(peer: HttpPeer) -> None:
    """A server that gains tools and says so to those who listen; told to, it fails to give its list."""
    broken = asyncio.Event()

    def list_tools(message: Json) -> Json:
        if broken.is_set():
            raise RpcError(-32603, "the list is broken")
        return peer.list_tools(message)

    async def grow(call: Call) -> Json:
        for n in range(int(call.arguments.get("times", 1))):
            peer.tool(f"grown{n}", grow)
            await peer.tools_changed()
        return text("ok")

    async def break_list(_: Call) -> Json:
        broken.set()
        await peer.tools_changed()
        return text("ok")

    peer.methods["tools/list"] = list_tools
    peer.tool("grow", grow)
    peer.tool("break_list", break_list)


@mode
def upstream_errors(peer: HttpPeer) -> None:
    """Tools whose own errors speak of servers that cannot be reached and of credentials that are refused."""

    @acts(peer)
    async def act(_: Call) -> Json:
        return text("HTTP 401 from upstream: the server is unreachable", isError=True)


@mode
def wants_a_token(peer: HttpPeer) -> None:
    """A server that lets nobody in without the bearer token that the argument names."""
    inner = peer.handle

    async def handle(exchange: Exchange) -> None:
        if exchange.request.headers.get("authorization") == f"Bearer {peer.arguments[0]}":
            await inner(exchange)
        else:
            headers = {"WWW-Authenticate": 'Bearer error="invalid_token"'}
            await exchange.reply(401, b"no", type="text/plain", headers=headers)

    peer.handle = handle


@mode
def headers_differ(peer: HttpPeer) -> None:
    """A server that changed which arguments it wants in headers, and refuses calls made by the old list."""
    wanted = {"now": False}
    inner = peer.take

    async def take(exchange: Exchange, message: Json) -> None:
        calls_act = message.get("method") == "tools/call" and message["params"]["name"] == "act"
        if calls_act:
            await announced(peer)
        missing = wanted["now"] and "mcp-param-region" not in exchange.request.headers
        if calls_act and missing:
            await exchange.reply(400, encode(refusal(message["id"], -32020, "Mcp-Param-Region is missing")))
        else:
            await inner(exchange, message)

    async def announced(peer: HttpPeer) -> None:
        wanted["now"] = True
        region = {"type": "string", "x-mcp-header": "Region"}
        peer.tool("act", act, {"type": "object", "properties": {"region": region}})

    async def act(call: Call) -> Json:
        return text(call.exchange.request.headers["mcp-param-region"])

    peer.tool("act", act, {"type": "object", "properties": {"region": {"type": "string"}}})
    peer.take = take
