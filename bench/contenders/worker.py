"""What every contender does with its commands: `seq N`, `many K N`, `quit`, a JSON line each."""

import asyncio
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable

_out = os.fdopen(os.dup(1), "w", buffering=1)
os.dup2(2, 1)  # what a library prints must not come between the answers

Call = Callable[[int], Awaitable[object]]


async def serve(call: Call) -> None:
    for number in range(200):
        await call(number)
    print(json.dumps({"ready": True}), file=_out)
    while (words := (await asyncio.to_thread(sys.stdin.readline)).split()) and words[0] != "quit":
        count = int(words[-1])
        width = int(words[1]) if words[0] == "many" else 1
        cpu, wall = time.process_time(), time.perf_counter()
        if width == 1:
            for number in range(count):
                await call(number)
        else:
            await asyncio.gather(*(_lane(call, lane, width, count) for lane in range(width)))
        spent = {"calls": count, "cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}
        print(json.dumps(spent), file=_out)


async def _lane(call: Call, lane: int, width: int, count: int) -> None:
    for number in range(lane, count, width):
        await call(number)
