"""The official client lists all tools, page by page.

usage: official_listing.py SERVER.py
"""

import asyncio
import json
import os
import sys

from mcp import Client, StdioServerParameters
from spent import Spent


async def main() -> None:
    parameters = StdioServerParameters(command=sys.executable, args=[sys.argv[1]], env=dict(os.environ))
    async with Client(parameters) as client:
        spent = Spent()
        tools = []
        cursor = None
        while True:
            page = await client.list_tools(cursor=cursor)
            tools += page.tools
            cursor = page.next_cursor
            if cursor is None:
                break
        print(json.dumps(spent.taken() | {"tools": len(tools)}))


asyncio.run(main())
