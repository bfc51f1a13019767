"""Luthier lists all tools of a connected server.

usage: governed_listing.py SERVER.py
"""

import asyncio
import json
import sys
import tempfile

from spent import Spent

from luthier import Runtime


async def main() -> None:
    server = {"command": "python", "args": [sys.argv[1]], "inherit_env": ["TOOLS"], "cache_ttl_ms": 0}
    with tempfile.TemporaryDirectory() as root:
        async with Runtime.open({"mcpServers": {"echo": server}}, root=root) as runtime:
            await runtime.connect("echo")
            spent = Spent()
            listing = await runtime.tools.load("echo")
            print(json.dumps(spent.taken() | {"tools": len(listing.tools)}))


asyncio.run(main())
