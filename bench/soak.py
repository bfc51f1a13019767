"""A soak: 100,000 governed calls over each transport, after which nothing may have grown.

usage: soak.py [CALLS [TRANSPORT...]]

The client is looked at after a fifth of the calls, when caches are full, and at the end: memory, open files,
tasks. Exits with 1 if one of them has grown.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "contenders"))
from contest import HERE, echo_servers, machine
from spent import resident

from luthier import Runtime

LANES = 16
GROWTH = 2048
"""KiB by which memory may differ: what an allocator holds back; 80,000 leaks would take more."""


def entries(base: str) -> dict[str, dict[str, object]]:
    return {
        "stdio": {"command": "python", "args": [str(HERE / "servers" / "echo.py")]},
        "http": {"url": f"{base}/mcp", "transport": "http"},
        "events": {"url": f"{base}/events", "transport": "http"},
        "sse": {"url": f"{base}/sse", "transport": "sse"},
        "rest": {"url": f"{base}/rest", "transport": "rest"},
    }


def state() -> tuple[float, int, int]:
    """KiB in memory, open files, tasks."""
    gc.collect()
    return resident(), len(list(Path("/proc/self/fd").iterdir())), len(asyncio.all_tasks())


async def calls(runtime: Runtime, count: int) -> None:
    async def lane(first: int) -> None:
        for number in range(first, count, LANES):
            text = f"hello {number}"
            result = await runtime.call("mcp://echo/echo", text=text)
            if result.content != text:
                raise SystemExit(f"asked {text!r}, got {result.content!r}")

    await asyncio.gather(*map(lane, range(LANES)))


async def soak(entry: dict[str, object], count: int) -> list[str]:
    """What has grown."""
    with tempfile.TemporaryDirectory() as root:
        async with Runtime.open({"mcpServers": {"echo": entry}}, root=root) as runtime:
            await calls(runtime, count // 5)
            before, began = state(), time.perf_counter()
            await calls(runtime, count - count // 5)
            after, took = state(), time.perf_counter() - began
        left = state()
    rate = (count - count // 5) / took
    print(
        f"{rate:6.0f} calls/s   memory {before[0] / 1024:.1f} -> {after[0] / 1024:.1f} MiB   "
        f"files {before[1]} -> {after[1]}   tasks {before[2]} -> {after[2]}   "
        f"closed: files {left[1]}, tasks {left[2]}",
        flush=True,
    )
    grown = ["memory"] if after[0] - before[0] > GROWTH else []
    grown += ["files"] if after[1] > before[1] + 1 else []
    grown += ["tasks"] if after[2] > before[2] + 1 or left[2] > 1 else []
    return grown


def main() -> int:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    print(machine())
    failed = False
    with echo_servers() as [url]:
        found = entries(url.removesuffix("/mcp"))
        for name in sys.argv[2:] or found:
            print(f"{name:7}", end=" ", flush=True)
            if grown := asyncio.run(soak(found[name], count)):
                print(f"        grown: {', '.join(grown)}")
                failed = True
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
