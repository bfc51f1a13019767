"""A small server of the handshake era with tools that try a transport, and with bad habits on request.

Habits: ignore-eof, ignore-term, orphan (leaves a child in its group), shy (exits when asked for its revision)
and mute (never answers).
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

HABITS = frozenset(sys.argv[1:])


def write(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def text(value: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": value}], "isError": False}


def play(name: str, given: dict[str, Any], id: Any) -> dict[str, Any]:  # noqa: C901  (a table)
    match name:
        case "echo":
            return text(given["text"])
        case "big":
            return text("x" * given["size"])
        case "size":
            return text(str(len(given["text"])))
        case "env":
            return {"content": [], "structuredContent": dict(os.environ)}
        case "where":
            return text(f"{os.getpid()} {os.getpgrp()} {os.getsid(0)} {Path.cwd()}")
        case "complain":
            sys.stderr.write(given["text"] * given["times"])
            sys.stderr.flush()
        case "exit":
            sys.stderr.write(given.get("last", ""))
            sys.stderr.flush()
            os._exit(given["status"])
        case "kill":
            os.kill(os.getpid(), given["signal"])
        case "unfinished":
            write(json.dumps({"jsonrpc": "2.0", "id": id, "result": text("no newline")}).encode())
            os._exit(0)
        case "close":
            os.close(given["descriptor"])
            time.sleep(600)
        case "raw":
            write(given["bytes"].encode("latin-1").replace(b"$ID", str(id).encode()))
        case "pause":
            time.sleep(given["seconds"])
    return text(name)


def answer(message: dict[str, Any]) -> dict[str, Any] | None:
    match message["method"]:
        case "initialize":
            info = {"name": "plain", "version": "1"}
            return {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
        case "tools/list":
            return {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}
        case "tools/call":
            return play(message["params"]["name"], message["params"]["arguments"], message["id"])
        case "ping":
            return {}
    return None


def main() -> None:
    if "ignore-term" in HABITS:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if "orphan" in HABITS:
        subprocess.Popen(["sleep", "600"], stdin=subprocess.DEVNULL)
    for line in sys.stdin.buffer:
        message = json.loads(line)
        if "shy" in HABITS and message["method"] == "server/discover":
            sys.exit(1)
        if "id" not in message or "mute" in HABITS:
            continue
        result = answer(message)
        body = (
            {"error": {"code": -32601, "message": "Method not found"}}
            if result is None
            else {"result": result}
        )
        write(json.dumps({"jsonrpc": "2.0", "id": message["id"], **body}).encode() + b"\n")
    while "ignore-eof" in HABITS:
        time.sleep(1)


main()
