"""An MCP server in plain Python whose one tool runs whatever code it is given: the worst of servers."""

from __future__ import annotations

import contextlib
import io
import json
import sys
from typing import Any

TRY = {
    "name": "try",
    "inputSchema": {
        "type": "object",
        "properties": {"code": {"type": "string"}, "given": {"type": "object"}},
    },
}


def tried(code: str, given: dict[str, Any]) -> str:
    """What the code printed, or the exception that it ended with."""
    out = io.StringIO()
    try:
        with contextlib.redirect_stdout(out):
            exec(code, {"__name__": "tried", "given": given})  # noqa: S102  (that is its trade)
    except BaseException as error:  # noqa: BLE001  (whatever became of it is the answer)
        return f"{type(error).__name__}: {error}"
    return out.getvalue().strip()


def answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    if method == "initialize":
        return {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "inmate", "version": "1"},
        }
    if method == "tools/list":
        return {"tools": [TRY]}
    if method == "tools/call":
        given = params["arguments"]
        text = tried(given["code"], given.get("given", {}))
        return {"content": [{"type": "text", "text": text}]}
    return None


def main() -> None:
    for line in sys.stdin:
        request = json.loads(line)
        if "id" not in request:
            continue
        result = answer(request["method"], request.get("params", {}))
        reply: dict[str, Any] = {"jsonrpc": "2.0", "id": request["id"]}
        if result is None:
            reply["error"] = {"code": -32601, "message": f"there is no method {request['method']}"}
        else:
            reply["result"] = result
        print(json.dumps(reply), flush=True)  # noqa: T201  (its answers)


if __name__ == "__main__":
    main()
