"""The scripts say plainly what is missing, the pins are exact, and their tables are added up rightly."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from scripts import mutation
from scripts.coverage_rooms import Tally, complaints, table, tallies

ROOT = Path(__file__).parent.parent
PIN = re.compile(r"(?P<name>[A-Za-z0-9._-]+)==[A-Za-z0-9.!+]+")


def pins(name: str) -> set[str]:
    lines = (ROOT / "requirements" / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    return {line for line in lines if not line.startswith("#")}


@pytest.mark.parametrize("name", ["run", "demo", "test", "build"])
def test_requirements_are_exact_versions_and_nothing_else(name: str) -> None:
    assert [line for line in sorted(pins(name)) if not PIN.fullmatch(line)] == []


def test_the_smaller_requirements_are_part_of_the_larger() -> None:
    assert pins("run") < pins("demo") < pins("test")


# What the scripts say on a machine that lacks something


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """The scripts and what they read, in a folder with a space in its name."""
    root = tmp_path / "a clone"
    for part in ("scripts", "requirements"):
        shutil.copytree(ROOT / part, root / part)
    return root


def tools(tmp_path: Path, *names: str, **fakes: str) -> str:
    """A PATH that holds the named tools and, besides, scripts made of the given lines."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("dirname", "cat", "rm", *names):
        found = shutil.which(name)
        assert found is not None
        (folder / name).symlink_to(found)
    for name, line in fakes.items():
        (folder / name).write_text(f"#!/bin/sh\n{line}\n", encoding="utf-8")
        (folder / name).chmod(0o755)
    return str(folder)


def run(script: Path, path: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [shutil.which("sh") or "/bin/sh", script],
        env={"PATH": path, "HOME": ""},
        cwd=os.sep,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


OLD = 'case "$*" in *version_info*) echo 3.9 ;; *) exit 1 ;; esac'
BARE = 'case "$*" in *version_info*) echo 3.12 ;; *) exit 1 ;; esac'


@pytest.mark.parametrize("script", ["demo", "test"])
def test_a_missing_git_is_named_with_its_package(script: str, clone: Path, tmp_path: Path) -> None:
    done = run(clone / "scripts" / script, tools(tmp_path))
    assert done.returncode == 2
    assert "git is missing" in done.stderr
    assert "apt-get install git" in done.stderr


def test_a_python_that_is_too_old_is_named_with_its_version(clone: Path, tmp_path: Path) -> None:
    done = run(clone / "scripts" / "test", tools(tmp_path, "git", python3=OLD))
    assert done.returncode == 2
    assert "needs Python 3.11 or newer" in done.stderr
    assert "python3 is 3.9" in done.stderr


def test_a_missing_python_is_said_to_be_missing(clone: Path, tmp_path: Path) -> None:
    done = run(clone / "scripts" / "test", tools(tmp_path, "git"))
    assert done.returncode == 2
    assert "needs Python 3.11 or newer" in done.stderr


def test_a_python_without_venv_is_named_with_the_package_that_has_it(clone: Path, tmp_path: Path) -> None:
    done = run(clone / "scripts" / "test", tools(tmp_path, "git", python3=BARE))
    assert done.returncode == 2
    assert "apt-get install python3.12-venv" in done.stderr


def test_the_demo_wants_a_repository_that_has_a_history(clone: Path, tmp_path: Path) -> None:
    done = run(clone / "scripts" / "demo", tools(tmp_path, git="exit 128"))
    assert done.returncode == 2
    assert "no git history" in done.stderr
    assert "repo_path=" in done.stderr


# The coverage table


def summary(statements: int, hit: int, branches: int = 0, branches_hit: int = 0) -> dict[str, dict[str, int]]:
    numbers = {"num_statements": statements, "covered_lines": hit}
    return {"summary": numbers | {"num_branches": branches, "covered_branches": branches_hit}}


def test_coverage_is_added_up_by_room_with_branches() -> None:
    files = {
        "src/luthier/tools/a.py": summary(10, 10, 4, 2),
        "src/luthier/tools/deep/b.py": summary(6, 6),
        "src/luthier/uri.py": summary(5, 5),
    }
    rooms = tallies({"files": files})
    assert rooms == {"tools": Tally(16, 16, 4, 2), "uri.py": Tally(5, 5)}
    assert rooms["tools"].percent == 90.0
    assert "90.0" in table(rooms, {})


def test_a_room_below_the_threshold_is_complained_of() -> None:
    [complaint] = complaints({"tools": Tally(100, 94), "uri.py": Tally(100, 95), "empty": Tally()}, {})
    assert complaint == "tools is covered to 94.0 %, and must reach 95 %"


def test_an_exception_lowers_the_bar_and_must_be_needed() -> None:
    excepted = {"cli": (80.0, "drawn on a terminal"), "gone": (50.0, "left")}
    assert complaints({"cli": Tally(100, 85)}, excepted) == ["gone is excepted, but is no room"]
    assert complaints({"cli": Tally(100, 96)}, {"cli": excepted["cli"]}) == [
        "cli reaches 95 % now: take it off the exceptions"
    ]
    assert "drawn on a terminal" in table({"cli": Tally(100, 85)}, excepted)


# The groups of mutants


@pytest.mark.parametrize("name", mutation.GROUPS)
def test_the_files_and_tests_of_a_group_of_mutants_are_there(name: str) -> None:
    group = mutation.GROUPS[name]
    assert [file for file in group.files if not list((ROOT / "src/luthier").glob(file))] == []
    assert [path for path in group.tests if not (ROOT / path).exists()] == []
    chosen = tomllib.loads(mutation.settings(group))["tool"]["mutmut"]
    assert chosen["only_mutate"] == [f"src/luthier/{file}" for file in group.files]
    assert chosen["pytest_add_cli_args_test_selection"] == list(group.tests)


def test_a_mutant_counts_as_killed_where_a_test_failed_or_ran_out_of_time() -> None:
    found = mutation.Tally()
    for number, code in enumerate((1, 1, 3, 36, -24, 0, 33, -11, None)):
        found.add(f"luthier.m.x_f__mutmut_{number}", code)
    assert [end for _, end in found.survivors] == ["survived", "no test", "no verdict"]
    assert found.percent == 62.5
    assert found.line("m", 2.4) == (
        "m: 9 mutants, 3 killed, 2 timed out, 3 survived, 1 not run: 62.5 % (2 s)"
    )


def test_a_group_of_which_nothing_ran_has_killed_nothing() -> None:
    assert mutation.Tally().percent == 0.0


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("luthier.taint.label.xǁLabelǁjoin__mutmut_12", "luthier.taint.label: Label.join 12"),
        ("luthier.taint.label.x_join__mutmut_1", "luthier.taint.label: join 1"),
        ("luthier.web.rules.x__is_inside__mutmut_3", "luthier.web.rules: _is_inside 3"),
        ("something else", "something else"),
    ],
)
def test_mutants_are_told_by_their_function_and_number(name: str, told: str) -> None:
    assert mutation.readable(name) == told


def test_a_group_that_is_not_there_is_answered_with_those_that_are() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts/mutation.py", "label"],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 2
    assert "no such group: label; there are labels, policies" in done.stderr
