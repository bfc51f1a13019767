"""Loading and folding the record of a run of 10,000 steps from the store: a loop whose body asks a tool.

usage: record.py [STEPS]
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from contest import machine

from luthier import Runtime
from luthier.store import Database
from luthier.store.runs import SqlRuns
from luthier.testing import MemoryServer
from luthier.workflows import plan
from luthier.workflows.machine import fold

if TYPE_CHECKING:
    from luthier.workflows import Plan, Run

ROUNDS = 7
STORE = "sqlite:///runs.db"


def ensemble(steps: int) -> dict[str, object]:
    asked = {
        "name": "ask",
        "operation": "tools",
        "config": {"mcp": "s", "tool": "t"},
        "input": {"n": "${item}"},
    }
    loop = {"items": list(range(steps)), "step": "ask", "maxConcurrency": 16}
    return {"ensemble": "loop", "agents": [asked], "flow": [{"foreach": loop}], "outputs": "${ask.output}"}


async def ran(folder: Path, steps: int) -> tuple[Run, Plan]:
    server = MemoryServer(
        "s", {"t": lambda arguments: {"n": arguments["n"], "text": "some words of an answer"}}
    )
    project = {"store": STORE, "mcpServers": {"s": {"command": "python"}}}
    async with Runtime.open(project, root=folder, transports={"s": server.transport}) as runtime:
        found = runtime.ensemble(ensemble(steps))
        run = await runtime.run(found, durable=True)
        if not run.success:
            raise SystemExit(run.error)
        return run, plan(found)


def main() -> None:
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        run, planned = asyncio.run(ran(Path(folder), steps))
        print(machine())
        print(f"{steps} steps ran durably in {time.perf_counter() - start:.1f} s")
        database = Database(STORE, Path(folder))
        store = SqlRuns(database)
        loads, folds = [], []
        for _ in range(ROUNDS):
            start = time.process_time()
            record = store.read(run.id)
            loads.append(time.process_time() - start)
            start = time.process_time()
            state = fold(planned, record)
            folds.append(time.process_time() - start)
            if state.ended is None:
                raise SystemExit("the record has no end")
        database.close()
    loaded, folded = statistics.median(loads), statistics.median(folds)
    both = f"loaded in {loaded:.2f} s, folded in {folded:.2f} s"
    print(f"{len(record)} entries {both}: {loaded + folded:.2f} s (goal: under 1 s)")
    print(machine())


main()
