"""Pydantic AI's MCP toolset, called directly.

usage: pydantic_toolset.py SERVER.py|URL
"""

import asyncio

from fastmcp.client.transports import StdioTransport
from place import ARGS, COMMAND, URL
from pydantic_ai.mcp import MCPToolset
from worker import serve


async def main() -> None:
    async with MCPToolset(URL or StdioTransport(COMMAND, ARGS)) as toolset:

        async def call(number: int) -> object:
            return await toolset.direct_call_tool("echo", {"text": f"hello world {number}"})

        await serve(call)


asyncio.run(main())
