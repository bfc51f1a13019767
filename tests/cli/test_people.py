"""People who decide by the command line: about runs that are suspended, and in place at a terminal."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from luthier import Runtime
from luthier.clock import FakeClock
from tests.cli.test_terminal import at_terminal

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Cli

ASK = """
ensemble: careful
inputs: {text: {type: string, default: hello}}
agents:
  - name: ask
    operation: hitl
    config: {prompt: "Send ${input.text}?", data: {text: "${input.text}"}}
outputs: "${ask.output.reason} by ${ask.output.approver}"
"""
CHOOSE = """
ensemble: choose
agents:
  - {name: ask, operation: hitl, config: {prompt: Which?, schema: {enum: [pear, plum]}}}
  - name: greet
    operation: tools
    config: {mcp: greeter, tool: greet}
    input: {name: "${ask.output.answer}"}
outputs: ${greet.output}
"""


@pytest.fixture
def careful(project: Path) -> Path:
    (project / "ensembles" / "careful.yaml").write_text(ASK)
    (project / "ensembles" / "choose.yaml").write_text(CHOOSE)
    return project


def luthier(project: Path, *words: str) -> subprocess.Popen[str]:
    """The command in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "luthier", *words],
        cwd=project,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
    )


def finished(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=50)
    return process.returncode, out, err


def suspended(project: Path, ensemble: str) -> tuple[str, str]:
    """The ids of a run that waits, and of its request, as the message has them."""
    status, out, err = finished(luthier(project, "run", ensemble, "--durable"))
    assert (status, out) == (3, "")
    assert f"{ensemble} " in err
    assert "suspended: it waits for somebody" in err
    (approve,) = [line.split() for line in err.splitlines() if "luthier approvals approve" in line]
    (resume,) = [line.split() for line in err.splitlines() if "luthier runs resume" in line]
    return resume[-1], approve[3]


def waiting(cli: Cli) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(cli("approvals", "list", "--json").stdout)["requests"]
    return found


def test_a_run_waits_in_no_process_and_goes_on_in_another(careful: Path, cli: Cli) -> None:
    run, request = suspended(careful, "careful")
    (row,) = json.loads(cli("runs", "list", "--json").stdout)["runs"]
    assert (row["id"], row["status"], row["owner"]) == (run, "suspended", "")
    assert row["waiting"][0]["prompt"] == "Send hello?"
    assert "Send hello?" in cli("approvals", "list").stdout
    shown = cli("approvals", "show", request).stdout
    assert "step 'ask' asks:\n  | Send hello?" in shown
    assert '/text = "hello"' in shown
    early = cli("runs", "resume", run)
    assert early.exit_code == 1
    assert "waits for somebody" in early.output
    status, out, _ = finished(luthier(careful, "approvals", "approve", request, "-m", "It is kind."))
    assert (status, out) == (0, f"approved: step 'ask' of run {run} ({request})\n")
    again = cli("approvals", "approve", request)
    assert again.exit_code == 3
    assert "decided already" in again.output
    done = cli("runs", "resume", run)
    assert done.exit_code == 0
    assert done.stdout.startswith("It is kind. by operator (cli, ")
    assert waiting(cli) == []
    assert "has ended" in cli("runs", "resume", run).output


def test_where_nobody_can_be_asked_it_says_what_to_do(careful: Path, cli: Cli) -> None:
    done = cli("run", "careful")
    assert done.exit_code == 3
    assert "--durable" in done.stderr
    assert waiting(cli) == []


def test_the_answer_is_checked_and_the_run_goes_on_with_it(careful: Path, cli: Cli) -> None:
    _, request = suspended(careful, "choose")
    assert '{"enum": ["pear", "plum"]}' in cli("approvals", "show", request).stdout
    for words in ((), ("--answer", "stone")):
        wrong = cli("approvals", "approve", request, *words)
        assert wrong.exit_code == 1
        assert "answer" in wrong.output
    done = cli("approvals", "approve", request, "--answer", "plum", "--resume")
    assert (done.exit_code, done.stdout) == (0, "Hello, plum\n")
    assert "approved: step 'ask'" in done.stderr


def test_a_no_ends_the_run_with_its_reason(careful: Path, cli: Cli) -> None:
    _, request = suspended(careful, "careful")
    done = cli("approvals", "deny", request, "--reason", "Not now.", "--resume", "--json")
    assert done.exit_code == 3
    assert json.loads(done.stdout)["error"]["reason"] == "Not now."


def test_a_token_decides_in_place_of_an_id_once(careful: Path, cli: Cli) -> None:
    run, request = suspended(careful, "careful")
    token = cli("approvals", "token", request).stdout.strip()
    assert token.startswith("hitl_")
    assert "token" not in waiting(cli)[0]
    assert cli("approvals", "approve", token).exit_code == 0
    again = cli("approvals", "deny", token)
    assert again.exit_code == 2
    assert "decides once" in again.output
    assert token not in again.output
    assert cli("runs", "resume", run).exit_code == 0


def test_of_processes_that_resume_at_once_one_goes_on(careful: Path, cli: Cli) -> None:
    run, request = suspended(careful, "choose")
    cli("approvals", "approve", request, "--answer", "pear")
    ends = [finished(one) for one in [luthier(careful, "runs", "resume", run) for _ in range(3)]]
    assert sorted((status, out) for status, out, _ in ends if status == 0) == [(0, "Hello, pear\n")]
    assert all("another process" in err or "has ended" in err for status, _, err in ends if status)


def test_a_call_that_is_asked_for_is_made_after_the_approval(careful: Path, cli: Cli) -> None:
    with (careful / "luthier.yaml").open("a") as file:
        file.write("policies: [{when: {tool: 'mcp://greeter/*'}, then: ask, reason: Be kind.}]\n")
    _, request = suspended(careful, "hello")
    done = cli("approvals", "approve", request, "--resume")
    assert done.exit_code == 0
    assert json.loads(done.stdout)["greeting"] == "Hello, world"


def test_cancelled_it_asks_nobody_any_more(careful: Path, cli: Cli) -> None:
    run, _ = suspended(careful, "careful")
    assert cli("runs", "cancel", run).stdout == f"cancelled: careful ({run})\n"
    assert waiting(cli) == []


@pytest.mark.parametrize(("typed", "shown"), [("y\n", "by operator (terminal, "), ("no\n", "said no")])
def test_a_question_is_put_at_the_terminal(careful: Path, typed: str, shown: str) -> None:
    seen = at_terminal(careful, "run", "careful", typed=typed)
    assert "| Send hello?" in seen
    assert '/text = "hello"' in seen
    assert shown in seen


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        ("plum\n", "Hello, plum"),
        ('stone\n"pear"\n', "Hello, pear"),
        ("\n", "said no"),
        ("a\nb\nc\n", "said no"),
    ],
)
def test_an_answer_is_typed_at_the_terminal_and_asked_for_again_if_need_be(
    careful: Path, typed: str, shown: str
) -> None:
    assert shown in at_terminal(careful, "run", "choose", typed=typed)


def test_what_nobody_decided_about_in_time_is_shown_as_expired(careful: Path, cli: Cli) -> None:
    async def suspended() -> str:
        runtime = Runtime.open(careful / "luthier.yaml", clock=FakeClock(time.time() - 2 * 86_400))
        try:
            return (await runtime.run("careful", durable=True)).id
        finally:
            await runtime.close()

    run = asyncio.run(suspended())
    for words in (("runs", "list"), ("approvals", "list")):
        line = cli(*words).stdout
        assert run in line
        assert "expired" in line
    (row,) = json.loads(cli("runs", "list", "--json").stdout)["runs"]
    assert (row["status"], row["expired"]) == ("suspended", True)
    (request,) = json.loads(cli("approvals", "list", "--json").stdout)["requests"]
    refused = cli("approvals", "approve", request["id"])
    assert (refused.exit_code, "has expired" in refused.output) == (3, True)
    assert cli("runs", "resume", run).exit_code == 3
    assert cli("approvals", "list").stdout == ""
    assert "failed" in cli("runs", "list").stdout
