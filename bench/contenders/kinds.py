"""What contenders with several kinds of work do with commands: `KIND COUNT`, `quit`, a JSON line each."""

import asyncio
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable, Mapping

_out = os.fdopen(os.dup(1), "w", buffering=1)
os.dup2(2, 1)  # what a library prints must not come between the answers

Work = Callable[[], Awaitable[int]]
"""Does its work once, and says of how many units it was."""


def expect(found: object, expected: object) -> None:
    if found != expected:
        raise SystemExit(f"{found!r} came out instead of {expected!r}")


async def serve(kinds: Mapping[str, Work]) -> None:
    for work in kinds.values():
        await work()
    print(json.dumps({"ready": True}), file=_out)
    while (words := (await asyncio.to_thread(sys.stdin.readline)).split()) and words[0] != "quit":
        kind, count = words
        units = 0
        cpu, wall = time.process_time(), time.perf_counter()
        for _ in range(int(count)):
            units += await kinds[kind]()
        spent = {"calls": units, "cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}
        print(json.dumps(spent), file=_out)
