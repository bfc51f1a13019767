"""Luthier connects to many servers at once and lists the tools of each.

usage: governed_connecting.py SERVER.py COUNT [URL...]
"""

import asyncio
import json
import sys
import tempfile

from spent import Spent

from luthier import Runtime


async def main() -> None:
    script, count, *urls = sys.argv[1:]
    servers = {f"pipe{n}": {"command": "python", "args": [script]} for n in range(int(count))}
    servers |= {f"http{n}": {"url": url, "transport": "http"} for n, url in enumerate(urls)}
    with tempfile.TemporaryDirectory() as root:
        spent = Spent()
        async with Runtime.open({"mcpServers": servers}, root=root) as runtime:
            listings = await asyncio.gather(*(runtime.tools.load(server) for server in servers))
            tools = sum(len(listing.tools) for listing in listings)
            print(json.dumps(spent.taken() | {"tools": tools}), flush=True)


asyncio.run(main())
