"""A server made with the official SDK: structured output, progress, a changing list, cancelling.

`python tests/servers_real/sdk_server.py NOTES`: what happens to `wait` is written to the file NOTES.
"""

from __future__ import annotations

import sys
from pathlib import Path

import anyio
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ImageContent, TextContent
from pydantic import BaseModel

server = MCPServer("sdk", instructions="For tests.")
PIXEL = "iVBORw0KGgo="


class Sum(BaseModel):
    """What `add` gives."""

    total: int
    terms: list[int]


@server.tool()
def add(a: int, b: int = 0) -> Sum:
    """Add two numbers."""
    return Sum(total=a + b, terms=[a, b])


@server.tool(structured_output=False)
def picture() -> list[TextContent | ImageContent]:
    """A text and an image."""
    return [
        TextContent(type="text", text="a pixel"),
        ImageContent(type="image", data=PIXEL, mime_type="image/png"),
    ]


@server.tool()
def fail() -> str:
    """Fail with words for whoever called."""
    message = "the disk is full"
    raise ToolError(message)


@server.tool()
async def steps(times: int, ctx: Context) -> str:
    """Report progress so many times."""
    for n in range(times):
        await ctx.report_progress(n + 1, times, f"step {n + 1}")
    return "done"


def note(what: str) -> None:
    Path(sys.argv[1]).write_text(what)


@server.tool()
async def wait() -> str:
    """Wait until cancelled, and note it."""
    note("waiting")
    try:
        await anyio.sleep(120)
    except anyio.get_cancelled_exc_class():
        note("cancelled")
        raise
    return "waited"


@server.tool()
async def grow(ctx: Context) -> str:
    """Offer one more tool, and tell those who listen in either era."""
    server.add_tool(lambda: "grown", name="grown", description="A tool that came later.")
    await ctx.notify_tools_changed()
    await ctx.session.send_tool_list_changed()
    return "ok"


if __name__ == "__main__":
    server.run("stdio")
