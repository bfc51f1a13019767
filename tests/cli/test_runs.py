"""`luthier runs`: which runs there were, how each stands, and what happened in it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Cli

FAILS = """
ensemble: fails
agents:
  - {name: bad, operation: transform, config: {value: "${1 | slice('x')}"}}
"""


def ran(cli: Cli, *words: str) -> str:
    """The id of a run that is made now."""
    document = json.loads(cli("run", *words, "--json").stdout)
    return str(document["id"])


def test_runs_are_listed_the_newest_first(project: Path, cli: Cli) -> None:
    (project / "fails.yaml").write_text(FAILS)
    good, bad = ran(cli, "hello"), ran(cli, "fails.yaml")
    listed = cli("runs", "list")
    assert listed.exit_code == 0
    lines = listed.stdout.splitlines()
    assert [line.split()[:3] for line in lines[-2:]] == [[bad, "failed", "fails"], [good, "ok", "hello"]]
    document = json.loads(cli("runs", "list", "--status", "failed", "--json").stdout)
    assert [row["id"] for row in document["runs"]] == [bad]
    document = json.loads(cli("runs", "list", "--ensemble", "hello", "--before", bad, "--json").stdout)
    assert [row["id"] for row in document["runs"]] == [good]
    assert cli("runs", "list", "--status", "odd").exit_code == 2


def test_a_run_is_shown_with_what_happened_in_it(project: Path, cli: Cli) -> None:
    (project / "fails.yaml").write_text(FAILS)
    bad = ran(cli, "fails.yaml")
    shown = cli("runs", "show", bad)
    assert shown.exit_code == 0
    assert "RunStarted" in shown.stdout
    assert "condition: " in shown.stdout
    document = json.loads(cli("runs", "show", bad, "--json").stdout)
    assert (document["status"], document["principal"]) == ("failed", "operator")
    assert [entry["kind"] for entry in document["record"]] == [
        "RunStarted",
        "StepStarted",
        "StepEnded",
        "RunEnded",
    ]


def test_a_run_that_is_not_there_is_told_of(project: Path, cli: Cli) -> None:
    done = cli("runs", "show", "nobody")
    assert done.exit_code == 2
    assert "luthier runs list" in done.output
