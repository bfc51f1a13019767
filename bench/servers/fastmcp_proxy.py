"""FastMCP's proxy in front of a server by HTTP: as it comes, or over one client that is connected once.

usage: fastmcp_proxy.py default|shared UPSTREAM PORT
"""

import asyncio
import logging
import sys

from fastmcp import Client
from fastmcp.server import create_proxy

logging.disable(logging.WARNING)
kind, upstream, port = sys.argv[1:]


async def serve(target: object) -> None:
    proxy = create_proxy(target, name="proxy")
    await proxy.run_async(
        transport="http", host="127.0.0.1", port=int(port), json_response=True, show_banner=False
    )


async def main() -> None:
    if kind == "default":
        await serve(upstream)
    else:
        async with Client(upstream) as client:
            await serve(client)


asyncio.run(main())
