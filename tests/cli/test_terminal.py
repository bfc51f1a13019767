"""What a person at a terminal sees: a line for each step, tables, colour; and how to do without."""

from __future__ import annotations

import io
import json
import os
import pty
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from luthier import events
from luthier.cli.live import Board
from luthier.uri import ToolUri

BOUND = 30.0
URI = ToolUri.mcp("git", "git_log")


def drawn(board: Board) -> str:
    console = Console(file=io.StringIO(), width=120, force_terminal=False, color_system=None)
    console.print(board)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_the_board_has_a_line_for_each_step_and_says_how_it_goes() -> None:
    board = Board()
    board.notify(events.RunBegan(at=0, run="r", ensemble="e", steps=("a", "b", "c")))
    board.notify(events.StepBegan(at=0, run="r", step="a", operation="tools"))
    board.notify(events.StepBegan(at=0, run="r", step="b", operation="tools", attempt=2))
    board.notify(
        events.CallProgressed(
            at=0, call_id="1", uri=URI, progress=3, message="half\x1b[2J", run="r", step="a"
        )
    )
    board.notify(events.StepDone(at=0, run="r", step="c", status="skipped", duration=0, reason="not needed"))
    board.notify(events.ServerReady(at=0, server="s", protocol="2026-07-28", seconds=0.1))
    lines = drawn(board).splitlines()
    assert len(lines) == 3
    assert "half\\x1b[2J" in lines[0]
    assert "attempt 2" in lines[1]
    assert lines[2].startswith("- c")
    board.notify(events.StepDone(at=0, run="r", step="a", status="ok", duration=420))
    board.notify(events.StepDone(at=0, run="r", step="b", status="failed", duration=7, reason="broke"))
    lines = drawn(board).splitlines()
    assert lines[0].split() == ["✓", "a", "0.42", "s"]
    assert "broke" in lines[1]


def test_progress_without_a_message_shows_the_number_and_for_an_unknown_step_nothing() -> None:
    board = Board()
    board.notify(events.CallProgressed(at=0, call_id="1", uri=URI, progress=3, run="r", step="a"))
    assert drawn(board).strip() == ""
    board.notify(events.StepBegan(at=0, run="r", step="a", operation="tools"))
    board.notify(events.CallProgressed(at=0, call_id="1", uri=URI, progress=3, run="r", step="a"))
    assert " 3" in drawn(board)


def test_steps_of_a_nested_run_are_indented() -> None:
    board = Board()
    board.notify(events.RunBegan(at=0, run="outer", ensemble="o", steps=()))
    board.notify(events.RunBegan(at=0, run="inner", ensemble="i", steps=(), parent="outer"))
    board.notify(events.StepDone(at=0, run="inner", step="deep", status="ok", duration=0))
    assert "   deep" in drawn(board)


def at_terminal(folder: Path, *words: str, typed: str = "", early: bool = False, **environ: str) -> str:
    """What the command writes when stdout and stderr are a terminal, and stdin where something is typed."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "luthier", *words],
        cwd=folder,
        stdout=theirs,
        stderr=theirs,
        stdin=theirs if typed else subprocess.DEVNULL,
        env=os.environ | {"TERM": "xterm", "COLUMNS": "120"} | environ,
    )
    os.close(theirs)
    if early:
        os.write(ours, typed.encode())
    seen = b""
    try:
        while chunk := os.read(ours, 65536):
            seen += chunk
            if typed and not early and b"[no] " in seen:
                os.write(ours, typed.encode())
                typed = ""
    except OSError:
        pass  # the other end is closed: the command has ended
    finally:
        os.close(ours)
        process.wait(BOUND)
    return seen.decode()


def test_a_run_at_a_terminal_shows_its_steps_and_its_result(project: Path) -> None:
    seen = at_terminal(project, "run", "hello")
    assert "greeting" in seen
    assert "✓" in seen
    assert "Hello, world" in seen


def test_a_list_at_a_terminal_is_a_table_with_a_head(project: Path) -> None:
    seen = at_terminal(project, "servers", "list")
    assert "reached by" in seen
    assert "\t" not in seen


ASKING = """
policies:
  rules:
    - {name: greetings, when: {tool: "mcp://greeter/*", argument: /name}, then: ask, reason: Be kind.}
"""


@pytest.mark.parametrize(("typed", "said"), [("yes\n", "Hello, Al"), ("n\n", "operator said no")])
@pytest.mark.parametrize(
    "words", [("call", "mcp://greeter/greet", "-a", "name=Al"), ("run", "hello", "-i", "name=Al")]
)
def test_a_person_at_a_terminal_is_asked_in_place(
    project: Path, words: tuple[str, ...], typed: str, said: str
) -> None:
    with (project / "luthier.yaml").open("a") as file:
        file.write(ASKING)
    seen = at_terminal(project, *words, typed=typed)
    assert "mcp://greeter/greet wants an approval: Be kind." in seen
    assert '/name = "Al"' in seen
    assert "luthier.yaml:" in seen
    assert said in seen


def test_what_was_typed_before_the_question_is_no_answer(project: Path) -> None:
    with (project / "luthier.yaml").open("a") as file:
        file.write(ASKING + "approval_timeout: 1000\n")
    seen = at_terminal(project, "call", "mcp://greeter/greet", "-a", "name=Al", typed="yes\n", early=True)
    assert "wants an approval" in seen
    assert "Hello, Al" not in seen


@pytest.mark.parametrize(("no_color", "painted"), [("", True), ("1", False)])
def test_faults_are_painted_unless_no_color_is_set(project: Path, no_color: str, painted: bool) -> None:  # noqa: FBT001
    seen = at_terminal(project, "run", "hallo", NO_COLOR=no_color)
    assert ("\x1b[1;31m" in seen) is painted
    assert "hello" in seen


def test_a_reader_that_goes_away_ends_the_printing_without_a_traceback(project: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "luthier", "tools", "show", "mcp://greeter/greet"],
        cwd=project,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    said = process.stderr.read()
    process.wait(BOUND)
    process.stderr.close()
    assert b"Traceback" not in said


def run(folder: Path, *words: str | bytes, **streams: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "luthier", *words]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | streams
    return subprocess.run(command, cwd=folder, text=True, timeout=BOUND, check=False, **streams)


def test_a_full_disk_behind_stdout_is_told_and_fails_the_command(project: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = run(project, "servers", "list", stdout=full)
    assert done.returncode == 1
    assert "cannot be written to stdout" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_stdout_that_knows_only_ascii_gets_question_marks(project: Path) -> None:
    environ = os.environ | {"PYTHONIOENCODING": "ascii"}
    done = run(project, "call", "mcp://greeter/greet", "-a", "name=Zoë", env=environ)
    assert (done.returncode, done.stdout) == (0, "Hello, Zo?\n")


@pytest.mark.parametrize("closed", ["0<&-", "1>&-", "2>&-", "0<&- 1>&- 2>&-"])
@pytest.mark.parametrize(
    "words", ["call mcp://greeter/greet -a name=Al", "tools list greeter", "doctor", "--help", "--version"]
)
def test_a_stream_that_is_closed_brings_no_traceback(project: Path, words: str, closed: str) -> None:
    line = f'exec "$0" -m luthier {words} {closed}'
    done = subprocess.run(
        ["sh", "-c", line, sys.executable],
        cwd=project,
        capture_output=True,
        text=True,
        timeout=BOUND,
        check=False,
    )
    lost = "1>&-" in closed
    assert (done.returncode, done.stdout == "") == ((1, True) if lost else (0, False)), done.stderr
    told = "cannot be written to stdout: it is closed\n"
    assert done.stderr.endswith(told) if lost and "2>&-" not in closed else not done.stderr


def test_no_file_gets_the_number_of_a_closed_stream(project: Path) -> None:
    (project / "scripts" / "shout.py").write_text(
        "import os\n\n\ndef run(context):\n    return [os.readlink(f'/proc/self/fd/{n}') for n in range(3)]\n"
    )
    line = 'exec "$0" -m luthier run hello <&- 2>&-'
    done = subprocess.run(
        ["sh", "-c", line, sys.executable], cwd=project, capture_output=True, timeout=BOUND, check=True
    )
    stdin, _, stderr = json.loads(done.stdout)["shouted"]
    assert (stdin, stderr) == ("/dev/null", "/dev/null")


def test_values_that_cannot_be_carried_are_told_in_one_line(project: Path) -> None:
    deep = run(project, "run", "hello", "-i", "more=" + "[" * 5000)
    assert "Traceback" not in deep.stderr
    odd = run(project, "call", "mcp://greeter/greet", "-a", b"name=\xff", b"-a", b"n\xff=1")
    assert odd.returncode == 2
    assert odd.stderr == "error: name: this is not UTF-8 text\nerror: n\\udcff: this is not UTF-8 text\n"


def test_the_name_of_a_file_cannot_steer_the_terminal(project: Path) -> None:
    (project / "ensembles" / "a\nb\x1b[31m\u202e.yaml").write_text("agents: 1\n")
    done = run(project, "check")
    assert done.stderr.startswith("ensembles/a b\\x1b[31m\\u202e.yaml:1:9: error: ")


def test_a_record_that_cannot_be_kept_does_not_take_the_result_with_it(project: Path) -> None:
    assert run(project, "run", "hello").returncode == 0
    with closing(sqlite3.connect(project / ".luthier" / "luthier.db")) as store:
        store.execute("DROP TABLE run_entries")
    done = run(project, "run", "hello")
    assert done.returncode == 0
    assert "could not be kept" in done.stderr
    assert "Traceback" not in done.stderr


def test_files_are_kept_in_the_folder_that_a_tilde_means(project: Path, tmp_path: Path) -> None:
    (project / "luthier.yaml").write_text("storage: {files: ~/kept}\n")
    home = tmp_path / "home"
    put = ("-a", "action=write", "-a", "path=a.txt", "-a", "content=hi")
    done = run(project, "call", "builtin://storage/files", *put, env=os.environ | {"HOME": str(home)})
    assert (home / "kept" / "a.txt").read_text() == "hi", done.stderr


def test_a_working_directory_that_is_gone_is_told_in_one_line(tmp_path: Path) -> None:
    line = f'mkdir gone && cd gone && rmdir ../gone && "{sys.executable}" -m luthier check'
    done = subprocess.run(
        ["sh", "-c", line], cwd=tmp_path, capture_output=True, text=True, timeout=BOUND, check=False
    )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr


def test_a_pipe_among_the_audit_segments_is_passed_over(project: Path) -> None:
    (project / ".luthier" / "audit").mkdir(parents=True)
    os.mkfifo(project / ".luthier" / "audit" / "0.jsonl")
    assert run(project, "audit", "tail").returncode == 0
    assert run(project, "call", "mcp://greeter/greet", "-a", "name=Al").returncode == 0


EARLY = """
import os, signal
import luthier.cli, luthier.cli.app

luthier.cli.app.app = lambda **_: os.kill(os.getpid(), signal.SIGINT)
luthier.cli.main()
"""


def test_an_interrupt_before_the_work_begins_ends_with_its_status(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", EARLY],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=BOUND,
        check=False,
    )
    assert (done.returncode, done.stderr) == (130, "")


def test_an_audit_log_whose_files_are_pipes_is_not_waited_for(project: Path) -> None:
    os.mkfifo(project / "pipe")
    for key in ("key_file", "checkpoints"):
        (project / "luthier.yaml").write_text(f"audit: {{{key}: pipe}}\n")
        done = run(project, "call", "builtin://storage/files", "-a", "action=list")
        assert done.returncode == 1
        assert f"{project / 'pipe'}" in done.stderr


def test_files_of_tools_that_are_not_there_are_faults_in_files(project: Path) -> None:
    (project / "luthier.yaml").write_text("custom_tools: [scripts/none.py]\n")
    done = run(project, "tools", "list")
    assert done.returncode == 2
    assert done.stderr == f"error: `custom_tools`: there is no file scripts/none.py in {project}.\n"


@pytest.mark.parametrize(
    "words", ["run hello -i name=@/dev/zero", "run hello --replay /dev/zero", "secrets set big </dev/zero"]
)
def test_what_has_no_end_is_not_read_to_it(project: Path, words: str) -> None:
    line = f'ulimit -v 4000000; exec "$0" -m luthier {words}'
    done = subprocess.run(
        ["sh", "-c", line, sys.executable],
        cwd=project,
        capture_output=True,
        text=True,
        timeout=BOUND,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert "larger" in done.stderr
