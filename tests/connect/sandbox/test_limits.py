"""Limits: what is set, where the groups are, and that no group is left behind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from luthier.connect.sandbox.limits import Limits, cgroup, controllers, inside, limits_of, remove, shortfall
from luthier.spec import Sandbox

if TYPE_CHECKING:
    from pathlib import Path

LIMITS = Limits(memory=1024, processes=5, asked=True)


def test_what_an_entry_does_not_say_is_limited_all_the_same() -> None:
    assert limits_of(Sandbox()) == Limits(2048 * 1024 * 1024, 256)
    assert limits_of(Sandbox(memory_mb=1)) == Limits(1024 * 1024, 256, asked=True)
    assert limits_of(Sandbox(max_processes=2)) == Limits(2048 * 1024 * 1024, 2, asked=True)


def test_the_words_set_memory_and_processes() -> None:
    words = inside(LIMITS) or ()
    assert "--data=1024" in words
    assert words[-1] == "--"


def test_what_is_not_kept_is_told() -> None:
    assert shortfall(set_inside=True, root=False, grouped=False) == ""
    assert shortfall(set_inside=True, root=True, grouped=True) == ""
    assert "needs a control group" in shortfall(set_inside=True, root=True, grouped=False)
    assert "there is no prlimit" in shortfall(set_inside=False, root=False, grouped=False)


def group(folder: Path, **files: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)
    return folder


def test_the_groups_of_version_one_are_ours_in_each_tree(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.write_text("9:name=systemd:/\n8:pids:/box\n4:cpu,memory:/a/b\nodd\n0::/\n")
    pids = group(tmp_path / "pids" / "box")
    memory = group(tmp_path / "memory" / "a" / "b")
    assert controllers(tmp_path, own) == {"pids": pids, "memory": memory}


def test_the_group_of_version_two_is_the_one_that_passes_controllers_on(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.write_text("0::/slice/unit\n")
    group(tmp_path / "slice" / "unit", cgroup__subtree_control="")
    above = group(tmp_path / "slice", cgroup__subtree_control="memory pids\n")
    assert controllers(tmp_path, own) == {"pids": above, "memory": above}
    assert controllers(tmp_path, tmp_path / "gone") == {}


def test_a_group_that_cannot_be_set_is_not_left_behind(tmp_path: Path) -> None:
    base = group(tmp_path / "pids")
    assert cgroup(LIMITS, {"pids": base}) == ()
    assert list(base.iterdir()) == []
    assert cgroup(LIMITS, {"memory": base}) == ()
    assert cgroup(LIMITS, {"pids": tmp_path / "gone"}) == ()


def test_groups_of_processes_that_are_no_more_are_swept_up(tmp_path: Path) -> None:
    (tmp_path / "luthier-999999999-0").mkdir()
    (tmp_path / "luthier-1-0").mkdir()
    busy = group(tmp_path / "luthier-1-1", procs="")
    remove([busy])
    (busy / "procs").unlink()
    cgroup(LIMITS, {"pids": tmp_path})
    assert [folder.name for folder in tmp_path.iterdir()] == ["luthier-1-0"]
