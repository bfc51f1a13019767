"""`luthier serve` as hosts start it: a real process, real pipes, real signals."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from typer.testing import CliRunner

from luthier.cli.app import app
from luthier.serve import token_hash

if TYPE_CHECKING:
    from pathlib import Path

BOUND = 20.0
TOKEN = "t" * 40
PRINTS = (
    'import os\n\n\ndef run(context):\n    print("to nobody")\n    os.write(1, b"to nobody")\n    return 1\n'
)
NOISY = """
trigger: {type: mcp}
agents:
  - {name: noise, operation: code, config: {script: scripts/prints}}
  - {name: greeting, operation: tools, config: {mcp: greeter, tool: greet}, input: {name: Ada}}
outputs: ${greeting.output}
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """What `luthier init` writes, with something to serve."""
    before = os.getcwd()  # noqa: PTH109  (as text, to go back to)
    os.chdir(tmp_path)
    try:
        CliRunner().invoke(app, ["init"], prog_name="luthier")
    finally:
        os.chdir(before)
    (tmp_path / "scripts" / "prints.py").write_text(PRINTS)
    (tmp_path / "ensembles" / "noisy.yaml").write_text(NOISY)
    with (tmp_path / "luthier.yaml").open("a") as file:
        file.write(f"serve: {{clients: {{ci: '{token_hash(TOKEN)}'}}}}\n")
    return tmp_path


def started(project: Path, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "luthier", "serve", *words],
        cwd=project,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def url_of(process: subprocess.Popen[str]) -> str:
    """Where it says that it serves."""
    assert process.stderr is not None
    assert select.select([process.stderr], [], [], BOUND)[0]
    return process.stderr.readline().removeprefix("serving at ").strip()


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_the_official_client_starts_it_and_calls(project: Path, mode: Any) -> None:
    command = StdioServerParameters(
        command=sys.executable, args=["-m", "luthier", "serve", "--stdio"], cwd=project
    )
    async with asyncio.timeout(BOUND), Client(command, mode=mode) as peer:
        assert [tool.name for tool in (await peer.list_tools()).tools] == ["noisy"]
        result = await peer.call_tool("noisy")
    assert result.content[0].text == "Hello, Ada"  # type: ignore[union-attr]


def test_it_ends_when_its_host_closes_the_pipe(project: Path) -> None:
    with started(project, "--stdio") as process:
        out, _ = process.communicate("", timeout=BOUND)
    assert (process.returncode, out) == (0, "")


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_it_though_its_host_keeps_the_pipe(
    project: Path, number: signal.Signals, status: int
) -> None:
    with started(project, "--stdio") as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write('{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
        process.stdin.flush()
        assert process.stdout.readline()  # it answers, so it has started
        process.send_signal(number)
        assert process.wait(BOUND) == status


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
async def test_over_http_it_serves_until_a_signal(project: Path, number: signal.Signals, status: int) -> None:
    with started(project, "--http", "127.0.0.1:0") as process:
        url = await asyncio.to_thread(url_of, process)
        async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"}) as http:
            async with Client(streamable_http_client(url, http_client=http)) as peer:
                assert (await peer.call_tool("noisy")).content[0].text == "Hello, Ada"  # type: ignore[union-attr]
        process.send_signal(number)
        assert await asyncio.to_thread(process.wait, BOUND) == status


def test_a_signal_ends_it_though_nobody_reads_what_it_says(project: Path) -> None:
    with started(project, "--http", "127.0.0.1:0") as process:
        url_of(process)
        assert process.stderr is not None
        process.stderr.close()
        process.terminate()
        assert process.wait(BOUND) == 143


def test_without_a_token_it_does_not_start(project: Path) -> None:
    file = project / "luthier.yaml"
    file.write_text(file.read_text().partition("serve:")[0])
    with started(project, "--http", "127.0.0.1:0") as process:
        _, err = process.communicate(timeout=BOUND)
    assert process.returncode == 2
    assert "Nobody has a token" in err


def test_a_way_to_serve_must_be_said() -> None:
    for words in ([], ["--stdio", "--new-token"]):
        done = CliRunner().invoke(app, ["serve", *words], prog_name="luthier")
        assert (done.exit_code, done.stdout) == (2, "")


def test_a_new_token_is_printed_with_its_hash_apart() -> None:
    done = CliRunner().invoke(app, ["serve", "--new-token"], prog_name="luthier")
    token = done.stdout.strip()
    assert done.exit_code == 0
    assert token_hash(token) in done.stderr
    assert token not in done.stderr


def test_an_ensemble_with_faults_is_named_at_the_start(project: Path) -> None:
    (project / "ensembles" / "bad.yaml").write_text("a: 1\n")
    with started(project, "--stdio") as process:
        _, err = process.communicate("", timeout=BOUND)
    assert "bad is not offered" in err
