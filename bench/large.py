"""One 20 MB text block on one line: how long the call takes, and how long the loop was ever blocked."""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from pathlib import Path

from luthier import Runtime

SERVER = Path(__file__).resolve().parent / "servers" / "large.py"
TICK = 0.005


async def main() -> None:
    server = {"command": "python", "args": [str(SERVER)], "max_message_bytes": 32 * 1024 * 1024}
    with tempfile.TemporaryDirectory() as root:
        async with Runtime.open({"mcpServers": {"large": server}}, root=root) as runtime:
            await runtime.call("mcp://large/text", megabytes=1)
            for _ in range(5):
                worst = 0.0

                async def tick() -> None:
                    nonlocal worst
                    while True:
                        before = time.perf_counter()
                        await asyncio.sleep(TICK)
                        worst = max(worst, time.perf_counter() - before - TICK)

                ticker = asyncio.create_task(tick())
                start = time.perf_counter()
                result = await runtime.call("mcp://large/text", megabytes=20)
                took = time.perf_counter() - start
                ticker.cancel()
                size = len(result.content) / 1e6
                print(f"{size:.0f} MB in {took * 1000:.0f} ms, loop blocked at most {worst * 1000:.0f} ms")


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
