"""The MCP server object of the OpenAI Agents SDK.

usage: openai_agents.py SERVER.py|URL
"""

import asyncio

from agents.mcp import MCPServerStdio, MCPServerStreamableHttp
from place import ARGS, COMMAND, URL
from worker import serve


async def main() -> None:
    if URL:
        server = MCPServerStreamableHttp({"url": URL}, cache_tools_list=True)
    else:
        server = MCPServerStdio({"command": COMMAND, "args": ARGS}, cache_tools_list=True)
    async with server:
        await server.list_tools()

        async def call(number: int) -> object:
            return await server.call_tool("echo", {"text": f"hello world {number}"})

        await serve(call)


asyncio.run(main())
