"""Starting a server in the sandbox against starting it freely: from the decision to its first byte, in turns.

The server prints one byte and waits. The same script is started as production starts it, by a launch profile
and in a sandbox, and as a plain command in development.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from contest import machine

from luthier.clock import SystemClock
from luthier.connect import ServerRegistry
from luthier.connect.launch import prepare
from luthier.connect.sandbox import working
from luthier.spec import Launch, LaunchProfile, ServerEntry
from luthier.wire.process import Armed, ServerProcess

ROUNDS = 60
GOAL = 0.040


async def started(entry: ServerEntry, registry: ServerRegistry) -> float:
    """Seconds to its first byte."""
    began = time.perf_counter()
    launch = prepare(entry, registry, os.environ)
    armed = Armed(argv=launch.argv, cwd=launch.cwd) if launch.arm is None else launch.arm()
    process = ServerProcess(
        armed, launch.env, clock=SystemClock(), on_exit=lambda _: None, on_gone=armed.gone
    )
    armed.started()
    first = await asyncio.to_thread(os.read, process.stdout, 1)
    taken = time.perf_counter() - began
    for descriptor in (process.stdin, process.stdout, process.stderr):
        os.close(descriptor)
    await process.end()
    if first != b"x":
        raise SystemExit("the server did not start")
    return taken


async def main() -> None:
    print(machine())
    if not working().program:
        raise SystemExit(f"no sandbox here: {working().why}")
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "server.py"
        script.write_text("import sys\nsys.stdout.write('x')\nsys.stdout.flush()\nsys.stdin.read()\n")
        script.chmod(0o644)
        profile = LaunchProfile(name="p", executable=sys.executable, args=("-I", str(script)))
        entries = {
            "free": ServerEntry(id="free", command="python", args=("-I", str(script))),
            "sandbox": ServerEntry(id="sandbox", launch=Launch(profile="p")),
        }
        registries = {
            "free": ServerRegistry(root=Path(folder)),
            "sandbox": ServerRegistry(
                root=Path(folder), environment="production", launch_profiles={"p": profile}
            ),
        }
        times: dict[str, list[float]] = {name: [] for name in entries}
        for round_ in range(ROUNDS + 3):
            for name, entry in entries.items():
                taken = await started(entry, registries[name])
                if round_ >= 3:  # noqa: PLR2004  (the first ones fill caches)
                    times[name].append(taken)
    free, boxed = (statistics.median(times[name]) * 1000 for name in ("free", "sandbox"))
    more = statistics.median(b - a for a, b in zip(times["free"], times["sandbox"], strict=True)) * 1000
    print(
        f"free {free:.1f} ms   profile and sandbox {boxed:.1f} ms   median of the differences {more:+.1f} ms"
    )
    print(f"goal: at most {GOAL * 1000:.0f} ms more")


asyncio.run(main())
