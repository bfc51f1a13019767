"""A session of mcp-use.

usage: mcp_use_session.py SERVER.py|URL
"""

import asyncio

from mcp_use import MCPClient
from place import ARGS, COMMAND, URL
from worker import serve


async def main() -> None:
    server = {"url": URL} if URL else {"command": COMMAND, "args": ARGS}
    client = MCPClient.from_dict({"mcpServers": {"echo": server}})
    session = await client.create_session("echo")

    async def call(number: int) -> object:
        return await session.call_tool("echo", {"text": f"hello world {number}"})

    await serve(call)
    await client.close_all_sessions()


asyncio.run(main())
