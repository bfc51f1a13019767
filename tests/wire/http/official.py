"""The official SDK's server by HTTP, told `sse`, `json` or `stream`; it prints the port that it took."""

from __future__ import annotations

import asyncio
import logging
import sys

import uvicorn
from mcp.server.mcpserver import Context, MCPServer

logging.disable(logging.WARNING)
server = MCPServer("official", log_level="ERROR")


@server.tool()
def echo(text: str) -> str:
    """Give it back."""
    return text


@server.tool()
async def count(steps: int, ctx: Context) -> str:
    """Report progress."""
    for step in range(steps):
        await ctx.report_progress(step + 1, steps, f"step {step + 1}")
    return "counted"


@server.tool()
async def grow(ctx: Context) -> str:
    """Tell everybody that the tools have changed."""
    await ctx.notify_tools_changed()
    await ctx.session.send_tool_list_changed()
    return "grown"


async def main(way: str) -> None:
    app = server.sse_app() if way == "sse" else server.streamable_http_app(json_response=way == "json")
    serving = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="error"))
    running = asyncio.create_task(serving.serve())
    while not serving.started:  # noqa: ASYNC110  (uvicorn offers nothing to wait for)
        await asyncio.sleep(0.01)
    print(serving.servers[0].sockets[0].getsockname()[1], flush=True)  # noqa: T201
    await running


asyncio.run(main(sys.argv[1]))
