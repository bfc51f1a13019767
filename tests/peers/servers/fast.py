"""The tools of the contract on a server of FastMCP, which has an environment of its own.

`fast.py TRANSPORT PORT NOTES`
"""

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[3]))
from tests.peers.servers.offer import offer

# By name, as the type checker's environment does not hold it.
fastmcp: Any = import_module("fastmcp")
failures: Any = import_module("fastmcp.exceptions")
types: Any = import_module("mcp.types")

TRANSPORT, PORT, NOTES = sys.argv[1:]
server = fastmcp.FastMCP("fastmcp")
offer(server, fastmcp.Context, failures.ToolError, Path(NOTES))


async def grow(name: str, ctx: fastmcp.Context) -> str:
    """Offer one more tool, and tell those who listen."""

    def later() -> str:
        return "grown"

    server.tool(later, name=name)
    await ctx.send_notification(types.ToolListChangedNotification())
    return "ok"


server.tool(grow)


if TRANSPORT == "stdio":
    server.run("stdio", show_banner=False)
else:
    kind = "sse" if TRANSPORT == "sse" else "http"
    more = {"json_response": True} if TRANSPORT == "json" else {}
    server.run(kind, show_banner=False, host="127.0.0.1", port=int(PORT), log_level="warning", **more)
