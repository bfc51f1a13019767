"""A well-behaved MCP server by HTTP, of every revision: what the faulty one is with no fault switched on.

It runs within the test, so that a test can look at what it holds. `arguments` name variants of a mode; `sse`
among them makes it answer by event streams. Beside `/mcp` it offers the transport of 2024-11-05 at `/sse`.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from tests.faults.bench import Journal
from tests.faults.http.server import Exchange, HttpServer, Json
from tests.faults.peer import HANDSHAKE, MODERN, PREFIX, RpcError, complete, text

if TYPE_CHECKING:
    from types import TracebackType

Tool = Callable[["Call"], Awaitable["Json | None"]]
Method = Callable[[Json], Json]
ACCEPTED = 202


@dataclass(frozen=True)
class Notes(Journal):
    """A journal in memory, with every request among its lines."""

    path: Path = Path()
    kept: list[dict[str, Any]] = field(default_factory=list)

    def lines(self) -> list[dict[str, Any]]:
        return self.kept


class Call:
    """One `tools/call` under way."""

    def __init__(self, peer: HttpPeer, exchange: Exchange, message: Json) -> None:
        self.peer = peer
        self.exchange = exchange
        self.id = message["id"]
        self.arguments: Json = message["params"].get("arguments", {})
        self.meta: Json = message["params"].get("_meta", {})
        self.cancelled = asyncio.Event()

    def answer(self, result: Json) -> Json:
        """The message that would answer it well."""
        return {"jsonrpc": "2.0", "id": self.id, "result": complete(result)}

    def progress(self, progress: float, total: float | None = None, message: str = "") -> Json:
        """The message that reports progress."""
        params: Json = {"progressToken": self.meta["progressToken"], "progress": progress, "message": message}
        params |= {} if total is None else {"total": total}
        return {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}


class HttpPeer:
    """The server. A mode replaces what it wants to break: `handle`, `take`, `methods`, tools."""

    def __init__(self, *arguments: str) -> None:
        self.arguments = arguments
        self.streams = "sse" in arguments
        self.eras = {"legacy", "modern"}
        self.path = "/mcp"
        self.sessions: set[str] = set()
        self.notes = Notes()
        self.tools: list[Json] = []
        self.handlers: dict[str, Tool] = {}
        self.calls: dict[Any, Call] = {}
        self.listeners: list[Exchange] = []
        self.methods: dict[str, Method] = {
            "initialize": self.initialize,
            "server/discover": self.discover,
            "ping": lambda _: {},
            "tools/list": self.list_tools,
        }
        self.handle: Callable[[Exchange], Awaitable[None]] = self.route
        self.take: Callable[[Exchange, Json], Awaitable[None]] = self.post
        self.answer: Callable[[Exchange, Json], Awaitable[None]] = self.put
        self.notified: Callable[[Exchange, Json], Awaitable[None]] = self.accept
        self.get: Callable[[Exchange], Awaitable[None]] = self.open_stream
        self.server = HttpServer(self._heard)
        self.scheme = "http"
        self.tool("echo", echo)

    async def __aenter__(self) -> Self:
        await self.server.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.server.stop()

    @property
    def base(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.server.port}"

    @property
    def url(self) -> str:
        return self.base + self.path

    # What a mode uses

    def tool(self, name: str, handler: Tool, schema: Json | None = None, **definition: Any) -> None:
        """Offer one more tool, or offer it differently."""
        self.tools = [tool for tool in self.tools if tool["name"] != name]
        self.tools.append({"name": name, "inputSchema": schema or {"type": "object"}, **definition})
        self.handlers[name] = handler

    async def put(self, exchange: Exchange, message: Json) -> None:
        """Answer well: as JSON, or as the one event of a stream."""
        if not self.streams:
            await exchange.json(message)
            return
        await exchange.stream()
        await exchange.event(message)
        await exchange.end()

    async def tools_changed(self) -> None:
        """Tell everybody who listens."""
        notice = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
        for listener in self.listeners:
            params: Json = {}
            if listener.request.method == "POST":
                params = {"_meta": {PREFIX + "subscriptionId": listener.request.message["id"]}}
            await listener.event(notice | {"params": params})

    # HTTP

    async def _heard(self, exchange: Exchange) -> None:
        request = exchange.request
        line: Json = {"asked": request.method, "path": request.target, "headers": request.headers}
        if request.body:
            line["heard"] = request.message
        self.notes.kept.append(line)
        await self.handle(exchange)
        if not exchange.answered:
            exchange.cut()

    async def route(self, exchange: Exchange) -> None:
        request = exchange.request
        if request.path == self.path and request.method == "POST":
            await self.take(exchange, request.message)
        elif request.path == self.path and request.method == "DELETE":
            self.sessions.discard(request.headers.get("mcp-session-id", ""))
            await exchange.reply(200)
        elif request.path == self.path and request.method == "GET":
            await self.get(exchange)
        else:
            await exchange.reply(404, b"Not Found", type="text/plain")

    async def open_stream(self, exchange: Exchange) -> None:
        """The stream on which a server of the handshake eras says what nobody has asked for."""
        if exchange.request.headers.get("mcp-session-id") not in self.sessions:
            await exchange.reply(405, headers={"Allow": "POST"})
            return
        await exchange.stream()
        self.listeners.append(exchange)
        try:
            await exchange.left()
        finally:
            self.listeners.remove(exchange)

    # The protocol

    async def post(self, exchange: Exchange, message: Json) -> None:
        method = message.get("method")
        session = exchange.request.headers.get("mcp-session-id")
        if session is not None and session not in self.sessions:
            await exchange.json(refusal(None, -32001, "Session not found"), status=404)
        elif "id" not in message or method is None:
            await self.notified(exchange, message)
        else:
            try:
                self.check_era(exchange, message)
                await self.serve(exchange, message)
            except RpcError as error:
                body = {"jsonrpc": "2.0", "id": message["id"], "error": error.body}
                await exchange.json(body, status=400 if error.body["code"] in BAD else 200)

    async def accept(self, exchange: Exchange, message: Json) -> None:
        """Take a notification."""
        if message.get("method") == "notifications/cancelled":
            call = self.calls.get(message["params"]["requestId"])
            if call is not None:
                call.cancelled.set()
        await exchange.reply(ACCEPTED)

    async def serve(self, exchange: Exchange, message: Json) -> None:
        method = message["method"]
        if method == "tools/call":
            await self.call(exchange, message)
        elif method == "subscriptions/listen":
            await self.listen(exchange, message)
        elif method in self.methods:
            result = self.methods[method](message)
            headers = {}
            if method == "initialize":
                session = uuid.uuid4().hex
                self.sessions.add(session)
                headers["Mcp-Session-Id"] = session
            elif modern(message):
                result = complete(result)
            answer = {"jsonrpc": "2.0", "id": message["id"], "result": result}
            if headers:
                await exchange.json(answer, headers=headers)
            else:
                await self.answer(exchange, answer)
        else:
            raise RpcError(-32601, f"Method not found: {method}")

    def check_era(self, exchange: Exchange, message: Json) -> None:
        """Hold requests to the rules of their era."""
        headers, method = exchange.request.headers, message["method"]
        if method == "initialize":
            if "legacy" not in self.eras:
                raise RpcError(-32022, "Unsupported protocol version", {"supported": [MODERN]})
            return
        if modern(message) and "modern" in self.eras:
            meta = message["params"]["_meta"]
            version = meta[PREFIX + "protocolVersion"]
            if version != MODERN:
                raise RpcError(-32022, "Unsupported protocol version", {"supported": [MODERN]})
            if PREFIX + "clientCapabilities" not in meta:
                raise RpcError(-32602, "the request carries no clientCapabilities")
            if headers.get("mcp-protocol-version") != version or headers.get("mcp-method") != method:
                raise RpcError(-32020, "the headers do not fit the body")
            return
        if headers.get("mcp-session-id") not in self.sessions:
            raise RpcError(-32600, "Bad Request: Missing session ID")

    def initialize(self, message: Json) -> Json:
        asked = message["params"]["protocolVersion"]
        return {
            "protocolVersion": asked if asked in HANDSHAKE else HANDSHAKE[-1],
            "capabilities": {"tools": {"listChanged": True}},
            "serverInfo": {"name": "faulty", "version": "1"},
        }

    def discover(self, _: Json) -> Json:
        return {
            "supportedVersions": [MODERN],
            "capabilities": {"tools": {"listChanged": True}},
            "ttlMs": 300_000,
            "cacheScope": "private",
            "_meta": {PREFIX + "serverInfo": {"name": "faulty", "version": "1"}},
        }

    def list_tools(self, message: Json) -> Json:
        return {"tools": self.tools} | (
            {"ttlMs": 300_000, "cacheScope": "private"} if modern(message) else {}
        )

    async def listen(self, exchange: Exchange, message: Json) -> None:
        await exchange.stream()
        tag = {PREFIX + "subscriptionId": message["id"]}
        params = {"notifications": message["params"]["notifications"], "_meta": tag}
        acknowledged = "notifications/subscriptions/acknowledged"
        await exchange.event({"jsonrpc": "2.0", "method": acknowledged, "params": params})
        self.listeners.append(exchange)
        try:
            await exchange.left()
        finally:
            self.listeners.remove(exchange)

    async def call(self, exchange: Exchange, message: Json) -> None:
        params = message["params"]
        if params["name"] not in self.handlers:
            raise RpcError(-32602, f"Unknown tool: {params['name']}")
        call = self.calls[message["id"]] = Call(self, exchange, message)
        self.notes.kept.append({"call": params["name"], "arguments": call.arguments})
        result = await self.handlers[params["name"]](call)
        if result is not None:
            await self.answer(exchange, call.answer(result))


BAD = {-32600, -32602, -32020, -32021, -32022}
"""Errors that come with status 400."""


def modern(message: Json) -> bool:
    """Whether a request speaks the modern way."""
    return PREFIX + "protocolVersion" in message.get("params", {}).get("_meta", {})


def refusal(id: Any, code: int, words: str) -> Json:
    return {"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": words}}


async def echo(call: Call) -> Json:
    """Gives its arguments back, as JSON in a text block."""
    return text(json.dumps(call.arguments, ensure_ascii=False))
