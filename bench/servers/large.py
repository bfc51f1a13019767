"""A server whose one tool answers with a text of as many megabytes as asked for, on one line."""

import json
import sys

TEXT = {"name": "text", "inputSchema": {"type": "object", "properties": {"megabytes": {"type": "integer"}}}}


def main() -> None:
    out = sys.stdout.buffer
    for line in sys.stdin.buffer:
        request = json.loads(line)
        if "id" not in request:
            continue
        reply = {"jsonrpc": "2.0", "id": request["id"]}
        match request["method"]:
            case "initialize":
                info = {"name": "large", "version": "1"}
                reply["result"] = {
                    "protocolVersion": "2025-11-25",
                    "capabilities": {"tools": {}},
                    "serverInfo": info,
                }
            case "tools/list":
                reply["result"] = {"tools": [TEXT]}
            case "tools/call":
                text = "0123456789 abcde\n" * (
                    int(request["params"]["arguments"]["megabytes"]) * 1_000_000 // 17
                )
                reply["result"] = {"content": [{"type": "text", "text": text}]}
            case _:
                reply["error"] = {"code": -32601, "message": "no such method"}
        out.write(json.dumps(reply).encode() + b"\n")
        out.flush()


main()
