"""Every form that the `tools` page writes has a twin in tests/cases/seeds/, run against servers in memory."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from luthier import Runtime
from luthier.errors import InputError
from luthier.spec import load
from luthier.testing import MemoryServer, ScriptedModel
from luthier.wire import Drop, Hang, Result
from tests.wire.http.support import Site

if TYPE_CHECKING:
    from collections.abc import Callable

CASES = sorted((Path(__file__).parents[1] / "cases" / "seeds").glob("*.yaml"))

BLOCKS = {
    "Basic Usage": 1,
    "Configuration / Agent Config": 1,
    "Configuration / Input": 1,
    "Configuration / Output": 1,
    "MCP Server Examples / GitHub MCP": 1,
    "MCP Server Examples / Brave Search MCP": 1,
    "MCP Server Examples / Custom MCP Server": 1,
    "Common Patterns / Sequential Tool Calls": 1,
    "Common Patterns / Parallel Tool Calls": 1,
    "Common Patterns / Tool with Fallback": 1,
    "Common Patterns / Caching Tool Discovery": 1,
    "Error Handling / Tool Invocation Errors": 2,
    "Error Handling / Check Tool Errors": 1,
    "Error Handling / Timeout Handling": 1,
    "Best Practices / 1. Set Appropriate Timeouts": 1,
    "Best Practices / 2. Cache Tool Discovery": 1,
    "Best Practices / 3. Handle Tool Failures": 1,
    "Best Practices / 4. Use Typed Inputs": 1,
    "Best Practices / 5. Document Tool Usage": 1,
}
"""The headings of the page with ensembles or parts of them, and how many blocks of such stand under each."""

TOGETHER = {"Error Handling / Tool Invocation Errors"}
"""Whose blocks are parts of one ensemble: steps, and what it delivers."""

KEYS = {
    "Basic Usage": {"ensemble", "agents", "inputs", "outputs"},
    "MCP Server Examples / GitHub MCP": {"ensemble", "agents", "inputs", "outputs"},
    "MCP Server Examples / Brave Search MCP": {"ensemble", "agents", "inputs", "outputs"},
    "MCP Server Examples / Custom MCP Server": {"ensemble", "agents", "inputs", "outputs"},
    "Common Patterns / Sequential Tool Calls": {"ensemble", "agents", "inputs", "outputs"},
    "Common Patterns / Parallel Tool Calls": {"ensemble", "agents", "inputs", "outputs"},
    "Common Patterns / Tool with Fallback": {"agents", "outputs"},
    "Error Handling / Tool Invocation Errors": {"agents", "outputs"},
    "Error Handling / Check Tool Errors": {"agents"},
    "Error Handling / Timeout Handling": {"agents"},
    "Best Practices / 5. Document Tool Usage": {"ensemble", "description", "agents"},
}
"""What the blocks say at their top, where they are more than a part of a step."""


def read(path: Path) -> dict[str, Any]:
    case: dict[str, Any] = load(path).data
    return case


def behaviour(spec: dict[str, Any], gate: asyncio.Barrier | None) -> Any:
    """What a tool of a case does when it is called."""
    match spec:
        case {"meets": _, "returns": value}:
            # Answers only when the others are there too: shows that the calls are under way together.
            async def meet(_: dict[str, Any]) -> Any:
                assert gate is not None
                await gate.wait()
                return value

            return meet
        case {"returns": value}:
            return value
        case {"echoes": True}:
            return lambda arguments: arguments
        case {"says_error": text}:
            return Result({"content": [{"type": "text", "text": text}], "isError": True})
        case {"breaks": True}:
            return Drop()
        case {"hangs": True}:
            return Hang()
        case _:
            raise AssertionError(f"unknown behaviour {spec}")


def servers_of(case: dict[str, Any]) -> dict[str, MemoryServer]:
    parties = [
        tool["meets"] for tools in case["servers"].values() for tool in tools.values() if "meets" in tool
    ]
    gate = asyncio.Barrier(parties[0]) if parties else None
    return {
        server: MemoryServer(server, {name: behaviour(spec, gate) for name, spec in tools.items()})
        for server, tools in case["servers"].items()
    }


def project(folder: Path, name: str, case: dict[str, Any], site: Site) -> Path:
    """The case on disk: the ensemble under the case's name, its scripts, an entry for each server.

    SITE in the ensemble stands for the address of a site that answers what the case says.
    """
    for script, source in case.get("scripts", {}).items():
        target = folder / "scripts" / f"{script}.py"
        target.parent.mkdir(exist_ok=True)
        target.write_text(source)
    ensemble = folder / "ensembles" / f"{name}.yaml"
    ensemble.parent.mkdir()
    ensemble.write_text(case["ensemble"].replace("SITE", site.url.removesuffix("/mcp")))
    entries = "".join(f"  {server}: {{command: python, args: [none.py]}}\n" for server in case["servers"])
    file = folder / "luthier.yaml"
    file.write_text(f"mcpServers:\n{entries}")
    return file


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
async def test_a_form_of_the_page_means_what_the_page_says(path: Path, tmp_path: Path) -> None:
    case = read(path)
    expected = case["expect"]
    servers = servers_of(case)
    ways: dict[str, Callable[[], Any]] = {name: server.transport for name, server in servers.items()}
    models = {name: ScriptedModel(answers) for name, answers in case.get("models", {}).items()}
    async with (
        Site(lambda _, answering: answering.give(200, case["site"])) as site,
        Runtime.open(project(tmp_path, path.stem, case, site), transports=ways, models=models) as rt,
    ):
        (name,) = rt.ensembles
        for key, value in case.get("kept", {}).items():
            await rt.call("builtin://storage/kv", action="put", key=key, value=value)
        if "input_faults" in expected:
            with pytest.raises(InputError) as caught:
                await rt.run(name, case["inputs"])
            assert [key for key in expected["input_faults"] if key in str(caught.value)] == expected[
                "input_faults"
            ]
            return
        run = await rt.run(name, case.get("inputs"))
    if "fails_at" in expected:
        assert run.error is not None
        assert run.error["step"] == expected["fails_at"]
        assert expected["because"] in run.error["message"]
        return
    assert run.success, run.error
    if "output" in expected:
        assert run.output == expected["output"]
    assert has(run.output, expected.get("output_has", {}) or run.output)
    asked = [
        {"provider": name, "model": turn.model, turn.messages[0].role: turn.messages[0].content}
        for name, model in models.items()
        for turn in model.turns
    ]
    assert asked == expected.get("asked", [])
    for call in expected.get("calls", []):
        assert servers[call["server"]].calls == [(call["tool"], call["arguments"])]
    assert [request.path for request in site.asked] == expected.get("requests", [])


def test_every_block_of_the_page_has_a_twin() -> None:
    twins = Counter(read(path)["heading"] for path in CASES)
    assert twins.keys() == BLOCKS.keys()
    lacking = {heading: count for heading, count in BLOCKS.items() if twins[heading] < count}
    assert lacking.keys() <= TOGETHER


@pytest.mark.parametrize(("heading", "keys"), KEYS.items())
def test_a_twin_says_all_that_its_block_says(heading: str, keys: set[str]) -> None:
    written = [
        load(case["ensemble"], file="f.yaml").data for case in map(read, CASES) if case["heading"] == heading
    ]
    assert any(keys <= twin.keys() for twin in written)


def has(value: Any, part: Any) -> bool:
    """Whether all that stands in the part stands in the value."""
    if isinstance(part, dict):
        return isinstance(value, dict) and all(has(value.get(key), inner) for key, inner in part.items())
    return bool(value == part)
