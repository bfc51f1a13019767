"""`luthier check` knows the tools of servers that were asked before, and starts none to learn of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from luthier.runtime.kept import kept_tools, schemas_of
from luthier.spec import load_project

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from typer.testing import Result

    Cli = Callable[..., Result]

WRONG = "agents: [{name: a, operation: tools, config: {mcp: greeter, tool: greet}, input: {nmae: you}}]\n"


def test_arguments_are_judged_by_what_a_run_has_listed(cli: Cli, project: Path) -> None:
    (project / "ensembles" / "wrong.yaml").write_text(WRONG)
    assert cli("check").exit_code == 0
    assert not (project / ".luthier").exists()
    assert cli("run", "hello").exit_code == 0
    (project / "servers" / "greeter.py").unlink()
    done = cli("check", "ensembles/wrong.yaml")
    assert done.exit_code == 2
    assert (
        "ensembles/wrong.yaml:1:82: error: `mcp://greeter/greet` lacks `name` (did you mean nmae?)"
        in done.stderr
    )


def test_nothing_is_known_without_a_store_or_of_one_that_cannot_be_read(cli: Cli, project: Path) -> None:
    loaded = load_project(project / "luthier.yaml")
    assert kept_tools(loaded, {}) == {}
    assert cli("tools", "list").exit_code == 0
    assert list(kept_tools(loaded, {})) == ["greeter"]
    (project / ".luthier" / "luthier.db").write_bytes(b"no database" * 100)
    assert kept_tools(loaded, {}) == {}
    (project / "luthier.yaml").write_text("mcpServers: {}\nstore: postgresql://localhost/nowhere\n")
    assert kept_tools(load_project(project / "luthier.yaml"), {}) == {}


def test_pins_that_are_none_are_passed_over() -> None:
    assert schemas_of(None) == {}
    assert schemas_of({"a": 1, "b": {"definition": 1}, "c": {"definition": {"name": "c"}}}) == {}
    assert schemas_of({"d": {"definition": {"inputSchema": {"type": "object"}}}}) == {"d": {"type": "object"}}
