"""What a server in a sandbox sees: its own, what was named, and nothing that it could turn elsewhere."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from luthier.connect.sandbox import Mounts, UnfitMountError, mounts_of
from luthier.spec import Sandbox

PYTHON = Path(sys.executable)


def seen(root: Path, script: Path | None = None, program: Path = PYTHON, **named: Any) -> Mounts:
    path = os.environ["PATH"]
    return mounts_of(Sandbox(**named), root, programs=[program], script=script, path=path)


def targets(mounts: Mounts) -> dict[str, bool]:
    return {str(mount.target): mount.writable for mount in mounts.binds}


def unfit(root: Path, **named: Any) -> tuple[str, str, int]:
    with pytest.raises(UnfitMountError) as caught:
        seen(root, **named)
    return str(caught.value), caught.value.key, caught.value.index


def test_an_interpreter_is_seen_with_what_belongs_to_it(tmp_path: Path) -> None:
    there = targets(seen(tmp_path))
    assert str(PYTHON.parent) in there
    assert str(PYTHON.parent.parent / "lib") in there
    assert str(PYTHON.parent.parent) not in there
    assert "/usr" in there
    assert not any(there.values())


def test_keys_of_the_system_are_not_seen(tmp_path: Path) -> None:
    there = targets(seen(tmp_path))
    assert not {"/", "/etc", "/etc/ssl", "/etc/shadow", "/root", "/home"} & set(there)


def test_a_program_that_is_no_interpreter_is_seen_alone(tmp_path: Path) -> None:
    program = tmp_path / "bin" / "server"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    (program.parent / "other").write_text("")
    there = targets(seen(tmp_path, program=program))
    assert str(program) in there
    assert str(program.parent) not in there


def test_the_interpreter_that_a_script_names_is_seen_too(tmp_path: Path) -> None:
    tool = tmp_path / "bin" / "tool"
    tool.parent.mkdir()
    for line in (f"#!{PYTHON} -I", f"#!/usr/bin/env {PYTHON}", "#!/usr/bin/env -S A=b no-such-program", "#!"):
        tool.write_text(f"{line}\n")
        there = targets(seen(tmp_path, program=tool))
        assert (str(PYTHON.parent) in there) == (str(PYTHON) in line)


def test_the_folder_of_a_script_is_seen_but_never_the_projects_own(tmp_path: Path) -> None:
    (tmp_path / "servers").mkdir()
    for name in ("servers/a.py", "b.py"):
        (tmp_path / name).write_text("")
    assert str(tmp_path / "servers") in targets(seen(tmp_path, script=tmp_path / "servers" / "a.py"))
    alone = targets(seen(tmp_path, script=tmp_path / "b.py"))
    assert str(tmp_path / "b.py") in alone
    assert str(tmp_path) not in alone


def test_named_paths_mean_what_they_say(tmp_path: Path) -> None:
    for name in ("data/in", "data/out", "elsewhere"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "link").symlink_to("elsewhere")
    mounts = seen(tmp_path, read=("data", "link"), write=("data/out",))
    there = targets(mounts)
    assert there[str(tmp_path / "data")] is False
    assert there[str(tmp_path / "data" / "out")] is True
    order = list(there)
    assert order.index(str(tmp_path / "data")) < order.index(str(tmp_path / "data" / "out"))
    assert sorted(map(str, mounts.named)) == [
        f"read {tmp_path / 'data'}",
        f"read {tmp_path / 'link'} (it is {tmp_path / 'elsewhere'})",
        f"write {tmp_path / 'data' / 'out'}",
    ]


def test_what_luthier_keeps_is_covered_where_the_project_is_seen(tmp_path: Path) -> None:
    (tmp_path / ".luthier").mkdir()
    assert seen(tmp_path, read=(".",)).hidden == (tmp_path / ".luthier",)
    assert seen(tmp_path).hidden == ()


def test_paths_that_cannot_be_seen_are_named(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "turned").symlink_to("/usr")
    assert unfit(tmp_path, read=("work", "gone")) == ("is not there", "read", 1)
    assert unfit(tmp_path, write=("~nobody-of-that-name/x",)) == ("is not there", "write", 0)
    assert "no server is shown" in unfit(tmp_path, read=("/",))[0]
    assert "no server is shown" in unfit(tmp_path, write=("/proc",))[0]
    assert "the project's own files" in unfit(tmp_path, write=(".",))[0]
    assert "the project's own files" in unfit(tmp_path, write=(str(tmp_path.parent),))[0]
    said, key, _ = unfit(tmp_path, write=("work",), read=("work/turned",))
    assert ("could turn elsewhere" in said, key) == (True, "read")


def test_a_package_of_npm_is_seen_with_its_neighbours(tmp_path: Path) -> None:
    modules = tmp_path / "tools" / "node_modules"
    script = modules / "server" / "node_modules" / "inner" / "dist" / "index.js"
    script.parent.mkdir(parents=True)
    script.write_text("")
    (modules / ".bin").mkdir()
    (modules / ".bin" / "server").symlink_to("../server/node_modules/inner/dist/index.js")
    there = targets(seen(tmp_path / "project", script=modules / ".bin" / "server"))
    assert str(modules) in there
    assert str(tmp_path / "tools") not in there
