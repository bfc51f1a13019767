"""A whole MCP server in plain Python: one tool, over stdin and stdout. Write yours with any MCP library."""

import json
import sys

GREET = {
    "name": "greet",
    "description": "Greets somebody.",
    "inputSchema": {
        "type": "object",
        "properties": {"name": {"type": "string", "description": "Whom to greet."}},
        "required": ["name"],
    },
}


def answer(method, params):
    if method == "initialize":
        return {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "greeter", "version": "1"},
        }
    if method == "tools/list":
        return {"tools": [GREET]}
    if method == "tools/call" and params.get("name") == "greet":
        return {"content": [{"type": "text", "text": f"Hello, {params['arguments']['name']}"}]}
    return None


for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    result = answer(request["method"], request.get("params", {}))
    reply = {"jsonrpc": "2.0", "id": request["id"]}
    if result is None:
        reply["error"] = {"code": -32601, "message": f"there is no method {request['method']}"}
    else:
        reply["result"] = result
    print(json.dumps(reply), flush=True)
