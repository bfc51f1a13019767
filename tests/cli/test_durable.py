"""`run --durable`, `runs resume` and `runs cancel`, with signals and between processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.cli.test_stopping import BOUND, server_pid

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Cli

CAREFUL = """
ensemble: careful
agents:
  - {name: greet, operation: tools, config: {mcp: greeter, tool: greet}, input: {name: Al}}
  - {name: after, operation: transform, config: {value: "${greet.output}"}}
  - {name: tidy, operation: code, config: {script: scripts/tidy.py}}
flow:
  - try: {steps: [greet, after], finally: [tidy]}
outputs: ${after.output}
"""
STUCK = """
    if method == "tools/call" and os.path.exists("called"):
        with open("called", "w") as pipe:
            pipe.write(str(os.getpid()))
        sys.stdin.read()  # until whoever asked is gone
"""
TIDY = "def run(context):\n    with open('tidied', 'a') as file:\n        file.write('x')\n"


@pytest.fixture
def careful(project: Path) -> Path:
    (project / "ensembles" / "careful.yaml").write_text(CAREFUL)
    (project / "scripts").mkdir(exist_ok=True)
    (project / "scripts" / "tidy.py").write_text(TIDY)
    greeter = project / "servers" / "greeter.py"
    head = "def answer(method, params):"
    greeter.write_text(
        greeter.read_text().replace(head, head + STUCK).replace("import sys", "import os, sys")
    )
    file = project / "luthier.yaml"
    file.write_text(file.read_text().replace("read_only: [greet]", "read_only: []"))
    return project


def interrupted(
    project: Path, number: signal.Signals = signal.SIGTERM, *, name: str = "careful"
) -> tuple[str, int]:
    """The id of a durable run that a signal has interrupted in its call, and the exit status."""
    process = begun(project, name)
    server_pid(project)
    process.send_signal(number)
    _, err = process.communicate(timeout=BOUND)
    (project / "called").unlink()
    assert "Traceback" not in err
    (told,) = [line for line in err.splitlines() if "luthier runs resume" in line]
    return told.split()[-1], process.returncode


def begun(project: Path, name: str = "careful") -> subprocess.Popen[str]:
    """A process with a durable run, whose server has the call and does not answer."""
    os.mkfifo(project / "called")
    return subprocess.Popen(
        [sys.executable, "-m", "luthier", "run", name, "--durable", "--json"],
        cwd=project,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def rows(cli: Cli) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(cli("runs", "list", "--json").stdout)["runs"]
    return found


def test_a_durable_run_prints_what_any_other_prints(careful: Path, cli: Cli) -> None:
    done = cli("run", "careful", "--durable")
    assert (done.exit_code, done.stdout) == (0, "Hello, Al\n")
    (row,) = rows(cli)
    assert (row["status"], row["durable"], row["owner"], row["interrupted"]) == ("ok", True, "", False)
    again = cli("runs", "resume", row["id"])
    assert again.exit_code == 1
    assert "has ended: ok" in again.output
    assert cli("runs", "cancel", row["id"]).exit_code == 1


def test_a_mocked_run_cannot_be_durable(careful: Path, cli: Cli) -> None:
    done = cli("run", "careful", "--durable", "--mock", "greeter:greet=hi")
    assert done.exit_code == 2
    assert "--durable" in done.output


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_leaves_it_to_be_gone_on_with(
    careful: Path, cli: Cli, number: signal.Signals, status: int
) -> None:
    run, exit_status = interrupted(careful, number)
    assert exit_status == status
    assert not (careful / "tidied").exists()  # the run has not ended
    (row,) = rows(cli)
    assert (row["id"], row["status"], row["owner"], row["interrupted"]) == (run, "running", "", True)
    assert "interrupted" in cli("runs", "list").stdout
    assert "interrupted" in cli("runs", "show", run).stdout
    done = cli("runs", "resume", run, "--json")
    document = json.loads(done.stdout)
    assert document["error"]["kind"] == "unknown"  # nobody knows what became of the call
    assert "tools.idempotent" in done.stdout
    assert (careful / "tidied").read_text() == "x"
    assert rows(cli)[0]["status"] == "failed"


def test_a_call_that_may_be_made_twice_is(careful: Path, cli: Cli) -> None:
    run, _ = interrupted(careful)
    file = careful / "luthier.yaml"
    file.write_text(file.read_text().replace("read_only: []", "idempotent: [greet]"))
    done = cli("runs", "resume", run)
    assert (done.exit_code, done.stdout) == (0, "Hello, Al\n")


def test_a_changed_ensemble_is_refused_with_what_to_do(careful: Path, cli: Cli) -> None:
    run, _ = interrupted(careful)
    file = careful / "ensembles" / "careful.yaml"
    file.write_text(CAREFUL.replace("name: Al", "name: Bo"))
    done = cli("runs", "resume", run)
    assert done.exit_code == 1
    assert "was changed since" in done.output
    assert f"luthier runs cancel {run}" in done.output
    ended = cli("runs", "cancel", run)
    assert (ended.exit_code, ended.stdout) == (0, f"cancelled: careful ({run})\n")
    assert not (careful / "tidied").exists()  # nobody knows how


def test_what_is_changed_inside_is_refused_too_and_can_be_brought_back(careful: Path, cli: Cli) -> None:
    file, outer = careful / "ensembles" / "careful.yaml", careful / "ensembles" / "outer.yaml"
    outer.write_text("agents: [{name: inside, operation: ensemble, config: {ensemble: careful}}]\n")
    run, _ = interrupted(careful, name="outer")
    file.write_text(CAREFUL.replace("name: Al", "name: Bo"))
    done = cli("runs", "resume", run)
    assert (done.exit_code, f"luthier runs cancel {run}" in done.output) == (1, True)
    file.unlink()
    assert "careful" in cli("runs", "resume", run).output
    file.write_text(CAREFUL)
    again = cli("runs", "resume", run, "--json")
    assert json.loads(again.stdout)["error"]["kind"] == "unknown"  # it went on


def test_one_that_is_interrupted_is_cancelled_with_its_finally(careful: Path, cli: Cli) -> None:
    run, _ = interrupted(careful)
    ended = cli("runs", "cancel", run, "--json")
    assert json.loads(ended.stdout)["status"] == "cancelled"
    assert (careful / "tidied").read_text() == "x"
    assert rows(cli)[0]["status"] == "cancelled"


def test_one_that_goes_on_in_another_process_is_kept_by_it_and_ended_by_it(careful: Path, cli: Cli) -> None:
    process = begun(careful)
    server_pid(careful)
    (row,) = rows(cli)
    assert (row["status"], row["interrupted"]) == ("running", False)
    told = cli("runs", "resume", row["id"])
    assert told.exit_code == 1
    assert "goes on in another process" in told.output
    assert cli("runs", "cancel", row["id"]).stdout == f"cancelled: careful ({row['id']})\n"
    out, _ = process.communicate(timeout=BOUND)
    assert process.returncode == 1
    assert json.loads(out)["error"]["kind"] == "cancelled"
    assert (careful / "tidied").read_text() == "x"
