"""Wall time of `luthier --help` against `python -c "import mcp"`."""

from __future__ import annotations

import statistics
import subprocess
import time

from contest import OFFICIAL, OWN, machine, require_peers

ROUNDS = 11


def taken(*command: str) -> float:
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def main() -> None:
    require_peers()
    print(machine())
    help_, peer = [], []
    for _ in range(ROUNDS):
        help_.append(taken(str(OWN.with_name("luthier")), "--help"))
        peer.append(taken(str(OFFICIAL), "-c", "import mcp"))
    ours, theirs = statistics.median(help_), statistics.median(peer)
    a, b = ours * 1000, theirs * 1000
    print(f"luthier --help {a:.0f} ms, import mcp {b:.0f} ms, ratio {ours / theirs:.2f}x")


main()
