"""`luthier tools diff` and `approve` over a server that is edited between two commands."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from luthier.cli.pins import lines
from luthier.govern import pins
from luthier.tools import Manifest, Tool
from luthier.uri import ToolUri

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Cli


def test_before_the_first_use_everything_is_new_and_looking_pins_nothing(cli: Cli, project: Path) -> None:
    for _ in range(2):
        done = cli("tools", "diff")
        assert done.exit_code == 0, done.output
        assert done.stdout.startswith("greeter: nothing is approved yet\n  + greet  new  ")
        assert "luthier tools approve greeter" in done.stdout


def test_diff_as_json_tells_state_hash_and_differences(cli: Cli, project: Path) -> None:
    (server,) = json.loads(cli("tools", "diff", "greeter", "--json").stdout)["servers"]
    assert (server["server"], server["first"]) == ("greeter", True)
    (tool,) = server["tools"]
    assert (tool["name"], tool["state"], len(tool["hash"]), tool["approved"]) == ("greet", "new", 64, None)
    assert {"path": "/name", "new": "greet"} in tool["differences"]


def test_approve_tells_what_it_approved(cli: Cli, project: Path) -> None:
    done = cli("tools", "approve", "greeter", "greet")
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines()[0].startswith("+ greet  new  ")
    assert done.stdout.splitlines()[-1] == "greeter: approved 1 of 1 changes"
    assert json.loads(cli("tools", "approve", "greeter", "--json").stdout)["server"] == "greeter"


def test_an_unknown_server_and_an_unknown_tool_are_named(cli: Cli, project: Path) -> None:
    assert "Did you mean greeter?" in cli("tools", "diff", "greter").stderr
    done = cli("tools", "approve", "greeter", "gret")
    assert done.exit_code == 1
    assert "Did you mean greet?" in done.stderr


def test_a_server_that_cannot_be_reached_costs_only_itself(cli: Cli, project: Path) -> None:
    config = project / "luthier.yaml"
    config.write_text(
        config.read_text() + "\n  broken: {command: python, args: [nothing.py], max_retries: 0}\n"
    )
    done = cli("tools", "diff")
    assert done.exit_code == 0
    assert "greeter:" in done.stdout
    assert "broken" in done.stderr
    assert cli("tools", "diff", "broken").exit_code == 1
    document = json.loads(cli("tools", "diff", "--json").stdout)
    assert list(document["failed"]) == ["broken"]


def tool(description: str, *, digest: str) -> Tool:
    raw = {"name": "play", "description": description, "inputSchema": {}}
    return Tool(uri=ToolUri.mcp("lute", "play"), input_schema={}, raw=raw, digest=digest)


def shown(old: str, new: str) -> list[str]:
    import msgspec

    stored = msgspec.to_builtins(pins.pinned([tool(old, digest="a")], at=0, by="me"))
    return lines(pins.review(Manifest(server="lute", tools=(tool(new, digest="b"),)), stored))


def test_a_change_is_shown_by_its_path_old_and_new_and_escaped() -> None:
    said = shown("plays", "plays\x1b[2J\u202e <all>\n")
    assert said[0] == "lute:"
    assert said[1].startswith("  ~ play  changed  ")
    assert said[2:5] == [
        "      /description",
        '        - "plays"',
        '        + "plays\\u001b[2J\\u202e <all>\\n"',
    ]


def test_of_a_long_text_all_that_changed_is_shown_and_little_else() -> None:
    said = shown(
        "a" * 5000 + "good" + "b" * 5000, "a" * 5000 + "one evil" + "c" * 700 + "other evil" + "b" * 5000
    )
    assert said[3] == f'        - "…{"a" * 60}good{"b" * 60}…"'
    assert said[4] == f'        + "…{"a" * 60}one evil{"c" * 700}other evil{"b" * 60}…"'
    said = shown("a" * 500, "a" * 1000)
    assert said[3] == f'        - "…{"a" * 60}"'
    assert said[4] == f'        + "…{"a" * 560}"'


def test_of_a_new_tool_everything_is_shown() -> None:
    new = tool("x" * 3000 + "evil", digest="b")
    new.raw["inputSchema"] = {"properties": {f"p{n}": {"description": f"text {n}"} for n in range(300)}}
    said = "\n".join(lines(pins.review(Manifest(server="lute", tools=(new,)), None)))
    assert "evil" in said
    assert all(f'"text {n}"' in said for n in range(300))


def test_what_the_cleaner_and_the_rules_found_stands_below_a_change() -> None:
    said = shown("plays", "plays\u200b <!-- x -->")
    assert said[5] == "      ! hidden at /description: changed: plays\\u200b <!-- x -->"
    assert said[6].startswith("      ! comment at /description: ")


def test_list_and_show_tell_what_was_found(cli: Cli, project: Path) -> None:
    server = project / "servers" / "greeter.py"
    server.write_text(server.read_text().replace("Greets somebody.", "Greets <!-- x --> somebody."))
    assert (
        cli("tools", "list", "greeter").stdout
        == "mcp://greeter/greet\tGreets <!-- x --> somebody.\tcomment\n"
    )
    assert "findings:\n! comment at /description" in cli("tools", "show", "mcp://greeter/greet").stdout
    document = json.loads(cli("tools", "list", "greeter", "--json").stdout)
    assert document["tools"][0]["findings"][0]["rule"] == "comment"
    assert (document["tools"][0]["held"], document["held"]) == ("", [])


def test_what_is_gone_is_named_and_what_is_the_same_is_not() -> None:
    import msgspec

    same = tool("plays", digest="a")
    stored = msgspec.to_builtins(pins.pinned([same], at=0, by="me"))
    assert lines(pins.review(Manifest(server="lute", tools=(same,)), stored)) == [
        "lute: all 1 tools are as they were approved"
    ]
    assert lines(pins.review(Manifest(server="lute"), stored))[1:2] == ["  - play  removed"]


def edit(project: Path, old: str, new: str) -> None:
    server = project / "servers" / "greeter.py"
    text = server.read_text()
    assert old in text
    server.write_text(text.replace(old, new))


def test_a_change_between_two_commands_is_held_back_shown_and_approved(cli: Cli, project: Path) -> None:
    assert cli("call", "mcp://greeter/greet", "-a", "name=Ada").exit_code == 0
    edit(project, "Greets somebody.", "Greets somebody, and more.")
    done = cli("call", "mcp://greeter/greet", "-a", "name=Ada")
    assert done.exit_code == 3
    assert "its definition changed" in done.stderr
    assert '- "Greets somebody."' in cli("tools", "diff").stdout
    edit(project, "and more", "and evil")
    refused = cli("tools", "approve", "greeter")
    assert refused.exit_code == 3
    assert "changed since it was shown" in refused.stderr
    assert cli("tools", "diff", "greeter").exit_code == 0
    assert cli("tools", "approve", "greeter").exit_code == 0
    assert cli("call", "mcp://greeter/greet", "-a", "name=Ada").exit_code == 0


def test_one_of_two_new_tools_is_approved_and_list_tells_of_the_other(cli: Cli, project: Path) -> None:
    assert cli("tools", "list", "greeter").exit_code == 0
    edit(project, '"Greets somebody."', '"Greets anybody."')
    listed = cli("tools", "list", "greeter")
    assert listed.stdout == "mcp://greeter/greet\tGreets anybody.\theld back: changed\n"
    assert "1 of its tools changed: luthier tools diff greeter" in listed.stderr
    document = json.loads(cli("tools", "list", "greeter", "--json").stdout)
    assert (document["tools"], document["held"][0]["held"]) == ([], "changed")
    assert cli("tools", "show", "mcp://greeter/greet").exit_code == 3
    assert cli("tools", "approve", "greeter", "greet").exit_code == 0
    assert cli("tools", "diff").stdout == "greeter: all 1 tools are as they were approved\n"
