"""Ensembles: steps in a loop, in a row and side by side, durable and not; an observer hears of each.

usage: governed_steps.py STEPS WIDTH
"""

import asyncio
import sys
import tempfile
from pathlib import Path
from typing import Any

from kinds import expect, serve

from luthier import Runtime

STEPS, WIDTH = map(int, sys.argv[1:])
SCRIPT = "async def run(ctx):\n    return ctx.input['x'] + 1\n"


class Count:
    """An observer, so that events have somewhere to go."""

    seen = 0

    def notify(self, _event: object) -> None:
        self.seen += 1


def transform(name: str, value: str) -> dict[str, Any]:
    return {"name": name, "operation": "transform", "config": {"value": value}}


def loop(step: dict[str, Any]) -> dict[str, Any]:
    flow = {
        "id": "loop",
        "condition": f"${{iteration < {STEPS}}}",
        "maxIterations": STEPS,
        "steps": [step["name"]],
    }
    return {"ensemble": "loop", "agents": [step], "flow": [{"while": flow}], "outputs": "${step.output}"}


def in_a_row() -> dict[str, Any]:
    first = transform("step0", "${1}")
    rest = [transform(f"step{n}", f"${{step{n - 1}.output + 1}}") for n in range(1, STEPS)]
    return {"ensemble": "row", "agents": [first, *rest], "outputs": f"${{step{STEPS - 1}.output}}"}


def side_by_side() -> dict[str, Any]:
    flow = {"id": "fan", "items": list(range(WIDTH)), "step": "leaf", "maxConcurrency": WIDTH}
    return {
        "ensemble": "fan",
        "agents": [transform("leaf", "${item + 1}")],
        "flow": [{"foreach": flow}],
        "outputs": "${fan.output}",
    }


LAST = "${(lastIterationResults[0] ?? 0) + 1}"
CODE = {
    "name": "step",
    "operation": "code",
    "config": {"script": "scripts/add"},
    "input": {"x": "${lastIterationResults[0] ?? 0}"},
}


async def main() -> None:
    with tempfile.TemporaryDirectory() as root:
        scripts = Path(root) / "scripts"
        scripts.mkdir()
        (scripts / "add.py").write_text(SCRIPT)
        async with Runtime.open({}, root=root, observers=[Count()]) as runtime:

            def work(written: dict[str, Any], units: int, expected: int, **how: Any) -> Any:
                ensemble = runtime.ensemble(written)

                async def work() -> int:
                    run = await runtime.run(ensemble, {}, **how)
                    output = sum(run.output) if isinstance(run.output, list) else run.output
                    expect((output, run.error), (expected, None))
                    return units

                return work

            all_items = WIDTH * (WIDTH + 1) // 2
            counting = loop(transform("step", LAST))
            await serve(
                {
                    "loop": work(counting, STEPS, STEPS),
                    "row": work(in_a_row(), STEPS, STEPS),
                    "code": work(loop(CODE), STEPS, STEPS),
                    "fan": work(side_by_side(), WIDTH, all_items),
                    "loop-durable": work(counting, STEPS, STEPS, durable=True),
                    "fan-durable": work(side_by_side(), WIDTH, all_items, durable=True),
                }
            )


asyncio.run(main())
