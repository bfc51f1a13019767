"""What each command prints and how it ends."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from typer.testing import Result

if TYPE_CHECKING:
    from pathlib import Path

Cli = Callable[..., Result]


def test_init_writes_a_project_whose_ensemble_runs(cli: Cli, project: Path) -> None:
    done = cli("run", "hello", "-i", "name=Ada")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout) == {"greeting": "Hello, Ada", "shouted": "HELLO, ADA!"}


def test_init_writes_a_project_whose_test_passes(project: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"],
        cwd=project,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "2 passed" in done.stdout


def test_init_leaves_files_that_exist_alone(cli: Cli, project: Path) -> None:
    mine = project / "luthier.yaml"
    mine.write_text("mcpServers: {}\n")
    done = cli("init")
    assert done.exit_code == 2
    assert "luthier.yaml" in done.stderr
    assert mine.read_text() == "mcpServers: {}\n"


def test_init_makes_the_folder_it_is_given(cli: Cli, folder: Path) -> None:
    assert cli("init", "deep/down").exit_code == 0
    assert (folder / "deep" / "down" / ".gitignore").exists()
    assert cli("--project", "deep/down/luthier.yaml", "check").exit_code == 0


def test_progress_goes_to_stderr_and_results_to_stdout(cli: Cli, project: Path) -> None:
    done = cli("run", "hello")
    assert "✓ greeting" in done.stderr
    assert "✓ shout" in done.stderr
    assert json.loads(done.stdout)["greeting"] == "Hello, world"


def test_quiet_shows_no_progress(cli: Cli, project: Path) -> None:
    assert cli("run", "hello", "--quiet").stderr == ""


def test_what_a_script_prints_does_not_mix_with_the_result(cli: Cli, project: Path) -> None:
    (project / "scripts" / "shout.py").write_text("def run(context):\n    print('aside')\n    return 1\n")
    done = cli("run", "hello", "--json")
    assert json.loads(done.stdout)["steps"]["shout"]["output"] == 1
    assert "aside" in done.stderr


def test_run_as_json_is_one_document_with_steps_and_label(cli: Cli, project: Path) -> None:
    document = json.loads(cli("run", "hello", "--json").stdout)
    assert document["success"] is True
    assert document["output"]["greeting"] == "Hello, world"
    assert document["steps"]["greeting"]["attempts"] == 1
    assert document["label"]["integrity"] == "untrusted"
    assert [source["server"] for source in document["label"]["sources"]] == ["greeter"]


def test_a_run_that_fails_exits_1_and_says_where(cli: Cli, project: Path) -> None:
    (project / "scripts" / "shout.py").write_text("def run(context):\n    raise RuntimeError('no voice')\n")
    done = cli("run", "hello")
    assert done.exit_code == 1
    assert done.stdout == ""
    assert "shout" in done.stderr
    assert "no voice" in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("run", "hello", "-i", "name"), "write -i key=value"),
        (("run", "hello", "-i", "name=@nothing.txt"), "nothing.txt"),
        (("run", "hallo"), "Did you mean hello?"),
        (("run", "hello", "--inputs", "nothing.json"), "nothing.json"),
        (("call", "greeter/greet"), "is not a tool address"),
        (("call", "mcp://greter/greet"), "Did you mean greeter?"),
        (("call", "mcp://greeter/greet", "--args", "[1]"), "--args is not a JSON object"),
        (("servers", "show", "greter"), "Did you mean greeter?"),
        (("tools", "show", "greet"), "is not a tool address"),
        (("--project", "nowhere.yaml", "servers", "list"), "nowhere.yaml"),
    ],
)
def test_what_cannot_be_meant_exits_2_and_says_why(
    cli: Cli, project: Path, words: tuple[str, ...], said: str
) -> None:
    done = cli(*words)
    assert done.exit_code == 2, done.output
    assert done.stdout == ""
    assert said in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("mcp://greeter/great",), "Did you mean greet?"),
        (("mcp://greeter/greet", "-a", "name=5"), "/name"),
        (("mcp://greeter/greet",), "name"),
    ],
)
def test_what_only_the_server_could_know_to_be_wrong_exits_1(
    cli: Cli, project: Path, words: tuple[str, ...], said: str
) -> None:
    done = cli("call", *words)
    assert done.exit_code == 1, done.output
    assert said in done.stderr


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (("run", "nope"), "protocol"),
        (("call", "mcp://nobody/x"), "protocol"),
        (("run", "hello", "-i", "x"), "arguments"),
    ],
)
def test_with_json_an_error_is_a_document_too(
    cli: Cli, project: Path, words: tuple[str, ...], kind: str
) -> None:
    document = json.loads(cli(*words, "--json").stdout)
    assert document["error"]["kind"] == kind
    assert document["error"]["message"]


def test_with_json_what_the_machine_does_not_allow_is_a_document_too(cli: Cli, folder: Path) -> None:
    gone = folder / "gone"
    gone.mkdir()
    os.chdir(gone)
    gone.rmdir()
    done = cli("servers", "list", "--json")
    assert done.exit_code == 1
    assert "No such file or directory" in json.loads(done.stdout)["error"]["message"]


def test_a_store_that_is_broken_is_told_of_without_a_traceback_and_in_one_document(
    cli: Cli, project: Path
) -> None:
    (project / ".luthier").mkdir(exist_ok=True)
    (project / ".luthier" / "luthier.db").write_text("garbage" * 1000)
    for words in (("call", "mcp://greeter/greet"), ("tools", "diff", "greeter"), ("tools", "list")):
        done = cli(*words, "--json")
        assert done.exit_code == 3
        assert json.loads(done.stdout)
        assert "Traceback" not in done.output


def test_run_tells_the_faults_of_project_and_ensemble_together(cli: Cli, project: Path) -> None:
    with (project / "luthier.yaml").open("a") as file:
        file.write("    colour: red\n")
    ensemble = project / "ensembles" / "hello.yaml"
    ensemble.write_text(ensemble.read_text().replace("operation: code", "operation: cod"))
    done = cli("run", "hello")
    assert done.exit_code == 2
    assert "colour" in done.stderr
    assert "`cod`" in done.stderr


def test_what_a_policy_denies_exits_3_and_tells_where_it_is_written(cli: Cli, project: Path) -> None:
    with (project / "luthier.yaml").open("a") as file:
        file.write("policies: {default: deny}\n")
    done = cli("call", "mcp://greeter/greet", "-a", "name=Jo")
    assert done.exit_code == 3
    assert "luthier.yaml:" in done.stderr
    assert "policies.default" in done.stderr
    assert "then: allow" in done.stderr


def test_what_must_be_asked_for_exits_3_where_nobody_can_be_asked(cli: Cli, project: Path) -> None:
    with (project / "luthier.yaml").open("a") as file:
        file.write("policies: [{when: {tool: 'mcp://greeter/*'}, then: ask}]\n")
    done = cli("call", "mcp://greeter/greet", "-a", "name=Jo")
    assert done.exit_code == 3
    assert "luthier approvals approve" in done.stderr
    done = cli("run", "hello")
    assert done.exit_code == 3
    assert "needs an approval" in done.stderr


def test_servers_and_callers_are_turned_off_and_on(cli: Cli, project: Path) -> None:
    assert cli("servers", "disable", "greeter").stdout == "disabled: server greeter\n"
    assert cli("servers", "enable", "greeter").stdout == "enabled: server greeter\n"
    assert cli("agents", "disable", "ensemble:hello").stdout == "disabled: agent ensemble:hello\n"
    assert cli("agents", "enable", "ensemble:hello").stdout == "enabled: agent ensemble:hello\n"
    done = cli("servers", "disable", "greter")
    assert done.exit_code == 2
    assert "greeter" in done.stderr


def test_requests_that_are_not_there(cli: Cli, project: Path) -> None:
    assert json.loads(cli("approvals", "list", "--json").stdout) == {"requests": []}
    assert cli("approvals", "list").stdout == ""
    for word in ("show", "approve", "deny"):
        done = cli("approvals", word, "abc")
        assert done.exit_code == 2
        assert "no request 'abc'" in done.stderr


def test_policies_that_cannot_be_read_stop_everything(cli: Cli, project: Path) -> None:
    with (project / "luthier.yaml").open("a") as file:
        file.write("policies: [{when: {tool: greet}, then: perhaps}]\n")
    done = cli("call", "mcp://greeter/greet", "-a", "name=Jo")
    assert done.exit_code == 2
    assert "`perhaps`" in done.stderr
    assert "mcp://*/greet" in done.stderr


def test_verbose_logs_what_happens_on_the_way(cli: Cli, project: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "luthier", "-vv", "call", "mcp://greeter/greet", "-a", "name=Al"],
        cwd=project,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "ServerReady server='greeter'" in done.stderr
    assert done.stdout == "Hello, Al\n"


def test_help_is_plain(cli: Cli) -> None:
    assert "─" not in cli("--help").output + cli("servers", "--help").output


def test_all_faults_of_the_inputs_are_shown_together(cli: Cli, project: Path) -> None:
    ensemble = project / "ensembles" / "hello.yaml"
    ensemble.write_text(
        ensemble.read_text().replace(
            "inputs:\n",
            "inputs:\n  loud: {type: boolean, required: true}\n  times: {type: integer, required: true}\n",
        )
    )
    done = cli("run", "hello", "-i", "times=often")
    assert done.exit_code == 2
    assert "loud" in done.stderr
    assert "times" in done.stderr


def test_an_input_that_is_not_declared_is_warned_of(cli: Cli, project: Path) -> None:
    done = cli("run", "hello", "-i", "nmae=Ada")
    assert done.exit_code == 0
    assert "warning: the input `nmae` is not declared (did you mean name?)" in done.stderr
    assert "warning" not in cli("run", "hello", "-i", "name=Ada").stderr


def test_inputs_are_read_from_a_file_from_stdin_and_from_at_files(cli: Cli, project: Path) -> None:
    (project / "inputs.json").write_text('{"name": "file"}')
    (project / "name.txt").write_text("at file")
    assert "Hello, file" in cli("run", "hello", "--inputs", "inputs.json").stdout
    assert "Hello, stdin" in cli("run", "hello", "--inputs", "-", stdin="name: stdin\n").stdout
    assert "Hello, at file" in cli("run", "hello", "-i", "name=@name.txt").stdout


def test_a_string_input_stays_text_whatever_it_looks_like(cli: Cli, project: Path) -> None:
    assert "Hello, 007" in cli("run", "hello", "-i", "name=007").stdout


def test_call_prints_text_as_text_and_the_whole_result_as_json(cli: Cli, project: Path) -> None:
    done = cli("call", "mcp://greeter/greet", "-a", "name=Bo")
    assert (done.exit_code, done.stdout) == (0, "Hello, Bo\n")
    document = json.loads(cli("call", "mcp://greeter/greet", "--args", '{"name": "Cy"}', "--json").stdout)
    assert document["content"] == "Hello, Cy"
    assert document["isError"] is False
    assert document["label"]["integrity"] == "untrusted"


def serve(project: Path, body: str) -> None:
    """Let the greeter answer calls with this result expression."""
    file = project / "servers" / "greeter.py"
    text = file.read_text()
    line = next(line for line in text.splitlines() if "Hello, " in line)
    file.write_text(text.replace(line, f"        return {body}"))


def test_a_tools_own_error_is_printed_and_exits_1(cli: Cli, project: Path) -> None:
    serve(project, "{'content': [{'type': 'text', 'text': 'out of tune'}], 'isError': True}")
    done = cli("call", "mcp://greeter/greet", "-a", "name=Di")
    assert (done.exit_code, done.stdout) == (1, "out of tune\n")


def test_control_characters_from_a_server_never_reach_the_terminal(cli: Cli, project: Path) -> None:
    serve(project, "{'content': [{'type': 'text', 'text': 'a\\x1b[2Jb'}]}")
    assert cli("call", "mcp://greeter/greet", "-a", "name=E").stdout == "a\\x1b[2Jb\n"


def test_a_server_that_cannot_start_says_why_and_exits_1(cli: Cli, project: Path) -> None:
    (project / "servers" / "greeter.py").write_text("import sys; sys.exit('no strings left')")
    with (project / "luthier.yaml").open("a") as file:
        file.write("    max_retries: 0\n")
    done = cli("call", "mcp://greeter/greet", "-a", "name=F")
    assert done.exit_code == 1
    assert "no strings left" in done.stderr
    assert "1" in done.stderr


def test_a_caller_that_is_not_listed_is_refused_with_3(cli: Cli, project: Path) -> None:
    with (project / "luthier.yaml").open("a") as file:
        file.write("    allowed_agents: []\n")
    done = cli("run", "hello")
    assert done.exit_code == 3
    assert "greeting" in done.stderr


def test_servers_list_and_show_hide_literals_and_keep_references(cli: Cli, project: Path) -> None:
    with (project / "luthier.yaml").open("a") as file:
        file.write("    env: {TOKEN: hunter2, KEY: '${env.GREETER_KEY}'}\n")
    listed, shown = cli("servers", "list"), cli("servers", "show", "greeter")
    assert "greeter\tstdio\tpython servers/greeter.py" in listed.stdout
    assert "hunter2" not in listed.stdout + shown.stdout
    assert "${env.GREETER_KEY}" in shown.stdout
    assert json.loads(cli("servers", "list", "--json").stdout)["servers"][0]["id"] == "greeter"
    assert json.loads(cli("servers", "show", "greeter", "--json").stdout)["transport"] == "stdio"


def test_listing_servers_starts_nothing(cli: Cli, project: Path) -> None:
    (project / "servers" / "greeter.py").write_text("import pathlib; pathlib.Path('started').touch()")
    assert cli("servers", "list").exit_code == 0
    assert cli("servers", "show", "greeter").exit_code == 0
    assert cli("check").exit_code == 0
    assert not (project / "started").exists()


def test_tools_list_and_show(cli: Cli, project: Path) -> None:
    assert "mcp://greeter/greet\tGreets somebody." in cli("tools", "list").stdout
    assert "mcp://greeter/greet" in cli("tools", "list", "greeter").stdout
    shown = cli("tools", "show", "mcp://greeter/greet")
    assert "Whom to greet." in shown.stdout
    document = json.loads(cli("tools", "show", "mcp://greeter/greet", "--json").stdout)
    assert document["model_name"] == "greeter__greet"
    assert [tool["uri"] for tool in json.loads(cli("tools", "list", "--json").stdout)["tools"]] == [
        "builtin://http",
        "builtin://save_to_memory",
        "builtin://storage/files",
        "builtin://storage/kv",
        "mcp://greeter/greet",
    ]


def test_tools_list_shows_what_works_and_reports_what_does_not(cli: Cli, project: Path) -> None:
    with (project / "luthier.yaml").open("a") as file:
        file.write("  broken: {command: python, args: [-m, no_such_module], max_retries: 0}\n")
    done = cli("tools", "list")
    assert done.exit_code == 0
    assert "mcp://greeter/greet" in done.stdout
    assert "no_such_module" in done.stderr
    assert cli("tools", "list", "broken").exit_code == 1


def test_audit_tail_shows_verdict_intent_and_outcome(cli: Cli, project: Path) -> None:
    cli("call", "mcp://greeter/greet", "-a", "name=G")
    done = cli("audit", "tail", "-n", "3")
    assert done.exit_code == 0
    assert [line.split("\t")[1] for line in done.stdout.splitlines()] == ["verdict", "intent", "outcome"]
    assert "mcp://greeter/greet" in done.stdout
    records = json.loads(cli("audit", "tail", "--json").stdout)["records"]
    assert records[-1]["kind"] == "outcome"


def test_audit_tail_reports_a_record_that_was_changed(cli: Cli, project: Path) -> None:
    cli("call", "mcp://greeter/greet", "-a", "name=H")
    (segment,) = (project / ".luthier" / "audit").glob("*.jsonl")
    segment.write_text(segment.read_text().replace("operator", "somebody"))
    done = cli("audit", "tail")
    assert done.exit_code == 1
    assert segment.name in done.stderr


def test_check_reports_every_fault_with_its_place_and_exits_2(cli: Cli, project: Path) -> None:
    ensemble = project / "ensembles" / "hello.yaml"
    ensemble.write_text(
        ensemble.read_text().replace("greeter", "greter").replace("${shout.output}", "${shout.output")
    )
    done = cli("check")
    assert done.exit_code == 2
    assert "hello.yaml:12:" in done.stderr
    assert "Did you mean greeter" in done.stderr or "greeter" in done.stderr
    document = json.loads(cli("check", "--json").stdout)
    assert document["ok"] is False
    assert {fault["line"] for fault in document["faults"] if not fault["warning"]} == {12, 21}


def test_check_of_a_sound_project_says_ok(cli: Cli, project: Path) -> None:
    assert cli("check").stdout == "ok\n"


def test_the_version_is_told(cli: Cli) -> None:
    assert cli("--version").stdout.startswith("luthier ")


def test_audit_verify_passes_a_log_that_nobody_touched(cli: Cli, project: Path) -> None:
    assert cli("audit", "verify").stdout == "0 segments, 0 records, 0 checkpoints: nothing was touched\n"
    cli("run", "hello")
    done = cli("audit", "verify")
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("1 segments, ")
    assert done.stderr == ""
    found = json.loads(cli("audit", "verify", "--json").stdout)
    assert (found["faults"], found["segments"], found["checked"]) == ([], 1, True)
    assert found["checkpoints"] >= 2


def test_audit_verify_says_where_a_log_was_cut_and_ends_with_1(cli: Cli, project: Path) -> None:
    cli("run", "hello")
    (segment,) = (project / ".luthier" / "audit").glob("*.jsonl")
    segment.write_bytes(b"".join(segment.read_bytes().splitlines(keepends=True)[:-1]))
    done = cli("audit", "verify")
    assert done.exit_code == 1
    assert segment.name in done.stderr
    assert "it was cut or rewritten" in done.stderr
    assert json.loads(cli("audit", "verify", "--json").stdout)["faults"]


def test_audit_verify_warns_of_a_key_beside_the_log_and_fails_without_one(cli: Cli, project: Path) -> None:
    text = (project / "luthier.yaml").read_text()
    (project / "luthier.yaml").write_text(f"{text}\naudit: {{key_file: .luthier/audit.key}}\n")
    cli("run", "hello")
    done = cli("audit", "verify")
    assert done.exit_code == 0
    assert "who rewrites one can rewrite the other" in done.stderr
    (project / ".luthier" / "audit.key").unlink()
    done = cli("audit", "verify")
    assert done.exit_code == 1
    assert "the key of the log is not there" in done.stderr
    assert "nothing was checked" in cli("audit", "tail").stderr


def test_audit_export_prints_the_records_as_lines_of_json(cli: Cli, project: Path) -> None:
    cli("run", "hello")
    cli("run", "hello")
    every = [json.loads(line) for line in cli("audit", "export").stdout.splitlines()]
    assert {record["kind"] for record in every} == {"segment", "pinned", "verdict", "intent", "outcome"}
    (first, second) = dict.fromkeys(record["run"] for record in every if record.get("run"))
    one = [json.loads(line) for line in cli("audit", "export", "--run", first).stdout.splitlines()]
    assert {record["kind"] for record in one} == {"verdict", "intent", "outcome"}
    assert first != second
    assert len(one) < len(every)
    assert cli("audit", "export", "--since", "2999").stdout == ""


def test_an_approval_given_by_another_process_lets_the_next_such_call_pass(cli: Cli, project: Path) -> None:
    with (project / "luthier.yaml").open("a") as file:
        file.write("policies: [{when: {tool: 'mcp://greeter/*'}, then: ask, reason: Be kind.}]\n")
    call = ("call", "mcp://greeter/greet", "-a", "name=Jo")
    assert cli(*call).exit_code == 3
    (request,) = json.loads(cli("approvals", "list", "--json").stdout)["requests"]
    assert "Be kind." in cli("approvals", "list").stdout
    assert '/name = "Jo"' in cli("approvals", "show", request["id"]).stdout
    assert cli("approvals", "approve", request["id"]).stdout.startswith("approved: mcp://greeter/greet")
    assert cli("call", "mcp://greeter/greet", "-a", "name=Al").exit_code == 3, "it is for the other call"
    done = cli(*call)
    assert (done.exit_code, done.stdout) == (0, "Hello, Jo\n")
    assert cli(*call).exit_code == 3, "it was used"


def test_a_server_that_is_turned_off_is_not_called_and_says_so(cli: Cli, project: Path) -> None:
    cli("servers", "disable", "greeter")
    assert "turned off" in cli("servers", "list").stdout
    assert json.loads(cli("servers", "list", "--json").stdout)["servers"][0]["turned_off"] is True
    for words in (
        ("call", "mcp://greeter/greet", "-a", "name=Jo"),
        ("run", "hello"),
        ("tools", "show", "mcp://greeter/greet"),
        ("tools", "list", "greeter"),
        ("tools", "diff", "greeter"),
    ):
        done = cli(*words)
        assert done.exit_code == 3, words
        assert "was turned off" in done.stderr
    assert "greeter" not in cli("tools", "list").stdout
    assert "greeter" not in cli("servers", "test").stdout
    assert cli("servers", "test", "greeter").exit_code == 0
    cli("servers", "enable", "greeter")
    cli("agents", "disable", "ensemble:hello")
    assert cli("run", "hello").exit_code == 3
    cli("agents", "enable", "ensemble:hello")
    assert cli("run", "hello").exit_code == 0


def test_a_log_in_the_store_is_shown_and_verified_as_one_in_files(cli: Cli, project: Path) -> None:
    text = (project / "luthier.yaml").read_text()
    (project / "luthier.yaml").write_text(f"{text}\naudit: {{sink: store}}\n")
    assert cli("run", "hello").exit_code == 0
    assert not (project / ".luthier" / "audit").exists()
    kinds = [record["kind"] for record in json.loads(cli("audit", "tail", "--json").stdout)["records"]]
    assert kinds[:5] == ["segment", "pinned", "verdict", "intent", "outcome"]
    done = cli("audit", "verify")
    assert (done.exit_code, done.stderr) == (0, "")
    with sqlite3.connect(project / ".luthier" / "luthier.db") as database:
        database.execute("DELETE FROM audit WHERE number = 2")
    database.close()
    done = cli("audit", "verify")
    assert done.exit_code == 1
    assert "lines were taken out or put in" in done.stderr
