"""Every form that the `tools` page writes has a twin in tests/cases/seeds/, run against servers in memory."""

from __future__ import annotations

import asyncio
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

HEADINGS = {
    "Basic Usage",
    "Configuration / Agent Config",
    "Configuration / Input",
    "Configuration / Output",
    "MCP Server Examples / GitHub MCP",
    "MCP Server Examples / Brave Search MCP",
    "MCP Server Examples / Custom MCP Server",
    "Common Patterns / Sequential Tool Calls",
    "Common Patterns / Parallel Tool Calls",
    "Common Patterns / Tool with Fallback",
    "Common Patterns / Caching Tool Discovery",
    "Error Handling / Tool Invocation Errors",
    "Error Handling / Check Tool Errors",
    "Error Handling / Timeout Handling",
    "Best Practices / 1. Set Appropriate Timeouts",
    "Best Practices / 2. Cache Tool Discovery",
    "Best Practices / 3. Handle Tool Failures",
    "Best Practices / 4. Use Typed Inputs",
    "Best Practices / 5. Document Tool Usage",
}


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
    asked = [
        {"provider": name, "model": turn.model, turn.messages[0].role: turn.messages[0].content}
        for name, model in models.items()
        for turn in model.turns
    ]
    assert asked == expected.get("asked", [])
    for call in expected.get("calls", []):
        assert servers[call["server"]].calls == [(call["tool"], call["arguments"])]
    assert [request.path for request in site.asked] == expected.get("requests", [])


def test_every_heading_of_the_page_within_these_operations_has_a_twin() -> None:
    assert {read(path)["heading"] for path in CASES} == HEADINGS
