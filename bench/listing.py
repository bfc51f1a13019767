"""Listing 1,000 tools of ten properties: CPU and added memory against the official client."""

from __future__ import annotations

import json
import os
import statistics
import subprocess

from contest import HERE, OFFICIAL, OWN, machine, require_peers

ROUNDS = 7


def taken(python: str, script: str) -> dict[str, float]:
    done = subprocess.run(
        [python, str(HERE / "contenders" / script), str(HERE / "servers" / "echo.py")],
        check=True,
        capture_output=True,
        text=True,
        env=os.environ | {"TOOLS": "1000"},
    )
    answer: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return answer


def main() -> None:
    require_peers()
    print(machine())
    ours, theirs = [], []
    for _ in range(ROUNDS):
        theirs.append(taken(str(OFFICIAL), "official_listing.py"))
        ours.append(taken(str(OWN), "governed_listing.py"))
    for name, runs in (("official", theirs), ("luthier", ours)):
        cpu, memory = (statistics.median(run[key] for run in runs) for key in ("cpu", "memory"))
        listed = runs[0]["tools"]
        print(f"{name:10} {cpu * 1000:6.1f} ms CPU   {memory / 1024:6.1f} MiB added   {listed:.0f} tools")
    for key in ("cpu", "memory"):
        ratio = statistics.median(r[key] for r in ours) / statistics.median(r[key] for r in theirs)
        print(f"ratio {key} {ratio:.2f}x")


main()
