"""Files that a profile runs: whoever could write or exchange them is the one who decides what runs."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

import pytest

from luthier.connect.vouched import UnfitFileError, vouch

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A program in a folder of its own, with permissions that do not depend on anybody's umask."""
    folder = tmp_path / "bin"
    folder.mkdir(mode=0o755)
    folder.chmod(0o755)
    program = folder / "server"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    return program


def unfit(path: Path, **how: object) -> str:
    with pytest.raises(UnfitFileError) as caught:
        vouch(path, **how)  # type: ignore[arg-type]
    return str(caught.value)


def test_a_file_of_ours_is_opened_and_what_was_opened_is_told(program: Path) -> None:
    link = program.parent / "link"
    link.symlink_to("../bin/server")
    opened = vouch(link, sha256=hashlib.sha256(b"#!/bin/sh\n").hexdigest(), executable=True)
    assert opened.real == program.resolve()
    assert os.read(opened.descriptor, 100) == b"#!/bin/sh\n"
    opened.close()
    opened.close()


def writable(path: Path) -> None:
    path.chmod(path.stat().st_mode | 0o020)


def folder_writable(path: Path) -> None:
    writable(path.parent)


def plain(path: Path) -> None:
    path.chmod(0o644)


def absent(path: Path) -> None:
    path.unlink()


def endless(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.name)


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (writable, "may be written to by others"),
        (folder_writable, "lies in a folder that others may write to"),
        (plain, "is not executable"),
        (absent, "cannot be opened: No such file"),
        (endless, "is reached by too many links"),
        (pipe, "is not a regular file"),
    ],
)
def test_a_file_that_others_could_decide_on_is_unfit(
    program: Path, change: Callable[[Path], None], why: str
) -> None:
    change(program)
    assert why in unfit(program, executable=True)


def test_a_folder_where_nobody_moves_what_is_not_theirs_may_be_open_to_all(program: Path) -> None:
    program.parent.chmod(0o1777)
    vouch(program).close()


def test_a_file_with_other_content_is_another_file_even_if_it_was_known(program: Path) -> None:
    digest = hashlib.sha256(b"#!/bin/sh\n").hexdigest()
    vouch(program, sha256=digest).close()
    program.write_text("#!/bin/ksh")
    assert "the SHA-256 differs" in unfit(program, sha256=digest)


def test_a_path_that_no_file_can_have_is_unfit(program: Path) -> None:
    assert "cannot be opened" in unfit(program.parent / "a\0b")
    assert "cannot be opened" in unfit(program / "below")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_what_belongs_to_somebody_else_is_unfit(program: Path) -> None:
    os.chown(program, 12345, -1)
    assert "belongs to somebody else" in unfit(program)
    os.chown(program, 0, -1)
    link = program.parent / "link"
    link.symlink_to("server")
    os.chown(link, 12345, -1, follow_symlinks=False)
    assert "by a link that belongs to somebody else" in unfit(link)
    os.chown(program.parent, 12345, -1)
    assert "in a folder of somebody else" in unfit(program)
