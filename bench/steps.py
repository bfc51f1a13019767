"""What a step costs in an ensemble and in LangGraph: in a loop, in a row, side by side; durable and not.

The cheapest real step of each: a node of LangGraph is an async function that adds one (`code`: a plain one,
which it runs in a thread), ours a `transform` that adds one (`code`: a script's function). Ours is heard by
an observer, and its record is kept.

usage: steps.py [ROUNDS]
"""

from __future__ import annotations

import statistics
import sys
from typing import NamedTuple

from contest import ENVIRONMENTS, HERE, OWN, Contender, machine, rounds

STEPS, WIDTH = "1000", "100"


class Measure(NamedTuple):
    """`kind` as the contenders know it, done so many times a round."""

    kind: str
    times: int
    name: str
    goal: float | None


MEASURES = (
    Measure("loop", 1, "1,000 steps in a loop", 0.2),
    Measure("row", 1, "1,000 steps in a row", 0.2),
    Measure("code", 1, "1,000 functions in a loop", None),
    Measure("fan", 10, "100 side by side", 0.5),
    Measure("loop-durable", 1, "1,000 steps in a loop, durable", 0.2),
    Measure("fan-durable", 4, "100 side by side, durable", 0.3),
)


def main() -> None:
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    peer = ENVIRONMENTS / "langgraph"
    if not (peer / "ready").exists():
        raise SystemExit("run `sh bench/setup` first: it makes the peers' environments")
    folder = HERE / "contenders"
    contenders = [
        Contender("langgraph", peer / "bin" / "python", folder / "langgraph_steps.py", STEPS, WIDTH),
        Contender("luthier", OWN, folder / "governed_steps.py", STEPS, WIDTH),
    ]
    print(machine())
    print(f"{'us a step':32} {'langgraph':>15} {'luthier':>15} {'CPU':>7} {'wall':>7} {'best':>7}   goal")
    for measure in MEASURES:
        taken = rounds(contenders, f"{measure.kind} {measure.times}", number)
        cpu, wall = (
            {name: _median(found, what) for name, found in taken.items()} for what in ("cpu", "wall")
        )
        both = " ".join(f"{cpu[one.name]:6.0f} ({wall[one.name]:6.0f})" for one in contenders)
        best = {name: min(one["cpu"] / one["calls"] for one in found) for name, found in taken.items()}
        ratios = [figures["luthier"] / figures["langgraph"] for figures in (cpu, wall, best)]
        goal = "-" if measure.goal is None else f"≤ {measure.goal}x"
        print(f"{measure.name:32} {both} {' '.join(f'{ratio:6.2f}x' for ratio in ratios)}   {goal}")
    print("CPU, and in brackets wall time; medians of", number, "rounds; best: of the least CPU of each")
    for one in contenders:
        one.quit()
    print(machine())


def _median(taken: list[dict[str, float]], what: str) -> float:
    return statistics.median(one[what] / one["calls"] * 1e6 for one in taken)


main()
