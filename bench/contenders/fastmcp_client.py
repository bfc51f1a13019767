"""FastMCP's client.

usage: fastmcp_client.py SERVER.py|URL
"""

import asyncio

from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from place import ARGS, COMMAND, URL
from worker import serve


async def main() -> None:
    async with Client(URL or StdioTransport(COMMAND, ARGS)) as client:

        async def call(number: int) -> object:
            return await client.call_tool("echo", {"text": f"hello world {number}"})

        await serve(call)


asyncio.run(main())
