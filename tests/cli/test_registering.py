"""`luthier servers add` and `remove`: the project file is edited, and only to what can be loaded."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from typer.testing import Result

from luthier.spec import Auth, Launch, ServerEntry, ToolFilter, load_project

if TYPE_CHECKING:
    from pathlib import Path

Cli = Callable[..., Result]

PROJECT = """\
# The servers of the house.
mcpServers:
  # tells the time
  time: {command: uvx, args: [mcp-server-time]}  # local

expose_env: [HOME]  # for ensembles
"""


@pytest.fixture
def file(folder: Path) -> Path:
    path = folder / "luthier.yaml"
    path.write_text(PROJECT)
    return path


def test_a_server_by_command_is_added_and_all_else_stays(cli: Cli, file: Path) -> None:
    words = (
        *("--command", "uvx", "--arg", "mcp-server-git", "--arg", "-r", "--arg", "."),
        *("--inherit-env", "LANG", "--cwd", ".", "--description", "History", "--required"),
        *("--timeout-ms", "5000", "--tool-timeout-ms", "9000", "--agent", "ada", "--allow", "git_*"),
        *("--deny", "git_push", "--ask", "git_commit"),
    )
    done = cli("servers", "add", "git", *words, "--env", "TOKEN=${GIT=TOKEN}")
    assert done.exit_code == 2
    assert "`${GIT=TOKEN}` is not a reference" in done.stderr
    assert file.read_text() == PROJECT
    done = cli("servers", "add", "git", *words, "--env", "TOKEN=${HOME}")
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("git (added at ")
    assert "runs     uvx mcp-server-git -r .\n" in done.stdout
    assert load_project(file).servers["git"] == ServerEntry(
        id="git",
        name="git",
        description="History",
        command="uvx",
        args=("mcp-server-git", "-r", "."),
        env={"TOKEN": "${HOME}"},
        inherit_env=("LANG",),
        cwd=".",
        timeout=5.0,
        tool_timeout=9.0,
        allowed_agents=("ada",),
        tools=ToolFilter(allow=("git_*",), deny=("git_push",), ask=("git_commit",)),
        required=True,
    )
    lines = file.read_text().splitlines()
    assert [line for line in PROJECT.splitlines() if line not in lines] == []


def test_a_server_of_a_launch_profile_is_added_with_what_fills_its_holes(cli: Cli, file: Path) -> None:
    profile = "{executable: /usr/bin/node, args: [/opt/n.js, '--book={book}'], holes: {book: {enum: [a, b]}}}"
    file.write_text(f"{PROJECT}launch_profiles: {{notes: {profile}}}\n")
    done = cli("servers", "add", "mine", "--profile", "notes", "--hole", "book=a")
    assert done.exit_code == 0, done.output
    assert "runs     profile notes book=a\n" in done.stdout
    assert load_project(file).servers["mine"].launch == Launch(profile="notes", values={"book": "a"})
    done = cli("servers", "add", "other", "--hole", "book=a")
    assert done.exit_code == 2
    assert "`profile` is missing" in done.stderr


def test_a_server_by_url_is_added_approved(cli: Cli, file: Path) -> None:
    done = cli(
        *("servers", "add", "far", "--url", "https://far.example.com/mcp", "--transport", "http"),
        *("--header", "X-Team=core=1", "--token", "${FAR_TOKEN}", "--json"),
    )
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert (told["added"]["id"], told["dry_run"]) == ("far", False)
    entry = load_project(file).servers["far"]
    assert entry.approved
    assert entry.headers == {"X-Team": "core=1"}
    assert entry.auth == Auth(type="bearer", token="${FAR_TOKEN}")
    assert "FAR_TOKEN, which is not set" in done.stderr


def test_a_dry_run_checks_and_writes_nothing(cli: Cli, file: Path) -> None:
    done = cli("servers", "add", "git", "--command", "uvx", "--arg", "mcp-server-git", "--dry-run")
    assert done.exit_code == 0
    assert done.stdout.startswith("git (would be added)")
    assert file.read_text() == PROJECT


def test_what_will_not_start_is_added_with_a_warning(cli: Cli, file: Path) -> None:
    done = cli("servers", "add", "odd", "--command", "python", "--arg", "gone.py")
    assert done.exit_code == 0
    assert "the script `gone.py` is not there" in done.stderr
    assert load_project(file).servers["odd"].command == "python"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--command", "docker", "--arg", "run"], "`docker` is not in `allowed_commands`"),
        (["--command", "python", "--arg=-c", "--arg", "x"], "the argument `-c` of `python` is refused"),
        (
            ["--command", "uvx", "--arg", "x", "--env", "LD_PRELOAD=x"],
            "`LD_PRELOAD` decides what code is run",
        ),
        (["--profile", "git"], "there is no launch profile `git`"),
    ],
)
def test_what_may_never_start_is_not_saved(cli: Cli, file: Path, words: list[str], said: str) -> None:
    done = cli("servers", "add", "odd", *words)
    assert done.exit_code == 2
    assert said in done.stderr
    assert file.read_text() == PROJECT


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["git"], "a server needs a `command` or a `url`"),
        (["git", "--command", "uvx", "--url", "https://e.example.com"], "either `command` or `url`"),
        (["a b", "--command", "uvx"], "`a b` cannot be a server's id"),
        (["git", "--url", "nowhere"], "does not begin with https:// or http://"),
        (["git", "--command", "uvx", "--header", "A=b"], "`headers` means nothing"),
        (["git", "--command", "uvx", "--env", "A"], "--env takes NAME=value, not 'A'"),
        (["git", "--url", "https://e.example.com", "--header", "=b"], "--header takes NAME=value"),
        (["git", "--command", "uvx", "--transport", "carrier"], "`transport` must be one of"),
        (["git", "--command", "uvx", "--timeout-ms", "0"], "`timeout_ms` must be more than 0"),
        (["git", "--url", "https://e.example.com", "--token", ""], "`token`"),
        (["git", "--command", "uvx", "--timeout-ms", "-1"], "`timeout_ms` must be more than 0"),
        (["git", "--url", "https://e.example.com", "--token", "${keyring}x${"], "is not a reference"),
        (["time", "--command", "uvx"], "luthier.yaml:4:9: error: there is a server 'time' already"),
    ],
)
def test_what_could_not_be_loaded_is_not_saved(cli: Cli, file: Path, words: list[str], said: str) -> None:
    done = cli("servers", "add", *words)
    assert done.exit_code == 2
    assert said in done.stderr
    assert file.read_text() == PROJECT


def test_a_literal_token_is_a_warning_in_development_and_refused_in_production(cli: Cli, file: Path) -> None:
    words = ("servers", "add", "far", "--url", "https://far.example.com/mcp", "--token", "tok-literal-77")
    file.write_text(PROJECT + "environment: production\n")
    done = cli(*words)
    assert done.exit_code == 2
    assert "a secret stands in the file" in done.stderr
    assert "far" not in load_project(file).servers
    file.write_text(PROJECT)
    done = cli(*words)
    assert done.exit_code == 0
    assert "a secret stands in the file" in done.stderr
    assert "tok-literal-77" not in done.output


def test_a_server_is_removed_and_all_else_stays(cli: Cli, file: Path) -> None:
    cli("servers", "add", "git", "--command", "uvx", "--arg", "mcp-server-git")
    done = cli("servers", "remove", "git")
    assert done.exit_code == 0
    assert done.stdout.startswith("removed git, which stood at ")
    assert file.read_text() == PROJECT
    told = json.loads(cli("servers", "remove", "time", "--json").stdout)
    assert told["removed"] == "time"
    assert load_project(file).servers == {}
    done = cli("servers", "remove", "time")
    assert done.exit_code == 2
    assert "There is no server 'time' in the project" in done.stderr
