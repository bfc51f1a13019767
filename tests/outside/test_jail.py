"""No path, link or race leads out of a jail."""

from __future__ import annotations

import itertools
import os
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from luthier.errors import StepError
from luthier.outside.jail import Jail, parts_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LIMIT = 1024
_PART = st.sampled_from(["a", "b", "link", "out", "up", "..", ".", "", "deep", "x\0", "\\", "file"])
PATHS = st.lists(_PART, max_size=5).map("/".join) | st.text(max_size=30)


def laid_out(base: Path) -> tuple[Path, Path]:
    """A jail with links that lead out of it, and the folder beside it that nobody inside may look into."""
    outside, root = base / "outside", base / "jail"
    outside.mkdir()
    (outside / "file").write_text("secret")
    (root / "deep").mkdir(parents=True)
    (root / "out").symlink_to(outside)
    (root / "link").symlink_to(outside / "file")
    (root / "up").symlink_to("..")
    (root / "deep" / "file").hardlink_to(outside / "file")
    return root, outside


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    return laid_out(tmp_path)


@pytest.fixture
def root(folders: tuple[Path, Path]) -> Path:
    return folders[0]


@pytest.fixture
def outside(folders: tuple[Path, Path]) -> Path:
    return folders[1]


def seen(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


@pytest.mark.parametrize(
    "path",
    [
        "", "/", "/etc/passwd", "..", ".", "../a", "a/..", "a/../../b", "a//b", "a/", "./a", "a/./b", "a\0b",
        "a\nb", "a\\b", "x" * 256, "ü" * 128, "a/" * 32 + "a", ".luthier-0123", "a/.luthier-x", "\ud800",
    ],
)  # fmt: skip
def test_what_is_no_path_within_is_refused(path: str) -> None:
    with pytest.raises(StepError, match="no path of a stored file"):
        parts_of(path)


@pytest.mark.parametrize("path", ["a", "a/b c.txt", "...", "a..b", "ü", "a/b/c", "~", "-rf", "x" * 255])
def test_what_is_a_path_is_one(path: str) -> None:
    assert "/".join(parts_of(path)) == path


@settings(max_examples=300)
@given(path=PATHS)
def test_no_path_reads_or_changes_anything_outside(
    path: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    base = tmp_path_factory.mktemp("j")
    root, outside = laid_out(base)
    with Jail(root) as jail:
        with suppress(StepError):
            assert jail.read(path, LIMIT) is None
        with suppress(StepError):
            jail.write(path, b"ours")
            assert jail.read(path, LIMIT) == b"ours"
        with suppress(StepError):
            jail.delete(path)
    assert seen(outside) == {"file": "secret"}
    assert sorted(item.name for item in base.iterdir()) == ["jail", "outside"]


@pytest.mark.parametrize(
    "path", ["link", "out/file", "out/new", "up/outside/file", "deep/file", "deep", "pipe"]
)
def test_links_folders_and_pipes_are_no_files(root: Path, outside: Path, path: str) -> None:
    os.mkfifo(root / "pipe")
    with Jail(root) as jail:
        acts: list[Callable[[], object]] = [
            lambda: jail.read(path, LIMIT),
            lambda: jail.write(path, b"x"),
            lambda: jail.delete(path),
        ]
        for act in acts:
            with pytest.raises(StepError) as caught:
                act()
            assert caught.value.step_kind in ("denied", "code")
    assert seen(outside) == {"file": "secret"}


def test_a_list_shows_plain_files_only(root: Path) -> None:
    with Jail(root) as jail:
        jail.write("b/c", b"12")
        jail.write("a", b"1")
        (root / ".luthier-half").write_text("x")
        assert [found for found in jail.files() if found[0] != "deep/file"] == [("a", 1), ("b/c", 2)]
        assert list(jail.files("b/")) == [("b/c", 2)]
        assert list(jail.files("b/c")) == [("b/c", 2)]
        assert list(jail.files("zzz")) == []


def test_a_file_over_the_limit_is_not_read(root: Path) -> None:
    with Jail(root) as jail:
        jail.write("a", b"x" * LIMIT)
        assert jail.read("a", LIMIT) == b"x" * LIMIT
        jail.write("a", b"x" * (LIMIT + 1))
        with pytest.raises(StepError, match="too many"):
            jail.read("a", LIMIT)


def test_a_write_that_fails_leaves_nothing_behind(root: Path) -> None:
    with Jail(root) as jail:
        (root / "taken").mkdir()
        with pytest.raises(StepError):
            jail.write("taken", b"x")
    assert not list(root.glob(".luthier-*"))


def test_a_folder_that_turns_into_a_link_and_back_lets_nobody_out(root: Path, outside: Path) -> None:
    """Somebody swaps a folder for a link all the time while files are written and read through it."""
    (root / "d").mkdir()
    stop = threading.Event()

    def swap() -> None:
        for number in itertools.count():
            with suppress(OSError):  # the folder may be made anew meanwhile
                (root / "d").rename(root / f"d{number}")
                (root / "d").symlink_to(outside)
                (root / "d").unlink()
            if stop.is_set():
                return

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        with Jail(root) as jail:
            for _ in range(300):
                with suppress(StepError):
                    jail.write("d/file", b"ours")
                with suppress(StepError):
                    assert jail.read("d/file", LIMIT) in (None, b"ours")
                with suppress(StepError):
                    jail.delete("d/file")
    finally:
        stop.set()
        thread.join(timeout=30)
    assert seen(outside) == {"file": "secret"}
