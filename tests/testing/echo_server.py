"""A whole MCP server over pipes whose one tool gives its arguments back."""

from __future__ import annotations

import json
import sys

TOOL = {"name": "get_pull_request", "inputSchema": {"type": "object"}}

for line in sys.stdin:
    request = json.loads(line)
    reply = {"jsonrpc": "2.0", "id": request.get("id")}
    match request["method"]:
        case "initialize":
            info = {"name": "echo", "version": "1"}
            reply["result"] = {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": info,
            }
        case "tools/list":
            reply["result"] = {"tools": [TOOL]}
        case "tools/call":
            text = json.dumps(request["params"]["arguments"])
            reply["result"] = {"content": [{"type": "text", "text": text}]}
        case _:
            reply["error"] = {"code": -32601, "message": "no such method"}
    if "id" in request:
        print(json.dumps(reply), flush=True)  # noqa: T201  (that is how it answers)
