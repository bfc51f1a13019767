"""`luthier servers import` and `approve`: what is taken over waits, is shown in full, and starts nothing."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from luthier.spec import ServerEntry, load, load_project
from luthier.spec.hosts import digest, import_file
from luthier.store import Database, SqlServers

Cli = Callable[..., Result]

CASES = Path(__file__).parents[1] / "cases" / "hosts"
PROJECT = """\
# The servers of the house.
mcpServers:
  # tells the time
  time: {command: uvx, args: [mcp-server-time]}  # local
"""
HOST = {
    "mcpServers": {
        "notes": {
            "command": "npx",
            "args": ["-y", "notes-mcp", "a b"],
            "env": {"NOTES_TOKEN": "tok-literal-77"},
        },
        "far away": {
            "url": "https://far.example.com/mcp",
            "headers": {"Authorization": "Bearer ${FAR_TOKEN}"},
            "alwaysAllow": ["read"],
        },
    }
}


@pytest.fixture
def house(folder: Path) -> Path:
    (folder / "luthier.yaml").write_text(PROJECT)
    (folder / "host.json").write_text(json.dumps(HOST))
    return folder


def document(done: Result) -> Any:
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_imported_servers_are_written_unapproved_and_comments_stay(cli: Cli, house: Path) -> None:
    done = cli("servers", "import", "host.json")
    assert done.exit_code == 0, done.output
    text = (house / "luthier.yaml").read_text()
    assert text.startswith(PROJECT)
    servers = load_project(house / "luthier.yaml").servers
    assert list(servers) == ["time", "notes", "far-away"]
    assert [entry.approved for entry in servers.values()] == [True, False, False]
    assert servers["far-away"].name == "far away"
    assert servers["far-away"].tools.ask == ("read",)
    assert cli("servers", "list").stdout.count("waits for approval") == 2


def test_an_import_shows_what_would_be_run_and_sent_where_and_hides_literals(cli: Cli, house: Path) -> None:
    done = cli("servers", "import", "host.json")
    assert "runs     npx -y notes-mcp 'a b'\n" in done.stdout
    assert "env      NOTES_TOKEN: (a literal of 14 characters)\n" in done.stdout
    assert (
        "secret?  env.NOTES_TOKEN looks like one: keep it elsewhere and write ${env.NOTES_TOKEN}, or"
        in done.stdout
    )
    assert "reaches  https://far.example.com/mcp\n" in done.stdout
    assert "sends    ${FAR_TOKEN} (headers.Authorization) to https://far.example.com/mcp\n" in done.stdout
    assert "asks     before each call of read\n" in done.stdout
    assert "tok-literal-77" not in done.output
    assert "`alwaysAllow` becomes `tools.ask`" in done.stderr
    assert "FAR_TOKEN, which is not set" in done.stderr
    assert "waits for approval: it will not start" not in done.stderr


def test_a_dry_run_shows_the_same_and_writes_nothing(cli: Cli, house: Path) -> None:
    before = sorted(house.iterdir())
    dry = cli("servers", "import", "host.json", "--dry-run")
    assert dry.exit_code == 0
    assert "notes (would be added)" in dry.stdout
    assert (house / "luthier.yaml").read_text() == PROJECT
    assert sorted(house.iterdir()) == before
    told = document(cli("servers", "import", "host.json", "--dry-run", "--json"))
    assert told["dry_run"] is True
    assert [server["deed"] for server in told["servers"]] == ["added", "added"]
    assert (house / "luthier.yaml").read_text() == PROJECT


def test_as_json_it_is_one_document_without_secrets(cli: Cli, house: Path) -> None:
    done = cli("servers", "import", "host.json", "--json")
    told = document(done)
    notes, far = told["servers"]
    assert (told["host"], notes["id"], far["id"], far["named"]) == (
        "mcpServers",
        "notes",
        "far-away",
        "far away",
    )
    assert notes["exposed"]["runs"] == "npx -y notes-mcp 'a b'"
    assert notes["exposed"]["suspects"][0]["key"] == "env.NOTES_TOKEN"
    assert far["exposed"]["sends"] == [
        {"reference": "${FAR_TOKEN}", "key": "headers.Authorization", "to": "https://far.example.com/mcp"}
    ]
    assert any("alwaysAllow" in warning["message"] for warning in far["warnings"])
    assert "tok-literal-77" not in done.output


def test_an_entry_that_is_there_is_left_unless_it_is_asked_for(cli: Cli, house: Path) -> None:
    (house / "host.json").write_text(
        json.dumps({"mcpServers": {"time": {"command": "node", "args": ["t.js"]}}})
    )
    done = cli("servers", "import", "host.json")
    assert done.exit_code == 0
    assert done.stdout.startswith("time (left as it is at ")
    assert "--replace" in done.stdout
    assert (house / "luthier.yaml").read_text() == PROJECT
    assert document(cli("servers", "import", "host.json", "--json"))["servers"][0]["deed"] == "kept"
    done = cli("servers", "import", "host.json", "--replace")
    assert done.stdout.startswith("time (replaced; waits for approval)")
    entry = load_project(house / "luthier.yaml").servers["time"]
    assert (entry.command, entry.approved) == ("node", False)
    assert "# tells the time" in (house / "luthier.yaml").read_text()


def test_what_was_approved_and_is_imported_again_unchanged_stays_approved(cli: Cli, house: Path) -> None:
    cli("servers", "import", "host.json", "notes")
    assert cli("servers", "approve", "notes").exit_code == 0
    text = (house / "luthier.yaml").read_text()
    told = document(cli("servers", "import", "host.json", "notes", "--replace", "--json"))
    assert [server["deed"] for server in told["servers"]] == ["unchanged"]
    assert cli("servers", "import", "host.json", "notes").stdout.endswith("it says the same)\n")
    assert (house / "luthier.yaml").read_text() == text


def test_only_the_named_servers_are_taken(cli: Cli, house: Path) -> None:
    assert cli("servers", "import", "host.json", "far away").exit_code == 0
    assert list(load_project(house / "luthier.yaml").servers) == ["time", "far-away"]
    done = cli("servers", "import", "host.json", "note")
    assert done.exit_code == 2
    assert "Did you mean notes?" in done.stderr


def test_a_file_without_servers_is_said_to_have_none(cli: Cli, house: Path) -> None:
    (house / "host.json").write_text('{"mcpServers": {}}')
    done = cli("servers", "import", "host.json")
    assert (done.exit_code, done.stdout) == (0, "there are no servers in it\n")


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '{"a": 1}', '{"mcpServers": {"ok": {"command": "x"}, "bad": {}}}', "[" * 1000, "\0"],
)
def test_a_file_that_cannot_be_read_ends_with_2_and_nothing_is_written(
    cli: Cli, house: Path, text: str
) -> None:
    (house / "host.json").write_text(text)
    done = cli("servers", "import", "host.json")
    assert done.exit_code == 2
    assert done.stderr.startswith("host.json:")
    assert len(done.stderr.splitlines()) == 1
    assert (house / "luthier.yaml").read_text() == PROJECT
    assert cli("servers", "import", "host.json", "--json").exit_code == 2


def test_in_production_what_check_refuses_is_not_imported(cli: Cli, house: Path) -> None:
    entries = {
        "far": {"url": "https://far.example.com", "auth": "tok-literal-77"},
        "near": {"url": "https://near.example.com"},
    }
    (house / "host.json").write_text(json.dumps({"mcpServers": entries}))
    production = PROJECT + "environment: production\n"
    (house / "luthier.yaml").write_text(production)
    done = cli("servers", "import", "host.json")
    assert done.exit_code == 2
    assert "a secret stands in the file" in done.stderr
    assert "tok-literal-77" not in done.output
    assert (house / "luthier.yaml").read_text() == production
    assert cli("servers", "import", "host.json", "near").exit_code == 0


def test_a_file_that_is_none_ends_with_2(cli: Cli, house: Path) -> None:
    for name in ("none.json", "."):
        done = cli("servers", "import", name)
        assert done.exit_code == 2
        assert done.stderr.startswith(f"{name}: ")


def test_without_a_project_file_it_is_said_what_to_do(cli: Cli, folder: Path) -> None:
    (folder / "host.json").write_text(json.dumps(HOST))
    for words in (("import", "host.json"), ("add", "a", "--command", "uvx", "--arg", "b")):
        done = cli("servers", *words)
        assert done.exit_code == 2
        assert "luthier init" in done.stderr
    assert [path.name for path in folder.iterdir()] == ["host.json"]


@pytest.mark.parametrize(
    "case", load(CASES / "expected.yaml").data, ids=lambda case: case["file"] + str(case.get("options", ""))
)
def test_what_is_imported_and_written_is_loaded_as_the_same_entries(
    cli: Cli, house: Path, case: dict[str, Any]
) -> None:
    path = house / "there" / case["as"]
    path.parent.mkdir(parents=True)
    path.write_text((CASES / case["file"]).read_text().replace("HERE", str(house / "there")))
    options = case.get("options", {})
    workspace = house / "there" / options["workspace"] if "workspace" in options else None
    words = [*options.get("only", ()), "--offer", options.get("offer", "")]
    done = cli(
        "servers", "import", str(path), *words, *(("--workspace", str(workspace)) if workspace else ())
    )
    assert done.exit_code == 0, done.output
    read = import_file(
        path,
        root=house,
        home=Path.home(),
        workspace=workspace,
        only=tuple(options.get("only", ())),
        offer=options.get("offer", ""),
    )
    servers = load_project(house / "luthier.yaml").servers
    assert [servers[one.entry.id] for one in read.servers] == [one.entry for one in read.servers]
    assert not any(servers[one.entry.id].approved for one in read.servers)


def test_without_a_file_the_database_is_what_is_imported_into(cli: Cli, folder: Path) -> None:
    (folder / "host.json").write_text(json.dumps(HOST))
    with closing(Database(root=folder)) as database:
        servers = SqlServers(database)
        servers.add(ServerEntry(id="harp", command="python"))
        servers.add(ServerEntry(id="lute", command="python", args=("lute.py",)))
        with database.writing() as connection:
            connection.exec_driver_sql("UPDATE mcp_servers SET entry = '{\"url\": 7}' WHERE id = 'harp'")
            connection.commit()
        done = cli("servers", "import", "host.json")
        assert done.exit_code == 0, done.output
        assert not servers.get("notes").approved
        assert cli("servers", "import", "host.json").stdout.startswith("notes (left as it is at row 'notes'")
        done = cli("servers", "approve", "notes")
        assert done.stdout.startswith("notes (approved at row 'notes' of mcp_servers")
        assert servers.get("notes").approved
        (folder / "host.json").write_text(
            '{"mcpServers": {"drum": {"command": "x"}, "harp": {"command": "x"}}}'
        )
        done = cli("servers", "import", "host.json", "--replace")
        assert done.exit_code == 2
        assert "row 'harp' of mcp_servers" in done.stderr
        assert sorted(servers.load().entries) == ["far-away", "lute", "notes"]


# Approving


def test_approving_shows_the_entry_whole_and_lets_it_be_used(cli: Cli, house: Path) -> None:
    cli("servers", "import", "host.json")
    done = cli("servers", "approve", "notes")
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("notes (approved at ")
    assert "runs     npx -y notes-mcp 'a b'\n" in done.stdout
    servers = load_project(house / "luthier.yaml").servers
    assert (servers["notes"].approved, servers["far-away"].approved) == (True, False)
    assert "approved" not in (house / "luthier.yaml").read_text().partition("far-away")[0]
    again = cli("servers", "approve", "notes", "--json")
    assert document(again)["changed"] is False
    assert "it was approved already" in cli("servers", "approve", "notes").stdout


def test_an_approval_by_hash_holds_for_the_entry_that_was_shown_only(cli: Cli, house: Path) -> None:
    said = cli("servers", "import", "host.json").stdout
    file = house / "luthier.yaml"
    shown = digest(load_project(file).servers["notes"])
    assert f"luthier servers approve notes --hash {shown}\n" in said
    file.write_text(file.read_text().replace("notes-mcp", "n0tes-mcp"))
    done = cli("servers", "approve", "notes", "--hash", shown)
    assert done.exit_code == 3
    assert "is not what was looked at" in done.stderr
    assert not load_project(file).servers["notes"].approved
    file.write_text(file.read_text().replace("n0tes-mcp", "notes-mcp"))
    assert cli("servers", "approve", "notes", "--hash", shown).exit_code == 0
    assert load_project(file).servers["notes"].approved


def test_an_approval_is_in_the_audit_log_with_the_hash_of_what_was_approved(cli: Cli, house: Path) -> None:
    cli("servers", "import", "host.json")
    hash_ = digest(load_project(house / "luthier.yaml").servers["notes"])
    cli("servers", "approve", "notes")
    cli("servers", "approve", "notes")
    told = cli("audit", "tail", "--json").stdout
    assert '"decided"' in told
    assert told.count(hash_) == 1


def test_who_is_not_there_cannot_be_approved(cli: Cli, house: Path) -> None:
    done = cli("servers", "approve", "tme")
    assert done.exit_code == 2
    assert "Did you mean time?" in done.stderr


def test_a_hash_differs_with_all_that_an_entry_says_and_with_nothing_else(house: Path) -> None:
    def of(entry: dict[str, Any]) -> str:
        (house / "h.json").write_text(json.dumps({"mcpServers": {"a": entry}}))
        return digest(import_file(house / "h.json", root=house, home=house).servers[0].entry)

    said: dict[str, Any] = {"command": "x", "args": ["a", "b"], "env": {"K": "v"}}
    others: list[dict[str, Any]] = [
        {"command": "y"}, {"args": ["a b"]}, {"args": ["b", "a"]}, {"env": {"K": "w"}}, {"env": {}},
        {"cwd": "c"}, {"trust": True}, {"disabled": True}, {"timeout": 5000},
    ]  # fmt: skip
    hashes = [of(said), *(of(said | other) for other in others)]
    assert len(set(hashes)) == len(hashes)
    assert of(said) == of({"env": {"K": "v"}, "args": ["a", "b"], "command": "x"})


# Canaries


def test_nothing_is_started_resolved_or_fetched_by_any_command_of_the_registry(cli: Cli, house: Path) -> None:
    canary = house / "canary"
    (house / "canary.py").write_text("import pathlib; pathlib.Path('canary').touch()\n")
    secret = house / "secret.txt"
    os.mkfifo(secret)  # who opened it would wait for ever
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        servers: dict[str, dict[str, Any]] = {
            "runs": {
                "command": "python",
                "args": ["canary.py"],
                "env": {"K": "${file:" + str(secret) + "}"},
            },
            "helps": {"url": url, "headersHelper": "touch canary", "headers": {"X": "${CANARY_TOKEN}"}},
            "files": {"command": "python", "args": ["canary.py"], "envFile": str(secret)},
        }
        (house / "host.json").write_text(json.dumps({"mcpServers": servers}))
        assert cli("servers", "import", "host.json", "runs").exit_code == 2  # ${file:…} is none of a host's
        servers["runs"]["env"] = {}
        (house / "host.json").write_text(json.dumps({"mcpServers": servers}))
        offer = {
            "name": "x/y",
            "icons": [{"src": url}],
            "websiteUrl": url,
            "$schema": url,
            "remotes": [{"type": "sse", "url": url}],
        }
        (house / "server.json").write_text(json.dumps(offer))
        for words in (
            ("servers", "import", "host.json"),
            ("servers", "import", "server.json"),
            ("servers", "add", "own", "--command", "python", "--arg", "canary.py", "--env", "K=${HOME}"),
            ("servers", "add", "web", "--url", url, "--token", "${CANARY_TOKEN}"),
            ("servers", "list"),
            ("servers", "show", "helps"),
            ("servers", "approve", "helps"),
            ("servers", "approve", "files"),
            ("servers", "import", "host.json", "--replace"),
            ("servers", "remove", "own"),
            ("check",),
        ):
            done = cli(*words)
            assert done.exit_code == 0, (words, done.output)
        with pytest.raises(BlockingIOError):
            listener.accept()
    assert not canary.exists()


def test_an_import_with_steering_characters_shows_them_escaped(cli: Cli, house: Path) -> None:
    entry = {
        "command": "npx",
        "args": ["\x1b[2Jx", "a\nreaches  https://good.example.com", "\u202e"],
        "env": {"A\x1b": "1"},
    }
    (house / "host.json").write_text(json.dumps({"mcpServers": {"\x1b[31m\nbad": entry}}))
    done = cli("servers", "import", "host.json", "--dry-run")
    assert done.exit_code == 0
    assert "\x1b" not in done.output
    assert "\u202e" not in done.output
    assert not any(line.strip().startswith("reaches") for line in done.stdout.splitlines())


def test_what_may_never_start_is_not_approved(cli: Cli, house: Path) -> None:
    (house / "evil.json").write_text('{"mcpServers": {"evil": {"command": "python3", "args": ["-c", "x"]}}}')
    assert cli("servers", "import", "evil.json").exit_code == 0
    done = cli("servers", "approve", "evil")
    assert done.exit_code == 2
    assert "the argument `-c` of `python3` is refused" in done.stderr
    assert not load_project(house / "luthier.yaml").servers["evil"].approved
