"""Contenders as processes, asked in turns, so that a round's figures are taken under like conditions."""

from __future__ import annotations

import json
import random
import statistics
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
OWN = Path(sys.executable)
OFFICIAL = HERE.parent / ".bench" / "official" / "bin" / "python"


class Contender:
    """One worker process; `ask` gives it a command and waits for its line."""

    def __init__(self, name: str, *command: str | Path) -> None:
        self.name = name
        self._process = subprocess.Popen(
            [str(part) for part in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._lines = iter(self._process.stdout or ())
        self._line()

    def ask(self, command: str) -> dict[str, float]:
        print(command, file=self._process.stdin, flush=True)
        return self._line()

    def quit(self) -> None:
        print("quit", file=self._process.stdin, flush=True)
        self._process.wait(30)

    def _line(self) -> dict[str, float]:
        line = next(self._lines, "")
        if not line:
            raise SystemExit(f"{self.name} ended with status {self._process.wait(30)}")
        answer: dict[str, float] = json.loads(line)
        return answer


def rounds(contenders: list[Contender], command: str, number: int) -> dict[str, list[dict[str, float]]]:
    """Ask every contender once a round, each round in another order."""
    shuffled = random.Random(7)  # noqa: S311  (an order, not a secret)
    taken: dict[str, list[dict[str, float]]] = {one.name: [] for one in contenders}
    for _ in range(number):
        for one in shuffled.sample(contenders, len(contenders)):
            taken[one.name].append(one.ask(command))
    return taken


def machine() -> str:
    """How long a fixed piece of work takes here now, in milliseconds: the measure of the machine's mood."""
    spins = []
    for _ in range(5):
        start = time.perf_counter()
        sum(range(300_000))
        spins.append((time.perf_counter() - start) * 1000)
    return f"spin {statistics.median(spins):.1f} ms (worst {max(spins):.1f})"


def require_peers() -> None:
    if not OFFICIAL.exists():
        raise SystemExit("run `sh bench/setup` first: it makes the peers' environments")
