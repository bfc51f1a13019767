"""The tools of the contract on a server of the official SDK: `official.py TRANSPORT PORT NOTES`."""

import sys
from pathlib import Path

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError

sys.path.insert(0, str(Path(__file__).parents[3]))
from tests.peers.servers.offer import offer

TRANSPORT, PORT, NOTES = sys.argv[1:]
server = MCPServer("official", log_level="WARNING")
offer(server, Context, ToolError, Path(NOTES))


@server.tool()
async def grow(name: str, ctx: Context) -> str:
    """Offer one more tool, and tell those who listen in either era."""
    server.add_tool(lambda: "grown", name=name, description="A tool that came later.")
    await ctx.notify_tools_changed()
    await ctx.session.send_tool_list_changed()
    return "ok"


match TRANSPORT:
    case "stdio":
        server.run("stdio")
    case "sse":
        server.run("sse", port=int(PORT))
    case _:
        server.run("streamable-http", port=int(PORT), json_response=TRANSPORT == "json")
