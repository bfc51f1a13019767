"""What may stand in the holes of a launch profile, and which patterns a hole may have."""

from __future__ import annotations

from typing import Any

import pytest

from luthier.errors import SpecError
from luthier.spec import Hole, LaunchProfile, read_project
from luthier.spec.commands import ArgumentFault, Plan
from luthier.spec.profile import holes_in, pattern_fault

WORD = Hole(pattern="[a-z]+", max_length=5)
SIDE = Hole(enum=("left", "right"))
PROFILE = LaunchProfile(
    name="p", executable="/bin/x", args=("--side={side}", "{word}", "{}"), holes={"side": SIDE, "word": WORD}
)


@pytest.mark.parametrize(
    ("hole", "value", "why"),
    [
        (WORD, "abcde", ""),
        (WORD, "abcdef", "has more than 5 characters"),
        (WORD, "", "does not match [a-z]+"),
        (WORD, "a b", "does not match [a-z]+"),
        (WORD, "ab1", "does not match [a-z]+"),
        (WORD, "-a", "begins with -, so it would be an option"),
        (WORD, "a\n", "holds characters that cannot be printed"),
        (Hole(pattern=".*"), "\u200b", "holds characters that cannot be printed"),
        (Hole(pattern=".*"), "a" * 128, ""),
        (Hole(pattern=".*"), "a" * 129, "has more than 128 characters"),
        (Hole(), "a", "does not match None"),
        (SIDE, "left", ""),
        (SIDE, "lef", "is none of left, right"),
        (Hole(enum=("-c",)), "-c", "begins with -, so it would be an option"),
        (Hole(enum=("a" * 200,)), "a" * 200, ""),
    ],
)
def test_a_value_is_what_its_hole_allows(hole: Hole, value: str, why: str) -> None:
    assert hole.fault(value) == why


@pytest.mark.parametrize(
    ("values", "fault"),
    [
        ({"side": "left", "word": "a"}, ("", "")),
        ({"side": "left", "word": "a", "more": "b"}, ("more", "is not a hole of its profile")),
        ({"side": "left"}, ("word", "is missing")),
        ({"side": "up", "word": "A"}, ("side", "is none of left, right")),
        ({"side": "left", "word": "A"}, ("word", "does not match [a-z]+")),
    ],
)
def test_values_fit_when_each_hole_has_one_and_no_other_is_there(
    values: dict[str, str], fault: tuple[str, str]
) -> None:
    assert PROFILE.fault(values) == fault


def test_a_value_stays_within_its_argument_and_is_filled_in_once() -> None:
    assert PROFILE.filled({"side": "left", "word": "{side}"}) == ("--side=left", "{side}", "{}")
    assert holes_in("--{a}={_b1}{}{1}{c d}") == ("a", "_b1")


def test_what_a_hole_would_decide_to_run_is_refused() -> None:
    args = ("-I", "/srv/{word}.py")
    python = LaunchProfile(name="p", executable="/bin/python", args=args, holes={"word": WORD})
    assert python.judged("python") == ArgumentFault(1, "has a hole where it is decided what is run")
    assert python.judged("server") == Plan()


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("[a-z]{1,9}", ""),
        ("(a|b)c", ""),
        (r"\(x\)+", ""),
        ("a" * 200, ""),
        ("a" * 201, "is longer than 200 characters"),
        ("(a+)+", "repeats a group, which can take very long"),
        ("(a|b)*", "repeats a group, which can take very long"),
        ("(a){9}", "repeats a group, which can take very long"),
        (r"(a\\)+", "repeats a group, which can take very long"),
        (r"(a)\1", "refers back or has an extended group"),
        ("(?i)a", "refers back or has an extended group"),
        ("[a", "is not a regular expression: unterminated character set"),
    ],
)
def test_a_pattern_is_a_short_one_that_cannot_take_for_ever(pattern: str, why: str) -> None:
    assert pattern_fault(pattern) == why


def judged(module: str, **project: Any) -> str:
    """What is said against a profile that runs that module behind -m; nothing where it may."""
    said = set()
    for args in (["-I", "-m", module], [f"-Im{module}"]):
        profiles = {"notes": {"executable": "/usr/bin/python3", "args": args}}
        try:
            read_project({"launch_profiles": profiles, **project})
            said.add("")
        except SpecError as error:
            said.add(error.faults[0].message.rpartition(": it ")[2])
    (one,) = said
    return one


UNLISTED = "is a module that `allowed_modules` does not list"


@pytest.mark.parametrize("module", ["mcp_server_git", "mcp_server_git.cli", "notes_mcp", "notes_mcp_server"])
def test_modules_that_are_servers_by_their_names_may_be_run(module: str) -> None:
    assert judged(module) == ""
    assert UNLISTED in judged(module, allowed_modules=[])


@pytest.mark.parametrize("module", ["notes", "runner", "mcp_serve_git", "a.mcp_server_git", "invoke"])
def test_any_other_module_must_be_listed(module: str) -> None:
    assert UNLISTED in judged(module)
    assert judged(module, allowed_modules=[module]) == ""
    assert judged(module, allowed_modules=[f"{module[:3]}*"]) == ""
    assert UNLISTED in judged(module, allowed_modules=["others"])


@pytest.mark.parametrize("module", ["pip", "timeit", "pytest", "code"])
def test_to_list_a_module_that_runs_what_it_is_given_does_not_let_it_run(module: str) -> None:
    assert "runs what it is given" in judged(module, allowed_modules=[module, "*"])
