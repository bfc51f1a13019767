"""Whether there is a sandbox is found out by trying; the command line holds what was decided."""

from __future__ import annotations

from pathlib import Path

import pytest

from luthier.connect.sandbox import Box, Limits, Mounts, Works, command_line, working

HELP = "case $* in *--help*) echo '--ro-bind-fd FD DEST'; exit 0 ;; esac\n"


def program(folder: Path, text: str) -> str:
    file = folder / "bwrap"
    file.write_text(f"#!/bin/sh\n{text}")
    file.chmod(0o755)
    return str(file)


def test_a_program_that_is_not_here_is_said_to_be_missing() -> None:
    works = working("no-such-luthier-program")
    assert (works.program, works.why) == ("", "bubblewrap is not installed")
    assert "apt-get install bubblewrap" in works.fix


def test_a_program_that_fails_at_its_trial_is_told_with_its_last_words(tmp_path: Path) -> None:
    works = working(program(tmp_path, f"{HELP}echo 'No permissions to create a namespace' >&2; exit 1\n"))
    assert works.program == ""
    assert works.why == "bubblewrap does not work here: No permissions to create a namespace"
    assert "unprivileged user namespaces" in works.fix


def test_a_program_that_cannot_be_run_at_all_is_told(tmp_path: Path) -> None:
    file = Path(program(tmp_path, ""))
    file.write_bytes(b"\x7fELF is not enough")
    assert working(str(file)).why.startswith("bubblewrap does not run: ")


@pytest.mark.parametrize(("help_", "able"), [(HELP, True), ("", False)])
def test_what_a_program_can_do_is_asked(tmp_path: Path, help_: str, able: bool) -> None:  # noqa: FBT001
    works = working(program(tmp_path, f"{help_}exit 0\n"))
    assert (works.program, works.by_descriptor, works.filters) == (str(tmp_path / "bwrap"), able, True)


def test_where_calls_cannot_be_filtered_there_is_a_sandbox_all_the_same(tmp_path: Path) -> None:
    works = working(program(tmp_path, f"{HELP}case $* in *--seccomp*) exit 1 ;; esac\nexit 0\n"))
    assert (works.program, works.filters) == (str(tmp_path / "bwrap"), False)


def test_what_is_hidden_and_what_is_open_already_come_last(tmp_path: Path) -> None:
    mounts = Mounts(links=(), binds=(), named=(), hidden=(Path("/p/.luthier"),))
    box = Box(
        mounts=mounts,
        limits=Limits(1024, 5),
        network=False,
        home="/home/server",
        cwd="/p",
        files=((7, Path("/p/x")),),
        calls=8,
    )
    words = command_line(Works(program="bwrap"), box, ("/p/x", "--flag"))
    assert words[0] == "bwrap"
    assert words[-2:] == ("/p/x", "--flag")
    line = " ".join(words)
    ends = "--seccomp 8 --dir /p --remount-ro / --chdir /p -- "
    assert f"--tmpfs /p/.luthier --ro-bind-fd 7 /p/x {ends}" in line
    assert "--unshare-net" in words
    assert "--share-net" not in words
