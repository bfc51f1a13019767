"""The official SDK's server over stdio: it speaks both eras and picks by the first message."""

from __future__ import annotations

import asyncio
from typing import Annotated

from mcp.server.mcpserver import Context, MCPServer
from pydantic import BaseModel, Field

server = MCPServer("official", instructions="Play softly.")


class Sum(BaseModel):
    """A structured result."""

    total: int


@server.tool()
def add(a: int, b: Annotated[int, Field(description="the second")]) -> Sum:
    """Add two numbers."""
    return Sum(total=a + b)


@server.tool()
def echo(text: str) -> str:
    """Give it back."""
    return text


@server.tool()
def fail() -> str:
    """Fail."""
    raise ValueError("it broke")


@server.tool()
async def count(steps: int, ctx: Context) -> str:
    """Report progress."""
    for step in range(steps):
        await ctx.report_progress(step + 1, steps, f"step {step + 1}")
        await asyncio.sleep(0.05)
    return "counted"


@server.tool()
async def hang() -> str:
    """Never answer."""
    await asyncio.Event().wait()
    return ""


server.run("stdio")
