"""`luthier runs`: which runs there were, how each stands, and what happened in it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
import typer

from luthier.cli.moments import moment

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


OUTER = """
ensemble: outer
agents:
  - {name: a, operation: ensemble, config: {ensemble: hello}}
"""


def test_runs_inside_of_others_are_listed_where_all_are_asked_for(project: Path, cli: Cli) -> None:
    (project / "outer.yaml").write_text(OUTER)
    outer = ran(cli, "outer.yaml")
    document = json.loads(cli("runs", "list", "--json").stdout)
    assert [row["id"] for row in document["runs"]] == [outer]
    document = json.loads(cli("runs", "list", "--all", "--json").stdout)
    assert {row["root"] for row in document["runs"]} == {outer}
    assert {row["ensemble"] for row in document["runs"]} == {"outer", "hello"}


def test_runs_that_ended_long_ago_are_taken_away(project: Path, cli: Cli) -> None:
    (project / "outer.yaml").write_text(OUTER)
    outer = ran(cli, "outer.yaml")
    assert cli("runs", "prune", "--before", "1d").stdout == ""
    told = cli("runs", "prune", "--before", "0s", "--dry-run")
    assert told.exit_code == 0
    assert outer in told.stdout
    document = json.loads(cli("runs", "prune", "--before", "2999-01-01", "--json").stdout)
    assert ([row["id"] for row in document["pruned"]], document["dry_run"]) == ([outer], False)
    assert json.loads(cli("runs", "list", "--all", "--json").stdout) == {"runs": []}
    assert cli("runs", "show", outer).exit_code == 2
    assert "no moment" in cli("runs", "prune", "--before", "soon").output


NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("90m", "2026-03-01T10:30:00+00:00"),
        ("30d", "2026-01-30T12:00:00+00:00"),
        ("2w", "2026-02-15T12:00:00+00:00"),
        ("2026-01-31", "2026-01-31T00:00:00+00:00"),
        ("2026-01-31T10:00+02:00", "2026-01-31T08:00:00+00:00"),
    ],
)
def test_a_moment_is_a_date_or_how_long_ago(written: str, meant: str) -> None:
    assert moment(written, NOW) == datetime.fromisoformat(meant).timestamp()


@pytest.mark.parametrize("written", ["", "1", "d", "-1d", "1.5h", "999999w", "2026-13-01", "yesterday"])
def test_what_is_no_moment_is_told_how_one_is_written(written: str) -> None:
    with pytest.raises(typer.BadParameter, match="how long ago"):
        moment(written, NOW)
