"""`luthier run --mock`: a run whose tools answer what the command says."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from luthier.govern.pins import pins_in
from luthier.store import DEFAULT, Database, SqlState

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from typer.testing import Result

    Cli = Callable[..., Result]


def pins(project: Path) -> dict[str, list[str]]:
    database = Database(DEFAULT, project)
    try:
        return {server: list(pins_in(value)) for server, value in SqlState(database).list("pins").items()}
    finally:
        database.close()


def test_a_mocked_tool_answers_and_its_server_is_not_started(cli: Cli, project: Path) -> None:
    (project / "servers" / "greeter.py").unlink()
    done = cli("run", "hello", "--mock", "greeter:greet=Servus")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout) == {"greeting": "Servus", "shouted": "SERVUS!"}


def test_the_value_is_json_where_it_can_be_and_may_stand_in_a_file(cli: Cli, project: Path) -> None:
    (project / "answer.json").write_text('{"isError": true, "content": "no"}')
    (project / "plain.yaml").write_text(
        "agents: [{name: a, operation: tools, config: {mcp: elsewhere, tool: look}}]\n"
        "outputs: {said: '${a.output}', wrong: '${a.output.isError}'}\n"
    )
    done = cli("run", "plain.yaml", "--mock", "elsewhere:look=@answer.json")
    assert json.loads(done.stdout) == {"said": "no", "wrong": True}
    done = cli("run", "plain.yaml", "--mock", 'elsewhere:*={"a": [1]}')
    assert json.loads(done.stdout) == {"said": {"a": [1]}, "wrong": False}


def test_mocks_leave_no_pins_and_obey_the_schemas_that_are_pinned(cli: Cli, project: Path) -> None:
    assert cli("run", "hello", "--mock", "greeter:greet=Servus").exit_code == 0
    assert pins(project) == {}
    assert cli("run", "hello").exit_code == 0
    assert pins(project) == {"greeter": ["greet"]}
    (project / "bad.yaml").write_text(
        "agents: [{name: a, operation: tools, config: {mcp: greeter, tool: greet}, input: {name: 7}}]\n"
    )
    done = cli("run", "bad.yaml", "--mock", "greeter:greet=Servus")
    assert done.exit_code == 1
    assert "[arguments]" in done.stderr
    assert cli("run", "hello", "--mock", "greeter:greet=Servus").exit_code == 0
    assert cli("run", "hello").exit_code == 0


def test_pins_that_cannot_be_read_do_not_hold_back_a_mock(cli: Cli, project: Path) -> None:
    database = Database(DEFAULT, project)
    SqlState(database).put("pins", "greeter", {"greet": 1})
    database.close()
    assert cli("run", "hello", "--mock", "greeter:greet=Servus").exit_code == 0
    assert cli("run", "hello").exit_code == 3


def test_a_call_of_a_mocked_server_without_an_answer_is_loud(cli: Cli, project: Path) -> None:
    done = cli("run", "hello", "--mock", "greeter:other=1")
    assert done.exit_code == 1
    assert "'greeter:greet' was called and is not mocked" in done.stderr


def test_what_is_no_mock_exits_2(cli: Cli, project: Path) -> None:
    done = cli("run", "hello", "--mock", "greeter", "--mock", "greet=1", "--mock", "greeter:greet=@none.json")
    assert done.exit_code == 2
    assert done.stderr.count("SERVER:TOOL=VALUE") == 2
    assert "none.json" in done.stderr


@pytest.mark.parametrize(("key", "said"), [("greter:*", "did you mean greeter?"), ("x:y", "no server 'x'")])
def test_a_mock_of_no_server_leaves_the_real_one_alone(cli: Cli, project: Path, key: str, said: str) -> None:
    (project / "servers" / "greeter.py").write_text("open('started', 'w')")
    done = cli("run", "hello", "--mock", f"{key}=1")
    assert (done.exit_code, said in done.stderr) == (2, True)
    assert not (project / "started").exists()


def test_a_recording_takes_the_place_of_a_recording_only(cli: Cli, project: Path) -> None:
    before = (project / "luthier.yaml").read_bytes()
    done = cli("run", "hello", "--record", "luthier.yaml")
    assert (done.exit_code, "not overwritten" in done.stderr) == (2, True)
    assert (project / "luthier.yaml").read_bytes() == before
    for _ in range(2):
        assert cli("run", "hello", "--record", "hello.jsonl").exit_code == 0


@pytest.mark.parametrize("option", ["--record", "--replay"])
def test_a_recording_that_cannot_be_used_exits_2(cli: Cli, project: Path, option: str) -> None:
    for name in ("nowhere/hello.jsonl", "ensembles"):
        done = cli("run", "hello", option, name)
        assert (done.exit_code, name in done.stderr) == (2, True), done.stderr
        assert "Error" not in done.stderr


def test_mocks_work_in_a_project_for_production(cli: Cli, project: Path) -> None:
    file = project / "luthier.yaml"
    file.write_text(
        "environment: production\nmcpServers:\n  greeter:\n    url: https://greeter.example.com/mcp\n"
        "    allowed_agents: [operator, 'ensemble:hello']\n"
    )
    done = cli("run", "hello", "--mock", "greeter:greet=Servus")
    assert done.exit_code == 0, done.stderr


def test_a_recorded_run_is_replayed_without_its_server(cli: Cli, project: Path) -> None:
    assert cli("run", "hello", "-i", "name=Ada", "--record", "hello.jsonl").exit_code == 0
    (project / "servers" / "greeter.py").unlink()
    done = cli("run", "hello", "-i", "name=Ada", "--replay", "hello.jsonl")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout) == {"greeting": "Hello, Ada", "shouted": "HELLO, ADA!"}
    done = cli("run", "hello", "-i", "name=Bob", "--replay", "hello.jsonl")
    assert done.exit_code == 1
    assert "arguments that were not recorded" in done.stderr
    done = cli("run", "hello", "-i", "name=Bob", "--replay", "hello.jsonl", "--mock", "greeter:greet=Servus")
    assert json.loads(done.stdout)["greeting"] == "Servus"


def test_a_replay_reaches_no_server_that_was_not_recorded(cli: Cli, project: Path) -> None:
    (project / "empty.jsonl").write_text('{"traffic": 1}\n')
    done = cli("run", "hello", "--replay", "empty.jsonl")
    assert done.exit_code == 1
    assert "'greeter' is not mocked" in done.stderr


def test_a_recording_is_of_real_servers_only(cli: Cli, project: Path) -> None:
    done = cli("run", "hello", "--record", "hello.jsonl", "--mock", "greeter:greet=Servus")
    assert done.exit_code == 2
    assert "leave out --mock" in done.stderr
