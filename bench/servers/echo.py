"""The least that a server over pipes can do: read a line, answer it. TOOLS=n lists n wide tools."""

import json
import os
import sys

ECHO = {
    "name": "echo",
    "description": "Answers with the text it was given.",
    "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
}


def wide(number: int) -> dict[str, object]:
    kinds = [
        {"type": "string", "description": "The record to act on", "minLength": 1, "maxLength": 64},
        {"type": "string", "enum": ["north", "south", "east", "west"], "description": "Where it is kept"},
        {
            "type": "integer",
            "minimum": 1,
            "maximum": 1000,
            "default": 50,
            "description": "How many rows at most",
        },
        {"type": "number", "minimum": 0, "maximum": 1, "description": "From which score on a row counts"},
        {"type": "boolean", "default": False, "description": "Whether to change nothing"},
        {"type": "array", "items": {"type": "string"}, "maxItems": 20, "description": "Labels to attach"},
        {
            "type": "object",
            "properties": {"from": {"type": "string"}, "to": {"type": "string"}},
            "required": ["from"],
        },
        {
            "anyOf": [{"type": "string"}, {"type": "null"}],
            "default": None,
            "description": "How to go about it",
        },
        {"type": "string", "pattern": "^[^@]+@[^@]+$", "description": "Whom to tell when it is done"},
        {"type": "integer", "enum": [1, 2, 3, 4, 5], "description": "How urgent it is"},
    ]
    return {
        "name": f"tool_{number:04d}",
        "description": f"Tool {number}: finds, filters and changes customers and says what became of them.",
        "inputSchema": {
            "type": "object",
            "properties": {f"field_{index}": kind for index, kind in enumerate(kinds)},
            "required": ["field_0", "field_1", "field_2"],
            "additionalProperties": False,
        },
    }


TOOLS = [ECHO] + [wide(number) for number in range(int(os.environ.get("TOOLS", "1")) - 1)]


def answer(method: str, params: dict[str, object]) -> dict[str, object] | None:
    if method == "tools/call":
        return {"content": [{"type": "text", "text": params["arguments"]["text"]}], "isError": False}
    if method == "initialize":
        asked = min(str(params["protocolVersion"]), "2025-11-25")
        info = {"name": "echo", "version": "1"}
        return {"protocolVersion": asked, "capabilities": {"tools": {}}, "serverInfo": info}
    if method == "tools/list":
        return {"tools": TOOLS}
    return {} if method == "ping" else None


def main() -> None:
    out = sys.stdout.buffer
    for line in sys.stdin.buffer:
        request = json.loads(line)
        if "id" not in request:
            continue
        result = answer(request["method"], request.get("params") or {})
        reply = {"jsonrpc": "2.0", "id": request["id"]}
        reply |= (
            {"error": {"code": -32601, "message": "no such method"}} if result is None else {"result": result}
        )
        out.write(json.dumps(reply, separators=(",", ":")).encode() + b"\n")
        out.flush()


main()
