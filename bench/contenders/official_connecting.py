"""The official client connects to many servers at once and lists the tools of each.

usage: official_connecting.py SERVER.py COUNT [URL...]
"""

import asyncio
import json
import sys

from mcp import Client, StdioServerParameters
from spent import Spent


async def main() -> None:
    script, count, *urls = sys.argv[1:]
    pipes = [StdioServerParameters(command=sys.executable, args=[script]) for _ in range(int(count))]
    spent = Spent()
    done, tools = asyncio.Event(), []

    async def connect(server: StdioServerParameters | str) -> None:
        async with Client(server) as client:
            tools.extend((await client.list_tools()).tools)
            connected.release()
            await done.wait()

    connected = asyncio.Semaphore(0)
    async with asyncio.TaskGroup() as group:
        for server in [*pipes, *urls]:
            group.create_task(connect(server))
        for _ in [*pipes, *urls]:
            await connected.acquire()
        print(json.dumps(spent.taken() | {"tools": len(tools)}), flush=True)
        done.set()


asyncio.run(main())
