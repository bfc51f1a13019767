"""`luthier doctor`: what is told, and the exit status."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

from typer.testing import Result

if TYPE_CHECKING:
    from pathlib import Path

Cli = Callable[..., Result]

BROKEN = "mcpServers: {evil: {command: python, args: [-c, x]}}\n"


def test_a_sound_project_is_told_check_by_check(cli: Cli, folder: Path) -> None:
    (folder / "luthier.yaml").write_text("mcpServers: {far: {url: 'https://far.example.com/mcp'}}\n")
    done = cli("doctor")
    assert done.exit_code == 0, done.output
    for word in ("interpreters", "sandbox", "store", "audit", "secrets", "servers", "far"):
        assert word in done.stdout
    assert "\x1b" not in done.stdout
    assert not (folder / ".luthier").exists()


def test_what_is_broken_ends_with_1_and_its_fix(cli: Cli, folder: Path) -> None:
    (folder / "file").write_text("")
    (folder / "luthier.yaml").write_text(BROKEN + "store: 'sqlite:///file/x.db'\n")
    done = cli("doctor")
    assert done.exit_code == 1
    assert "broken" in done.stdout
    assert "name another place under `store`" in done.stdout


def test_as_json_it_is_one_document(cli: Cli, folder: Path) -> None:
    (folder / "luthier.yaml").write_text(BROKEN)
    done = cli("doctor", "--json")
    told = json.loads(done.stdout)
    assert (done.exit_code, told["ok"], told["environment"]) == (1, False, "development")
    [evil] = told["checks"]["servers"]
    assert (evil["name"], evil["status"]) == ("evil", "broken")


def test_without_a_project_the_machine_is_looked_at(cli: Cli, folder: Path) -> None:
    done = cli("doctor")
    assert done.exit_code == 0
    assert "no server is registered" in done.stdout
