"""The official client's bare `call_tool`.

usage: official.py SERVER.py
"""

import asyncio
import sys

from mcp import Client, StdioServerParameters
from worker import serve


async def main() -> None:
    async with Client(StdioServerParameters(command=sys.executable, args=[sys.argv[1]])) as client:
        await client.list_tools()

        async def call(number: int) -> object:
            return await client.call_tool("echo", {"text": f"hello world {number}"})

        await serve(call)


asyncio.run(main())
