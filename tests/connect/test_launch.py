"""From an entry to a process: what is looked up, expanded, checked, and said when it is refused."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from luthier.connect import ServerRegistry
from luthier.connect.launch import find_command, prepare
from luthier.connect.references import INSTEAD
from luthier.errors import ConnectError, UnresolvedReferenceError
from luthier.spec import ServerEntry
from luthier.spec.load import load
from luthier.spec.origin import Origin

YAML = """\
mcpServers:
  git:
    command: python
    args: [-m, mcp_server_git]
    env:
      TOKEN: ${env.GIT_TOKEN}
      LD_PRELOAD: x
    inherit_env: [NODE_OPTIONS]
    cwd: nowhere
"""
ORIGIN = Origin(load(YAML, file="luthier.yaml"), ("mcpServers", "git"))
ENVIRON = {"PATH": os.environ["PATH"], "HOME": "/home/ada", "SECRET": "canary"}


def entry(**fields: Any) -> ServerEntry:
    return ServerEntry(id="git", origin=ORIGIN, **{"command": "python", "args": ("-m", "server"), **fields})


def refused(registry: ServerRegistry, **fields: Any) -> ConnectError:
    with pytest.raises(ConnectError) as caught:
        prepare(entry(**fields), registry, ENVIRON)
    error = caught.value
    assert (error.server, error.phase, error.retryable) == ("git", "spawn", False)
    assert error.message.startswith("Server 'git' cannot be started: ")
    return error


@pytest.fixture
def registry(tmp_path: Path) -> ServerRegistry:
    return ServerRegistry(root=tmp_path)


def test_the_command_is_found_beside_the_running_interpreter_first(registry: ServerRegistry) -> None:
    launch = prepare(entry(max_message_bytes=1234), registry, ENVIRON)
    assert launch.server == "git"
    assert launch.argv == (str(Path(sys.executable).parent / "python"), "-m", "server")
    assert launch.cwd == str(registry.root)
    assert launch.max_message_bytes == 1234


def test_a_command_that_is_not_beside_us_is_found_on_the_path_and_its_companions_with_it(
    tmp_path: Path,
) -> None:
    tool = tmp_path / "bin" / "lute"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    registry = ServerRegistry(root=tmp_path, allowed_commands=["lute"])
    launch = prepare(entry(command="lute", args=()), registry, {"PATH": f"/nowhere:{tool.parent}"})
    assert launch.argv == (str(tool),)
    assert launch.env["PATH"] == f"/nowhere:{tool.parent}"
    python = prepare(entry(), ServerRegistry(root=tmp_path), {"PATH": "/usr/bin"})
    assert python.env["PATH"] == f"{Path(sys.executable).parent}:/usr/bin"


def test_references_are_expanded_in_arguments_variables_and_directory(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    launch = prepare(
        entry(
            args=("-m", "server", "${env.ROOT:-/srv}"), env={"TOKEN": "Bearer ${SECRET}"}, cwd="${WORK:-work}"
        ),
        ServerRegistry(root=tmp_path),
        ENVIRON,
    )
    assert launch.argv[-1] == "/srv"
    assert launch.env["TOKEN"] == "Bearer canary"
    assert launch.cwd == str(tmp_path / "work")


def test_a_server_gets_no_secret_that_its_entry_does_not_name(registry: ServerRegistry) -> None:
    assert "SECRET" not in prepare(entry(), registry, ENVIRON).env
    assert prepare(entry(inherit_env=("SECRET",)), registry, ENVIRON).env["SECRET"] == "canary"


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({"command": "${NOT_SET}"}, ":3:14 (mcpServers.git.command)"),
        ({"args": ("-m", "${NOT_SET}")}, ":4:16 (mcpServers.git.args[1])"),
        ({"cwd": "${NOT_SET}"}, ":9:10 (mcpServers.git.cwd)"),
    ],
)
def test_a_reference_without_a_value_is_named_with_its_place(
    registry: ServerRegistry, fields: dict[str, Any], place: str
) -> None:
    error = refused(registry, **fields)
    assert place in error.message
    assert "NOT_SET" in error.message


def test_an_unset_reference_fails_this_server_and_names_file_key_and_variable(
    registry: ServerRegistry,
) -> None:
    error = refused(registry, env={"TOKEN": "${env.GIT_TOKEN}"})
    assert "luthier.yaml:6:14 (mcpServers.git.env.TOKEN)" in error.message
    assert "GIT_TOKEN" in error.message
    assert error.hint
    assert isinstance(error.__cause__, UnresolvedReferenceError)


@pytest.mark.parametrize(
    ("fields", "place", "said"),
    [
        (
            {"command": "bash"},
            ":3:14 (mcpServers.git.command)",
            "'bash' is not allowed; by name, npx, node",
        ),
        ({"command": "/usr/bin/python"}, ":3:14", "'/usr/bin/python' is not allowed"),
        ({"command": "./python"}, ":3:14", "'./python' is not allowed"),
        ({"command": "Python"}, ":3:14", "'Python' is not allowed"),
        ({"command": "python "}, ":3:14", "not allowed"),
        ({"command": ""}, ":3:14", "not allowed"),
        ({"command": None}, ":3:14", "not allowed"),
        ({"args": ("-c", "x")}, "(mcpServers.git.args[0])", "the argument '-c' of python is refused"),
        ({"args": ("-m", "timeit")}, "(mcpServers.git.args[1])", "'timeit' of python is refused"),
        ({"args": ()}, ":3:14 (mcpServers.git.command)", "names no script and no module"),
        ({"command": "npx", "args": ("-y",)}, "(mcpServers.git.args)", "names no package"),
        ({"args": ("gone.py",)}, "(mcpServers.git.args[0])", "the script 'gone.py' is not there"),
        ({"args": (".",)}, "(mcpServers.git.args[0])", "the script '.' is not a file"),
        ({"env": {"LD_PRELOAD": "x"}}, ":7:19 (mcpServers.git.env.LD_PRELOAD)", "'LD_PRELOAD' decides"),
        ({"env": {"X": "() { :; }"}}, "(mcpServers.git.env.X)", "the value of X is a shell function"),
        (
            {"inherit_env": ("NODE_OPTIONS",)},
            ":8:19 (mcpServers.git.inherit_env[0])",
            "'NODE_OPTIONS' decides",
        ),
        ({"cwd": "nowhere"}, ":9:10 (mcpServers.git.cwd)", "is not there"),
        ({"cwd": "~nobody-of-that-name"}, "mcpServers.git.cwd", "is not there"),
        ({"cwd": "x" * 300}, "mcpServers.git.cwd", "is not there"),
        ({"args": ("x" * 300 + ".py",)}, "mcpServers.git.args", "is not there"),
    ],
)
def test_what_is_refused_is_named_with_its_place(
    registry: ServerRegistry, fields: dict[str, Any], place: str, said: str
) -> None:
    error = refused(registry, **fields)
    assert place in error.message
    assert said in error.message


def test_a_path_to_an_allowed_command_is_answered_with_its_bare_name(registry: ServerRegistry) -> None:
    assert refused(registry, command="/usr/bin/node").hint == "Write `command: node`."
    assert "allowed_commands" in refused(registry, command="/usr/bin/bash").hint
    assert "by its bare name" in refused(registry, args=("-c", "x")).hint


def test_a_list_of_commands_with_paths_in_it_opens_no_path(tmp_path: Path) -> None:
    registry = ServerRegistry(root=tmp_path, allowed_commands=["/bin/sh", "..", "."])
    for command in ("/bin/sh", "..", "."):
        assert "not allowed" in refused(registry, command=command, args=("x",)).message


def test_a_command_that_is_nowhere_is_said_to_be_missing(tmp_path: Path) -> None:
    registry = ServerRegistry(root=tmp_path, allowed_commands=["no-such-luthier-command"])
    error = refused(registry, command="no-such-luthier-command", args=())
    assert "neither beside" in error.message
    assert ":3:14 (mcpServers.git.command)" in error.message
    assert "Install no-such-luthier-command" in error.hint


def test_a_file_beside_the_interpreter_that_cannot_be_run_is_no_command() -> None:
    assert find_command("activate", "") is None  # every environment has it: it is read by a shell
    assert find_command("x" * 300, "") is None  # the system does not even look for it
    assert find_command("python", "") == Path(sys.executable).parent / "python"


def test_a_refused_argument_is_shown_as_written_so_that_its_secret_stays_one(
    registry: ServerRegistry,
) -> None:
    for fields in (
        {"command": "npx", "args": ("--call=${SECRET}",)},
        {"args": ("${SECRET}.py",)},
        {"cwd": "${SECRET}"},
        {"command": "${SECRET}"},
    ):
        error = refused(registry, **fields)
        assert "canary" not in str(error)
        assert "${SECRET}" in error.message


def test_control_characters_in_an_entry_reach_no_terminal(registry: ServerRegistry) -> None:
    assert "\x1b" not in refused(registry, command="\x1b[31mpython").message
    assert "\x1b" not in refused(registry, args=("--\x1b[31m",)).message
    assert "\x1b" not in refused(registry, env={"A\x1b": "x"}).message


def test_in_production_nothing_is_started_by_a_command(tmp_path: Path) -> None:
    registry = ServerRegistry(root=tmp_path, environment="production")
    error = refused(registry)
    assert ":3:14 (mcpServers.git.command): in production a server is started by" in error.message
    assert error.hint.startswith("Write a profile under `launch_profiles`")
    assert "launch_profiles" in error.hint


def test_in_production_a_credential_that_stands_in_an_entry_is_refused_before_all_else(
    tmp_path: Path,
) -> None:
    registry = ServerRegistry(root=tmp_path, environment="production")
    error = refused(registry, env={"TOKEN": "canary"})
    assert "luthier.yaml:6:14 (mcpServers.git.env.TOKEN): " in error.message
    assert error.message.endswith(", which is not allowed in production.")
    assert "canary" not in str(error)
    assert error.hint == INSTEAD


def test_a_script_is_looked_for_where_the_server_will_stand(tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "server.py").write_text("")
    registry = ServerRegistry(root=tmp_path)
    launch = prepare(entry(args=("server.py",), cwd="tools"), registry, ENVIRON)
    assert launch.argv[1:] == ("server.py",)
    assert "'server.py' is not there" in refused(registry, args=("server.py",)).message


@pytest.mark.parametrize("command", ["npx", "npm", "pnpx", "bunx"])
def test_npx_is_not_started_where_its_settings_would_run_code(command: str, tmp_path: Path) -> None:
    (tmp_path / ".npmrc").write_text("script-shell=./evil.sh\n")
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    (bin_ / command).write_text("#!/bin/sh\n")
    (bin_ / command).chmod(0o755)
    registry = ServerRegistry(root=tmp_path, allowed_commands=[command, "python"])
    for fields, place in (
        ({}, ":3:14 (mcpServers.git.command)"),
        ({"cwd": "."}, ":9:10 (mcpServers.git.cwd)"),
    ):
        with pytest.raises(ConnectError) as caught:
            prepare(entry(command=command, args=("server",), **fields), registry, {"PATH": str(bin_)})
        said = f"{place}: {tmp_path / '.npmrc'} sets script-shell, which would run code"
        assert said in caught.value.message
        assert "another folder" in caught.value.hint
    assert prepare(entry(), registry, ENVIRON).argv


def test_without_a_path_the_one_of_the_system_is_taken(registry: ServerRegistry) -> None:
    assert prepare(entry(), registry, {}).env["PATH"] == f"{Path(sys.executable).parent}:{os.defpath}"
