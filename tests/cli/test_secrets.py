"""Stored secrets from the command line: set without being shown, listed by name, rotated, used, forgotten."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Cli

CANARY = "cli-canary-0123456789"

SHOWING = """
import os, sys
sys.stderr.write("got " + str(len(os.environ["API_KEY"])) + " " + os.environ["API_KEY"])
sys.exit(3)
"""


@pytest.fixture
def home(folder: Path) -> Path:
    (folder / "luthier.yaml").write_text(
        "mcpServers:\n"
        "  git: {command: python, args: [s.py], env: {API_KEY: '${secret:git}'}, max_retries: 0}\n"
    )
    (folder / "s.py").write_text(SHOWING)
    return folder


def written(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_a_secret_is_set_listed_rotated_and_removed(cli: Cli, home: Path) -> None:
    assert cli("secrets", "list").stdout == ""
    done = cli("secrets", "set", "git", stdin=f"{CANARY}\n")
    assert (done.exit_code, done.stdout) == (0, "set: git\n")
    assert cli("secrets", "list").stdout.startswith("git\t20")
    (before,) = json.loads(cli("secrets", "list", "--json").stdout)["secrets"]
    assert cli("secrets", "rotate").stdout == "rotated: 1\n"
    (after,) = json.loads(cli("secrets", "list", "--json").stdout)["secrets"]
    assert (after["name"], after["at"]) == ("git", before["at"])
    assert after["key"] != before["key"]
    assert CANARY.encode() not in written(home) + written(Path(os.environ["XDG_STATE_HOME"]))
    assert cli("secrets", "remove", "git").stdout == "removed: git\n"
    assert cli("secrets", "list").stdout == ""


def test_it_reaches_the_server_and_nothing_that_is_shown(cli: Cli, home: Path) -> None:
    cli("secrets", "set", "git", stdin=CANARY)
    done = cli("servers", "test", "git", "--json")
    assert f"got {len(CANARY)} [redacted]" in done.stderr
    assert CANARY not in done.output
    assert cli("check").exit_code == 0
    assert "${secret:git}" in cli("servers", "show", "git").stdout


def test_one_that_is_not_there_is_named_with_what_to_run(cli: Cli, home: Path) -> None:
    done = cli("servers", "test", "git")
    assert done.exit_code == 1
    assert "luthier.yaml:2:" in done.stderr
    assert "there is no secret 'git' in the store" in done.stderr
    assert "luthier secrets set git" in done.stderr


def test_a_secret_on_the_command_line_is_refused_and_not_repeated(cli: Cli, home: Path) -> None:
    done = cli("secrets", "set", "git", CANARY)
    assert done.exit_code == 2
    assert "not given on the command line" in done.stderr
    assert CANARY not in done.output
    assert cli("secrets", "list").stdout == ""


def test_names_that_are_not_there_are_told_with_near_ones(cli: Cli, home: Path) -> None:
    cli("secrets", "set", "github", stdin=CANARY)
    done = cli("secrets", "remove", "gitub")
    assert done.exit_code == 2
    assert "Did you mean github?" in done.stderr


def test_nothing_is_no_secret(cli: Cli, home: Path) -> None:
    done = cli("secrets", "set", "git", stdin="\n")
    assert done.exit_code == 2
    assert "a secret has 1 to 65536 characters" in done.stderr


def test_at_a_terminal_it_is_asked_for_and_not_shown(cli: Cli, home: Path) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "luthier", "secrets", "set", "git"],
        cwd=home,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    seen = b""
    try:
        while chunk := os.read(ours, 65536):
            asked = b"git: " not in seen and b"git: " in seen + chunk
            seen += chunk
            if asked:
                os.write(ours, f"{CANARY}\n".encode())
    except OSError:
        pass  # the other end is closed: the command has ended
    finally:
        os.close(ours)
        process.wait(30)
    assert b"set: git" in seen
    assert CANARY.encode() not in seen
    assert cli("secrets", "list").stdout.startswith("git\t")
