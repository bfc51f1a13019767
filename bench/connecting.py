"""Connecting 50 servers over pipes and 50 by HTTP at once: wall, CPU and memory against the official client.

Memory is what the client's own process gained; the servers are the same for both.
"""

from __future__ import annotations

import json
import statistics
import subprocess
from typing import TYPE_CHECKING

from contest import HERE, OFFICIAL, OWN, echo_servers, machine, require_peers

if TYPE_CHECKING:
    from pathlib import Path

ROUNDS = 5
EACH = 50


def taken(python: Path, script: str, urls: list[str]) -> dict[str, float]:
    command = [python, HERE / "contenders" / script, HERE / "servers" / "echo.py", str(EACH), *urls]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    answer: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return answer


def main() -> None:
    require_peers()
    print(machine())
    ours, theirs = [], []
    with echo_servers(EACH) as urls:
        for _ in range(ROUNDS):
            theirs.append(taken(OFFICIAL, "official_connecting.py", urls))
            ours.append(taken(OWN, "governed_connecting.py", urls))
    for name, runs in (("official", theirs), ("luthier", ours)):
        wall, cpu, memory = (statistics.median(run[key] for run in runs) for key in ("wall", "cpu", "memory"))
        listed = runs[0]["tools"]
        spent = f"{wall:5.2f} s   {cpu:5.2f} s CPU   {memory / 1024:6.1f} MiB added"
        print(f"{name:10} {spent}   {listed:.0f} tools")
    for key in ("wall", "cpu", "memory"):
        ratio = statistics.median(r[key] for r in ours) / statistics.median(r[key] for r in theirs)
        print(f"ratio {key:6} {ratio:.2f}x")


main()
