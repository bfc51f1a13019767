"""`luthier serve` in the hands of a host's own client, FastMCP's: in both eras, over pipes and over HTTP."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

FASTMCP = os.environ.get("LUTHIER_FASTMCP", "")
CLIENT = Path(__file__).parent / "clients" / "fastmcp_client.py"
PROJECT = Path(__file__).parent.parent / "conformance" / "project"
TOKEN = "t" * 40
BOUND = 60.0

pytestmark = pytest.mark.skipif(not FASTMCP, reason="LUTHIER_FASTMCP is not set: no FastMCP here")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The project that the conformance suite is shown."""
    return Path(shutil.copytree(PROJECT, tmp_path / "project"))


@pytest.fixture
def url(project: Path) -> Iterator[str]:
    process = subprocess.Popen(
        [sys.executable, "-m", "luthier", "serve", "--http", "127.0.0.1:0"],
        cwd=project,
        env={**os.environ, "SUITE_TOKEN": TOKEN},
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stderr is not None
        assert select.select([process.stderr], [], [], BOUND)[0]
        yield process.stderr.readline().removeprefix("serving at ").strip()
        process.terminate()


def seen(project: Path, *words: str) -> dict[str, Any]:
    done = subprocess.run(
        [f"{FASTMCP}/bin/python", str(CLIENT), *words],
        capture_output=True,
        text=True,
        timeout=BOUND,
        cwd=project,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def judge(project: Path, found: dict[str, Any]) -> None:
    assert {"greeting", "test_simple_text", "test_sampling"} <= set(found["tools"])
    assert found["promise"]["required"] == ["said"]
    assert found["structured"] == {"said": "Hello, Ada!"}
    assert {"luthier/label", "luthier/run"} <= set(found["meta"])
    assert found["steps"] == [[1, 2, "step greet: ok"], [2, 2, "step again: ok"]]
    assert found["wrong"] is True
    assert found["error"] == [True, "RuntimeError: This tool intentionally returns an error for testing"]
    assert found["asked"] == "Hello, What is your name?!"
    assert found["prompt"] == "Prompt with arguments: arg1='a', arg2='b'"
    assert found["resource"] == "This is the content of the static text resource."
    until = time.monotonic() + BOUND
    while not (project / "called_off").exists():  # by another process: there is nothing to await
        assert time.monotonic() < until, "the call that was given up goes on"
        time.sleep(0.02)


@pytest.mark.parametrize("era", ["legacy", "auto"])
def test_over_http(project: Path, url: str, era: str) -> None:
    judge(project, seen(project, era, "http", url, TOKEN))


@pytest.mark.parametrize("era", ["legacy", "auto"])
def test_over_pipes(project: Path, era: str) -> None:
    judge(project, seen(project, era, "stdio", sys.executable, "-m", "luthier", "serve", "--stdio"))
