"""The official client's bare `call_tool`.

usage: official.py SERVER.py|URL
"""

import asyncio

from mcp import Client, StdioServerParameters
from place import ARGS, COMMAND, TOOL, URL, arguments
from worker import serve


async def main() -> None:
    async with Client(URL or StdioServerParameters(command=COMMAND, args=ARGS)) as client:
        await client.list_tools()

        async def call(number: int) -> object:
            return await client.call_tool(TOOL, arguments(number))

        await serve(call)


asyncio.run(main())
