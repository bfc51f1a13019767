"""A well-behaved MCP server on pipes, of both eras: what the faulty one is with no fault switched on.

Plain Python; nothing of Luthier is in it, and little of the library: it is started some hundred times. Calls
run in threads of their own, so that a slow one holds up no other. Whatever happens is written to the journal,
a file of JSON lines that outlives the process: who started, what was heard, which calls ran.
"""

from __future__ import annotations

import json
import os
import sys
import threading

TYPE_CHECKING = False  # `typing` alone takes as long to import as all that is needed here
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Json = dict[str, Any]
    Tool = Callable[["Call"], Json | None]
    Method = Callable[[Json], Json | None]

HANDSHAKE = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN = "2026-07-28"
PREFIX = "io.modelcontextprotocol/"
JOURNAL = "FAULTY_JOURNAL"


class RpcError(Exception):
    """Makes the answer to a request a JSON-RPC error."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.body: Json = {"code": code, "message": message} | ({} if data is None else {"data": data})


class Call:
    """One `tools/call` under way."""

    def __init__(self, peer: Peer, message: Json) -> None:
        self.peer = peer
        self.id = message["id"]
        self.arguments: Json = message["params"].get("arguments", {})
        self.meta: Json = message["params"].get("_meta", {})
        self.cancelled = threading.Event()

    def progress(self, progress: float, total: float | None = None, message: str = "") -> None:
        """Report progress, if the caller gave a token for it."""
        if "progressToken" in self.meta:
            params: Json = {"progressToken": self.meta["progressToken"], "progress": progress}
            params |= {"message": message} | ({} if total is None else {"total": total})
            self.peer.notify("notifications/progress", params)


def text(words: str, **more: Any) -> Json:
    """A result of one text block."""
    return {"content": [{"type": "text", "text": words}], **more}


def complete(result: Json) -> Json:
    """The same result, marked the modern way as whole."""
    return {"resultType": "complete", **result}


class Peer:
    """The server. A mode replaces what it wants to break: `write`, `methods`, `rule`, and so on."""

    def __init__(self, arguments: list[str] | None = None) -> None:
        self.arguments = arguments or []
        self.eras = {"legacy", "modern"}
        self.versions = list(HANDSHAKE)
        self.tools: list[Json] = []
        self.handlers: dict[str, Tool] = {}
        self.methods: dict[str, Method] = {
            "initialize": self.initialize,
            "server/discover": self.discover,
            "subscriptions/listen": self.listen,
            "ping": lambda _: {},
            "tools/list": self.list_tools,
        }
        self.calls: dict[Any, Call] = {}
        self.answers: dict[Any, Json] = {}
        self.answered = threading.Condition()
        self.listeners: list[Any] = []
        self.handshake = False
        self.lock = threading.Lock()
        self.write: Callable[[Json], None] = self.put
        self.hear: Callable[[bytes], None] = self.take
        self.rule: Callable[[Json], None] = self.check_era
        self.unknown: Callable[[Json], None] = self.refuse
        self.at_eof: Callable[[], None] = lambda: None
        self.tool("echo", echo)
        self.tool("pid", lambda _: text(str(os.getpid())))

    # What a mode uses

    def tool(self, name: str, handler: Tool, schema: Json | None = None, **definition: Any) -> None:
        """Offer one more tool, or offer it differently."""
        self.tools = [tool for tool in self.tools if tool["name"] != name]
        self.tools.append({"name": name, "inputSchema": schema or {"type": "object"}, **definition})
        self.handlers[name] = handler

    def put(self, message: Json) -> None:
        """Write one message, as one should."""
        self.raw(encode(message) + b"\n")

    def raw(self, data: bytes) -> None:
        """Write bytes as they are."""
        with self.lock:
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()

    def notify(self, method: str, params: Json | None = None) -> None:
        self.write({"jsonrpc": "2.0", "method": method, "params": params or {}})

    def result(self, id: Any, result: Any) -> None:
        self.write({"jsonrpc": "2.0", "id": id, "result": result})

    def answer_to(self, call: Call, result: Json) -> Json:
        """The message that answers a call, for those who write it in their own way."""
        return {"jsonrpc": "2.0", "id": call.id, "result": complete(result)}

    def ask(self, id: str, method: str, params: Json | None = None) -> Json:
        """Ask the host something and wait for its answer."""
        self.write({"jsonrpc": "2.0", "id": id, "method": method, "params": params or {}})
        with self.answered:
            if not self.answered.wait_for(lambda: id in self.answers, timeout=20):
                raise RpcError(-32603, f"the host never answered {method}")
            return self.answers[id]

    def tools_changed(self) -> None:
        """Tell those who may be told in this era that the list is another now."""
        if self.handshake:
            self.notify("notifications/tools/list_changed")
        for id in self.listeners:
            self.notify("notifications/tools/list_changed", {"_meta": {PREFIX + "subscriptionId": id}})

    def note(self, **what: Any) -> None:
        """Write a line to the journal."""
        if path := os.environ.get(JOURNAL):
            with open(path, "ab") as file:  # noqa: PTH123  (pathlib is a slow import)
                file.write(json.dumps({"pid": os.getpid(), **what}).encode() + b"\n")

    # The protocol

    def serve(self) -> None:
        self.note(started=True)
        for line in sys.stdin.buffer:
            self.hear(line)
        self.note(eof=True)
        self.at_eof()
        os._exit(0)  # an orderly end would wait for a call that is still under way

    def take(self, line: bytes) -> None:
        message = json.loads(line)
        self.note(heard=message, clean=b"\r" not in line and not line.startswith(b"\xef\xbb\xbf"))
        if "method" not in message:
            with self.answered:
                self.answers[message["id"]] = message
                self.answered.notify_all()
        elif "id" not in message:
            self.notified(message)
        elif message["method"] == "tools/call":
            threading.Thread(target=self.answer, args=(message, self.call), daemon=True).start()
        elif message["method"] in self.methods:
            self.answer(message, self.methods[message["method"]])
        else:
            self.unknown(message)

    def notified(self, message: Json) -> None:
        if message["method"] == "notifications/cancelled":
            id = message["params"]["requestId"]
            if id in self.calls:
                self.calls[id].cancelled.set()
            if id in self.listeners:
                self.listeners.remove(id)

    def answer(self, message: Json, method: Method) -> None:
        try:
            self.rule(message)
            result = method(message)
        except RpcError as error:
            self.write({"jsonrpc": "2.0", "id": message["id"], "error": error.body})
            return
        if result is not None:
            self.result(message["id"], result if self.handshake else complete(result))

    def refuse(self, message: Json) -> None:
        body = {"code": -32601, "message": f"Method not found: {message['method']}"}
        self.write({"jsonrpc": "2.0", "id": message["id"], "error": body})

    def check_era(self, message: Json) -> None:
        """Hold requests to the rules of their era: the modern one wants its envelope in every request."""
        if message["method"] == "initialize" or self.handshake:
            return
        meta = message.get("params", {}).get("_meta", {})
        if "modern" not in self.eras:
            if message["method"] == "server/discover":
                raise RpcError(-32601, "Method not found: server/discover")
            raise RpcError(-32002, "Server not initialized")
        if PREFIX + "protocolVersion" not in meta or PREFIX + "clientCapabilities" not in meta:
            raise RpcError(-32602, "the request carries no protocolVersion and clientCapabilities")
        if meta[PREFIX + "protocolVersion"] != MODERN:
            raise RpcError(-32022, "Unsupported protocol version", {"supported": [MODERN]})

    def initialize(self, message: Json) -> Json:
        if "legacy" not in self.eras:
            raise RpcError(-32022, "Unsupported protocol version", {"supported": [MODERN]})
        self.handshake = True
        asked = message["params"]["protocolVersion"]
        return {
            "protocolVersion": asked if asked in self.versions else self.versions[-1],
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

    def listen(self, message: Json) -> None:
        self.listeners.append(message["id"])
        wanted = message["params"]["notifications"]
        params = {"notifications": wanted, "_meta": {PREFIX + "subscriptionId": message["id"]}}
        self.notify("notifications/subscriptions/acknowledged", params)

    def list_tools(self, _: Json) -> Json:
        result: Json = {"tools": self.tools}
        return result if self.handshake else result | {"ttlMs": 300_000, "cacheScope": "private"}

    def call(self, message: Json) -> Json | None:
        params = message["params"]
        if params["name"] not in self.handlers:
            raise RpcError(-32602, f"Unknown tool: {params['name']}")
        call = Call(self, message)
        self.calls[call.id] = call
        self.note(call=params["name"], arguments=call.arguments)
        return self.handlers[params["name"]](call)


def echo(call: Call) -> Json:
    """Gives its arguments back, as JSON in a text block."""
    return text(json.dumps(call.arguments, ensure_ascii=False))


def encode(message: Json) -> bytes:
    """One message as UTF-8, on one line."""
    return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
