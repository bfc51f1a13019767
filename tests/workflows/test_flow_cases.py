"""Control steps and outputs, told by data: tests/cases/flow/*.yaml, one file a kind (README.md says how)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from luthier.spec import load, read_ensemble
from luthier.workflows.machine import fold
from luthier.workflows.plan import plan
from luthier.workflows.record import StepEnded
from tests.workflows.house import Gate, House

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = Path(__file__).parents[1] / "cases" / "flow"
FILES = sorted(FOLDER.glob("*.yaml"))


def cases() -> Iterator[Any]:
    for path in FILES:
        for case in load(path).data["cases"]:
            yield pytest.param(case, id=f"{path.stem}: {case['name']}")


def agent(name: str, does: Any) -> dict[Any, Any]:
    """A step in the short form of the cases."""
    match does:
        case {"fails": message, **rest}:
            config = {"mcp": "s", "tool": "fail"}
            return {"name": name, "operation": "tools", "config": config, "input": {"why": message}, **rest}
        case {"echoes": given, **rest}:
            return {
                "name": name,
                "operation": "tools",
                "config": {"mcp": "s", "tool": "echo"},
                "input": given,
                **rest,
            }
        case {"gives": value, **rest}:
            return {"name": name, "operation": "transform", "config": {"value": value}, **rest}
        case _:
            return {"name": name, "operation": "transform", "config": {"value": does}}


def fail(arguments: dict[str, Any]) -> Any:
    raise RuntimeError(arguments["why"])


@pytest.mark.parametrize("case", list(cases()))
async def test_a_flow_does_what_its_case_says(case: dict[str, Any]) -> None:
    document = {"ensemble": "t", "agents": [agent(*one) for one in case["agents"].items()]}
    document |= {key: case[key] for key in ("flow", "outputs") if key in case}
    ensemble = read_ensemble(document)
    house = House(Gate({"s/fail": fail, "s/echo": lambda arguments: arguments}))
    run = await house.run(ensemble, case.get("inputs"))
    if "fails" in case:
        assert run.error is not None, run.output
        assert {key: run.error[key] for key in case["fails"]} == case["fails"]
    else:
        assert run.error is None
        assert run.output == case["gives"]
        assert run.status == case.get("status", 200)
        assert run.headers == case.get("headers", {})
    ended = [(entry.step, entry.data) for entry in run.record]
    ends = {step: data.end for step, data in ended if isinstance(data, StepEnded)}
    assert {key: ends.get(key) for key in case.get("ends", {})} == case.get("ends", {})
    assert len(ends) == sum(entry.kind == "StepEnded" for entry in run.record), "a step ends once"
    state = fold(plan(ensemble), run.record)
    assert state.ended is not None
    assert all(progress.ended is not None for progress in state.nodes.values()), "everything ends"
