"""Strict tests keep everything inside the process: nothing is started, no socket is opened."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from luthier.errors import MockError
from luthier.testing import ScriptedModel, TestConductor
from tests.testing.project import write
from tests.uncounted import uncounted

if TYPE_CHECKING:
    from pathlib import Path

CONFIG = """\
mcpServers:
  github: {command: python, args: [none.py]}
  archive: {url: "https://archive.example.com/mcp"}
"""

# Hooks cannot be taken out again, so this runs in an interpreter of its own.
WATCHED = """
import asyncio, json, sys
from luthier.testing import ScriptedModel, TestConductor
from luthier.errors import MockError

async def main():
    left = []
    watched = ("subprocess.Popen", "os.posix_spawn", "os.fork", "os.forkpty", "os.exec", "os.system",
               "socket.connect", "socket.bind", "socket.getaddrinfo", "socket.sendto")
    sys.addaudithook(lambda event, args: left.append(event) if event in watched else None)
    conductor = await TestConductor.create(project_path=sys.argv[1], strict=True, mocks={"tools": {
        "github:get_pull_request": {"number": 1}, "github:search": {"failed": True, "error": "off"}}})
    result = await conductor.execute_ensemble("github-pr-analyzer")
    try:
        await conductor.execute_ensemble("fallback", q="x")
        missed = ""
    except MockError as error:
        missed = str(error)
    print(json.dumps({"left": left, "output": result.output, "missed": missed}))

asyncio.run(main())
"""


def test_nothing_leaves_the_process(tmp_path: Path) -> None:
    write(tmp_path, CONFIG)
    done = subprocess.run(
        [sys.executable, "-c", WATCHED, str(tmp_path)],
        env=uncounted(),
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["left"] == []
    assert told["output"] == {"pr_data": {"number": 1}}
    assert "'archive' is not mocked" in told["missed"]


async def test_a_server_that_nobody_configured_is_named_too(tmp_path: Path) -> None:
    conductor = await TestConductor.create(project_path=write(tmp_path), strict=True)
    with pytest.raises(MockError, match="'github' is not mocked"):
        await conductor.execute_ensemble("github-pr-analyzer")


async def test_tools_of_the_test_itself_are_called(tmp_path: Path) -> None:
    def double(n: int) -> int:
        """Twice."""
        return 2 * n

    conductor = await TestConductor.create(project_path=write(tmp_path), strict=True, tools=[double])
    assert (await conductor.call("custom://double", n=4)).content == 8
    assert [call.key for call in conductor.calls] == ["custom://double"]


ASKING = """\
agents:
  - {name: say, operation: think, config: {provider: anthropic, model: claude-x, prompt: "${input.q}"}}
outputs: ${say.output}
"""


async def test_a_model_is_asked_only_where_it_is_mocked(tmp_path: Path) -> None:
    write(tmp_path, asking=ASKING)
    conductor = await TestConductor.create(project_path=tmp_path, strict=True, env={"ANTHROPIC_API_KEY": "k"})
    with pytest.raises(MockError, match="builtin://model/anthropic was called"):
        await conductor.execute_ensemble("asking", q="hello")
    assert [call.outcome for call in conductor.calls] == ["refused"]


@pytest.mark.parametrize(
    "answers", [["hi"], {"anthropic": ["hi"]}, {"anthropic": ScriptedModel(["hi"])}, lambda _: "hi"]
)
async def test_mocked_models_answer_from_a_script(tmp_path: Path, answers: object) -> None:
    write(tmp_path, asking=ASKING)
    conductor = await TestConductor.create(project_path=tmp_path, strict=True, mocks={"ai": answers})
    assert (await conductor.execute_ensemble("asking", q="hello")).output == "hi"
    assert [call.key for call in conductor.calls] == ["builtin://model/anthropic"]
