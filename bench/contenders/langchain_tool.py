"""A tool of langchain-mcp-adapters over a session that is kept.

usage: langchain_tool.py SERVER.py|URL
"""

import asyncio

from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.tools import load_mcp_tools
from place import ARGS, COMMAND, URL
from worker import serve


async def main() -> None:
    pipes = {"transport": "stdio", "command": COMMAND, "args": ARGS}
    server = {"transport": "streamable_http", "url": URL} if URL else pipes
    async with MultiServerMCPClient({"echo": server}).session("echo") as session:
        tool = next(tool for tool in await load_mcp_tools(session) if tool.name == "echo")

        async def call(number: int) -> object:
            return await tool.ainvoke({"text": f"hello world {number}"})

        await serve(call)


asyncio.run(main())
