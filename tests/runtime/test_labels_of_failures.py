"""What a failure tells carries the label of what it came from: nothing is laundered by failing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from luthier import Runtime
from luthier.testing import MemoryServer
from luthier.wire import Result

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = {"type": "object", "properties": {"p": {"enum": ["a word of the server"]}}, "required": ["p"]}
ASK: dict[str, Any] = {
    "name": "a",
    "operation": "tools",
    "config": {"mcp": "far", "tool": "say"},
    "input": {},
}


def far() -> MemoryServer:
    asks = {"resultType": "input_required", "inputRequests": {"q": "a word of the server"}}
    tools = {"say": {"bad": "{"}, "strict": 1, "asks": Result(asks)}
    return MemoryServer("far", tools, schemas={"strict": SCHEMA})


def step(tool: str, given: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"name": "b", "operation": "tools", "config": {"mcp": "far", "tool": tool}, "input": given}]


def shaped(value: Any) -> list[dict[str, Any]]:
    return [ASK, {"name": "b", "operation": "transform", "config": {"value": value}}]


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param(step("strict", {"p": "mine"}), id="arguments that break the server's schema"),
        pytest.param(step("strct", {}), id="an unknown tool, with near names of the server"),
        pytest.param(step("asks", {}), id="a server that asks for more"),
        pytest.param(shaped("${parse(a.output.bad)}"), id="an expression that fails on its data"),
        pytest.param(
            [ASK, *step("say", {"x": "${parse(a.output.bad)}"})], id="inputs that cannot be evaluated"
        ),
    ],
)
async def test_a_failure_says_nothing_better_than_what_it_came_from(
    steps: list[dict[str, Any]], tmp_path: Path
) -> None:
    ensemble = {
        "ensemble": "e",
        "agents": steps,
        "outputs": {"failed": "${b.failed}", "said": "${b.error.message}"},
    }
    entry = {"command": "python", "args": ["none.py"]}
    async with Runtime.open(
        {"mcpServers": {"far": entry}}, root=tmp_path, transports={"far": far().transport}
    ) as rt:
        run = await rt.run(ensemble)
    assert run.output["failed"] is True
    for pointer in ("/failed", "/said"):
        label = run.labelled.at(pointer)
        assert label.integrity.name == "untrusted"
        assert {source.server for source in label.sources} == {"far"}
