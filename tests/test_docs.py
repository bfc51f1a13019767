"""The docs run: every example of the README and the pages is written out, checked and run, in its order."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from luthier.expr import Scope, compile_value
from luthier.expr.functions import FILTERS, FUNCTIONS, METHODS, NAMESPACES
from luthier.spec import ServerEntry
from luthier.spec.members import STATUS
from luthier.taint import Labelled

ROOT = Path(__file__).parents[1]

# A comment on the line before a fence says what to do with it.
_MARKED = re.compile(
    r"<!-- (file: (?P<file>\S+)|run in the same folder) -->\n```\w+\n(?P<body>.*?)\n```", re.DOTALL
)
_FENCE = re.compile(r"^```(\w+)$", re.MULTILINE)


def run(folder: Path, *words: str) -> str:
    """A command with this environment's programs first on PATH, as in an activated shell."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        words,
        cwd=folder,
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def play(page: Path, folder: Path) -> list[str]:
    """Write and run the examples of a page in one folder; gives what those that ran printed."""
    ran = []
    for example in _MARKED.finditer(page.read_text()):
        name, body = example["file"], example["body"]
        if name is None:
            ran.append(run(folder, "sh", "-ec", body))
            continue
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(body + "\n")
        if target.suffix == ".py":
            ran.append(run(folder, "python", name))
    return ran


@pytest.mark.timeout(300)  # a command after the other, each within its own bound
def test_the_examples_of_the_readme_work(tmp_path: Path) -> None:
    clocks, python = play(ROOT / "README.md", tmp_path)
    assert run(tmp_path, "luthier", "check") == "ok\n"
    assert json.loads(clocks)["there"].endswith("+09:00")
    assert "+09:00" in python
    assert "untrusted" in python


PAGES = sorted((ROOT / "docs").glob("*.md"))


@pytest.mark.timeout(300)  # a command after the other, each within its own bound
@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_the_examples_of_a_page_work(page: Path, tmp_path: Path) -> None:
    play(page, tmp_path)
    if (tmp_path / "luthier.yaml").exists():
        assert run(tmp_path, "luthier", "check", "luthier.yaml") == "ok\n"


@pytest.mark.parametrize("page", [ROOT / "README.md", *PAGES], ids=lambda page: page.stem)
def test_every_yaml_json_and_python_example_is_run(page: Path) -> None:
    text = page.read_text()
    fences = [kind for kind in _FENCE.findall(text) if kind in ("yaml", "python", "json")]
    assert len(fences) == sum(1 for example in _MARKED.finditer(text) if example["file"])


def test_the_example_project_is_sound() -> None:
    assert run(ROOT, "luthier", "check", "examples/repo-digest") == "ok\n"


def test_the_examples_of_the_pages_on_files_are_sound(tmp_path: Path) -> None:
    (tmp_path / "ensembles").mkdir()
    (tmp_path / "ensembles" / "digest.yaml").write_text(
        "agents: [{name: a, operation: tools, config: {mcp: github, tool: get_issue}}]\n"
    )
    example, *_ = _MARKED.finditer((ROOT / "docs" / "servers.md").read_text())
    (tmp_path / example["file"]).write_text(example["body"] + "\n")
    assert run(tmp_path, "luthier", "check") == "ok\n"
    assert run(tmp_path, "luthier", "servers", "list").count("\n") == 4


def test_the_page_on_servers_names_every_key_of_an_entry() -> None:
    page = (ROOT / "docs" / "servers.md").read_text()
    written = {"timeout": "timeout_ms", "tool_timeout": "tool_timeout_ms", "cache_ttl": "cache_ttl_ms"}
    named = {"id", "name", "description", "origin", "tool_timeout_max"}
    for field in ServerEntry.__struct_fields__:
        if field not in named:
            assert f"`{written.get(field, field)}`" in page, field


def test_every_test_that_the_page_on_security_names_is_there() -> None:
    named = re.findall(r"`([\w/]+\.py)::(\w+)`", (ROOT / "docs" / "security.md").read_text())
    assert len(named) >= 35
    for file, name in named:
        assert f"def {name}(" in (ROOT / "tests" / file).read_text(), f"{file}::{name}"


def test_every_file_and_test_that_the_page_on_tests_names_is_there() -> None:
    table = (ROOT / "tests" / "README.md").read_text().partition("first tests covered")[2]
    named = re.findall(r"`([\w/]+\.(?:py|yaml))(?:::(\w+))?`", table)
    assert len(named) >= 80
    for file, name in named:
        text = (ROOT / "tests" / file).read_text()
        assert not name or f"def {name}(" in text, f"{file}::{name}"


def test_the_page_of_keys_is_the_one_that_the_schemas_make() -> None:
    written = run(ROOT, "python", "scripts/keys.py")
    assert (ROOT / "docs" / "keys.md").read_text() == written, "python scripts/keys.py > docs/keys.md"


EXPRESSIONS = (ROOT / "docs" / "expressions.md").read_text()


def cells(page: str) -> list[tuple[str, str]]:
    """The rows of two cells, each one piece of code, bars in them written out."""
    rows = re.findall(r"^\| `((?:[^`]|\\\|)+)` \| `([^`]+)` \|$", page, re.MULTILINE)
    return [(left.replace("\\|", "|"), right.replace("\\|", "|")) for left, right in rows]


@pytest.mark.parametrize(("expression", "value"), cells(EXPRESSIONS))
def test_an_expression_of_the_page_gives_what_the_page_says(expression: str, value: str) -> None:
    given = re.search(r"`input` as `(.+)`", EXPRESSIONS)
    assert given is not None
    scope = Scope({"input": Labelled(json.loads(given[1]))}, now=0.0)
    assert compile_value("${" + expression + "}").evaluate(scope).value == json.loads(value)


def test_the_page_on_expressions_has_every_function_filter_method_and_member() -> None:
    assert len(cells(EXPRESSIONS)) > 18
    names = {f"{name}(" for name in FUNCTIONS} | {f".{name}(" for name in METHODS}
    assert [name for name in names if name not in EXPRESSIONS] == []
    words = set(re.findall(r"`(\w+)(?:\([^`]*\))?`", EXPRESSIONS))
    assert {*FILTERS, *STATUS} - words == set()
    for namespace, functions in NAMESPACES.items():
        assert f"{namespace}.{' '.join(sorted(functions))}" in EXPRESSIONS
