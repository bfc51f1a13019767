"""An MCP server over pipes that writes down each act in a file, and kills the process that asked if told to.

usage: counting_server.py FILE
A line of the file is the key of an act, or `pid N`. Where `FILE.kill` says N, the Nth act ends its caller.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

acts = Path(sys.argv[1])
kill = Path(f"{acts}.kill")


def tool(name: str, **hints: bool) -> dict[str, object]:
    return {"name": name, "inputSchema": {"type": "object"}, "annotations": hints}


def note(line: str) -> None:
    with acts.open("a") as file:
        file.write(f"{line}\n")
        file.flush()
        os.fsync(file.fileno())


def done() -> int:
    return sum(not line.startswith("pid ") for line in acts.read_text().splitlines())


note(f"pid {os.getpid()}")
for line in sys.stdin:
    request = json.loads(line)
    reply = {"jsonrpc": "2.0", "id": request.get("id")}
    match request["method"]:
        case "initialize":
            info = {"name": "counting", "version": "1"}
            able: dict[str, object] = {"tools": {}}
            reply["result"] = {"protocolVersion": "2025-11-25", "capabilities": able, "serverInfo": info}
        case "tools/list":
            reply["result"] = {"tools": [tool("do"), tool("look", readOnlyHint=True)]}
        case "tools/call":
            note(str(request["params"]["arguments"]["key"]))
            if kill.exists() and int(kill.read_text()) == done():
                os.kill(os.getppid(), signal.SIGKILL)
            reply["result"] = {"content": [{"type": "text", "text": '{"n": 1}'}]}
        case _:
            reply["error"] = {"code": -32601, "message": "no such method"}
    if "id" in request:
        print(json.dumps(reply), flush=True)  # noqa: T201  (that is how it answers)
