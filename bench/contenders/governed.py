"""A governed call: access, validation, label, audit to a file, events.

usage: governed.py SERVER.py|URL
"""

import asyncio
import tempfile

from place import ARGS, TOOL, URL, arguments
from worker import serve

from luthier import Runtime


class Count:
    """An observer, so that events have somewhere to go."""

    seen = 0

    def notify(self, _event: object) -> None:
        self.seen += 1


async def main() -> None:
    server = {"url": URL, "transport": "http"} if URL else {"command": "python", "args": ARGS}
    with tempfile.TemporaryDirectory() as root:
        async with Runtime.open({"mcpServers": {"echo": server}}, root=root, observers=[Count()]) as runtime:

            async def call(number: int) -> object:
                return await runtime.call(f"mcp://echo/{TOOL}", arguments(number))

            await serve(call)


asyncio.run(main())
