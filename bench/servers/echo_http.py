"""The least that a server by HTTP can do: a hand-written HTTP/1.1 answer to each POST.

At /mcp as JSON, at /events as an event stream, at /sse by the transport of 2024-11-05, and at /rest by the
REST dialect.

usage: echo_http.py [COUNT], prints the addresses (/mcp), a line each. It ends with its stdin.
"""

import asyncio
import json
import sys

ECHO = {
    "name": "echo",
    "description": "Answers with the text it was given.",
    "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
}
RECORDS = {
    "name": "records",
    "description": "A structured result of about so many kilobytes.",
    "inputSchema": {"type": "object", "properties": {"kilobytes": {"type": "integer"}}},
}
ACCEPTED = b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"
REFUSED = b"HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n"
STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
UNKNOWN = {"error": {"code": -32601, "message": "no such method"}}


def records(kilobytes: int) -> dict[str, object]:
    row = {"name": "a record", "city": "Somewhere", "amount": 12.5, "tags": ["one", "two"], "open": True}
    size = len(json.dumps(row)) + 14
    return {"records": [{"id": number, **row} for number in range(kilobytes * 1000 // size)]}


def answer(method: str, params: dict[str, object]) -> dict[str, object]:
    if method == "tools/call" and params["name"] == "records":
        found = records(int(params["arguments"]["kilobytes"]))
        return {"result": {"content": [], "structuredContent": found}}
    if method == "tools/call":
        said = params["arguments"]["text"]
        return {"result": {"content": [{"type": "text", "text": said}], "isError": False}}
    if method == "initialize":
        asked = min(str(params["protocolVersion"]), "2025-11-25")
        info = {"name": "echo", "version": "1"}
        result = {"protocolVersion": asked, "capabilities": {"tools": {}}, "serverInfo": info}
        return {"result": result}
    if method == "tools/list":
        return {"result": {"tools": [ECHO, RECORDS]}}
    return {"result": {}} if method == "ping" else UNKNOWN


class Http(asyncio.Protocol):
    line: asyncio.WriteTransport  # the stream of the last who asked for one at /sse

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._held = b""

    def data_received(self, data: bytes) -> None:
        self._held += data
        while (end := self._held.find(b"\r\n\r\n")) >= 0:
            head = self._held[:end].lower()
            at = head.find(b"content-length:")
            length = int(head[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
            whole = end + 4 + length
            if len(self._held) < whole:
                return
            body, self._held = self._held[end + 4 : whole], self._held[whole:]
            self._answer(head, body)

    def _answer(self, head: bytes, body: bytes) -> None:
        method, target, _ = head.split(b" ", 2)
        path = target.partition(b"?")[0].decode()
        if method == b"get":
            self._get(path)
        elif path.startswith("/rest/"):
            self._json(answer("tools/call", json.loads(body))["result"])
        elif method == b"post":
            self._post(path, json.loads(body))
        else:
            self._transport.write(REFUSED)

    def _get(self, path: str) -> None:
        if path == "/sse":
            named = b"event: endpoint\ndata: /messages\n\n"
            self._transport.write(STREAM + b"%x\r\n%s\r\n" % (len(named), named))
            Http.line = self._transport
        elif path == "/rest/tools":
            self._json({"tools": [ECHO]})
        else:
            self._transport.write(REFUSED)

    def _post(self, path: str, request: dict[str, object]) -> None:
        if path == "/sse":
            self._transport.write(REFUSED)
            return
        if "id" not in request:
            self._transport.write(ACCEPTED)
            return
        reply = {"jsonrpc": "2.0", "id": request["id"]}
        reply |= answer(request["method"], request.get("params") or {})
        if path == "/mcp":
            self._json(reply)
            return
        event = b"event: message\ndata: %s\n\n" % json.dumps(reply).encode()
        chunk = b"%x\r\n%s\r\n" % (len(event), event)
        if path == "/messages":
            self._transport.write(ACCEPTED)
            Http.line.write(chunk)
        else:
            self._transport.write(STREAM + chunk + b"0\r\n\r\n")

    def _json(self, reply: dict[str, object]) -> None:
        text = json.dumps(reply, separators=(",", ":")).encode()
        lines = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(text)
        self._transport.write(lines + text)


async def main() -> None:
    loop = asyncio.get_running_loop()
    for _ in range(int(sys.argv[1]) if len(sys.argv) > 1 else 1):
        server = await loop.create_server(Http, "127.0.0.1", 0, backlog=1024)
        print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp", flush=True)
    await asyncio.to_thread(sys.stdin.read)


asyncio.run(main())
