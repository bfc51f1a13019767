"""An MCP server over pipes that writes down each act in a file, and kills the process that asked if told to.

usage: counting_server.py FILE
A line of the file is `pid N`, the key of an act, or `~` and the key of one that does no harm when done again.
Where `FILE.kill` says N, the Nth act ends its caller; where `FILE.lose` does, this server, with no reply.
Where `FILE.refuse` says N, the server ends before anything is done in the Nth.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

acts = Path(sys.argv[1])

FAILURES = 2
"""Of `flaky`, before it does what it is asked."""


def tool(name: str, **hints: bool) -> dict[str, object]:
    return {"name": name, "inputSchema": {"type": "object"}, "annotations": hints}


def note(line: str) -> None:
    with acts.open("a") as file:
        file.write(f"{line}\n")
        file.flush()
        os.fsync(file.fileno())


def done() -> int:
    return sum(not line.startswith("pid ") for line in acts.read_text().splitlines())


def struck(way: str, act: int) -> bool:
    """Whether that is to go wrong in this act; once."""
    file = Path(f"{acts}.{way}")
    if not file.exists() or int(file.read_text()) != act:
        return False
    file.unlink()
    return True


def act(name: str, key: str) -> dict[str, object]:
    """Do it; the reply's result, or its error."""
    number = done() + 1
    if struck("refuse", number):
        sys.exit()
    fails = name == "bad" or (name == "flaky" and acts.read_text().count("~flaky") < FAILURES)
    note(key if name in ("do", "flaky") and not fails else f"~{key}")
    if struck("kill", number):
        os.kill(os.getppid(), signal.SIGKILL)
    if struck("lose", number):
        sys.exit()
    if fails:
        return {"error": {"code": -32000, "message": f"{name} fails"}}
    return {"result": {"content": [{"type": "text", "text": '{"n": 1}'}]}}


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
            tools = [tool("do"), tool("flaky"), tool("bad"), tool("look", readOnlyHint=True)]
            reply["result"] = {"tools": tools}
        case "tools/call":
            asked = request["params"]
            reply |= act(asked["name"], str(asked["arguments"]["key"]))
        case _:
            reply["error"] = {"code": -32601, "message": "no such method"}
    if "id" in request:
        print(json.dumps(reply), flush=True)  # noqa: T201  (that is how it answers)
