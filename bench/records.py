"""How long it takes to load and fold the record of a run of 10,000 steps from a store of SQLite.

usage: records.py [ROUNDS]
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time

from contest import machine

from luthier import Runtime
from luthier.workflows import plan
from luthier.workflows.machine import fold

STEPS = 10_000


async def measured(number: int) -> None:
    step = {"name": "step", "operation": "transform", "config": {"value": "${item}"}}
    loop = {"id": "loop", "items": "${input.items}", "step": "step"}
    written = {"ensemble": "long", "agents": [step], "flow": [{"foreach": loop}], "outputs": {"done": True}}
    with tempfile.TemporaryDirectory() as root:
        async with Runtime.open({}, root=root) as runtime:
            ensemble = runtime.ensemble({**written, "inputs": {"items": {"type": "array"}}})
            run = await runtime.run(ensemble, {"items": list(range(STEPS))}, durable=True)
            took, spent = [], []
            for _ in range(number):
                begun, cpu = time.perf_counter(), time.process_time()
                entries = runtime.runs.record(run.id)
                state = fold(plan(ensemble), entries)
                took.append(time.perf_counter() - begun)
                spent.append(time.process_time() - cpu)
            if state.ended is None or not state.ended.success:
                raise SystemExit(f"the run did not end well: {run.error}")
            wall, cpu = statistics.median(took), statistics.median(spent)
            print(
                f"{len(entries)} entries of {STEPS} steps: {wall:.2f} s, {cpu:.2f} s of CPU (goal: under 1 s)"
            )


print(machine())
asyncio.run(measured(int(sys.argv[1]) if len(sys.argv) > 1 else 5))
