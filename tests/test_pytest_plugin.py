"""The fixtures for users' tests, in a pytest of their own."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

from tests.test_cold import loaded

if TYPE_CHECKING:
    import pytest

pytest_plugins = "pytester"

ENSEMBLE = """\
agents:
  - {name: read, operation: tools, config: {mcp: web, tool: fetch}}
  - {name: say, operation: think, config: {provider: anthropic, model: m, prompt: "Sum up ${read.output}"}}
outputs: ${say.output}
"""

TESTS = """
import asyncio

from luthier.testing import Delay


def test_mocks_and_model_are_those_of_the_project(luthier_project, luthier_mocks, scripted_model):
    luthier_mocks["web:fetch"] = "a page"
    scripted_model.then("short", "shorter")
    assert luthier_project.play("digest").output == "short"
    assert luthier_project.play("digest").output == "shorter"
    assert "a page" in scripted_model.turns[0].messages[0].content


def test_the_clock_is_turned_by_hand(luthier_project, luthier_mocks, scripted_model, fake_clock):
    luthier_mocks["web:fetch"] = Delay(20, "late")
    scripted_model.then("done")

    async def play():
        running = asyncio.create_task(luthier_project.execute_ensemble("digest"))
        while not running.done():
            await fake_clock.advance(1)
        return await running

    assert asyncio.run(play()).output == "done"
    assert fake_clock.monotonic() >= 20


def test_what_is_not_mocked_stays_out(luthier_project):
    luthier_project.play("digest")
"""


def test_the_fixtures_serve_a_project(pytester: pytest.Pytester) -> None:
    pytester.makefile(".yaml", luthier="mcpServers: {web: {url: 'https://web.example.com/mcp'}}\n")
    pytester.mkdir("ensembles").joinpath("digest.yaml").write_text(ENSEMBLE)
    pytester.mkdir("tests").joinpath("test_it.py").write_text(TESTS)
    done = pytester.runpytest_subprocess("-p", "no:asyncio", "-p", "luthier.pytest_plugin", "-W", "error")
    done.assert_outcomes(passed=2, failed=1)
    done.stdout.fnmatch_lines(["*'web' is not mocked*"])


def test_a_test_outside_of_every_project_is_told_so(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_it(luthier_project): pass")
    done = pytester.runpytest_subprocess("-p", "no:asyncio", "-p", "luthier.pytest_plugin")
    done.assert_outcomes(errors=1)
    done.stdout.fnmatch_lines(["*lies in no project*"])


def test_the_plugin_loads_nothing_before_a_fixture_is_asked_for() -> None:
    rooms = {"msgspec", "lark", "aiohttp", "sqlalchemy", "ruamel", "jsonschema_rs", "typer"}
    assert loaded("import luthier.pytest_plugin") & rooms == set()


def test_the_plugin_is_announced_to_pytest() -> None:
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    # Its name is its module's, so that `-p` and the announcement load it once.
    assert project["entry-points"]["pytest11"] == {"luthier.pytest_plugin": "luthier.pytest_plugin"}
