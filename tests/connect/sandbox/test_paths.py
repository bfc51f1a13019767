"""Paths mean what they say: what is named can be read or written, and nothing else is there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from luthier.errors import ConnectError
from luthier.events import ServerNoise
from luthier.spec import Sandbox
from tests.connect.sandbox.cell import SERVER, cell, inmate, needs_sandbox

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = needs_sandbox


async def test_what_is_named_is_there_and_nothing_else(tmp_path: Path) -> None:
    for name in ("in", "out", "secret"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
    box = Sandbox(mode="required", read=("in",), write=("out",))
    async with cell(inmate(sandbox=box), root=tmp_path) as made:
        assert await made.try_("import os; print(os.getcwd(), *sorted(os.listdir()))") == f"{tmp_path} in out"
        assert await made.try_("print(open('in/file').read())") == "in"
        assert "Read-only" in await made.try_("open('in/file', 'w')")
        assert "FileNotFoundError" in await made.try_("open('secret/file')")
        assert await made.try_("open('out/new', 'w').write('x')") == ""
        # Under its own /tmp, as it happens, and so to nobody but itself.
        assert await made.try_("open('new', 'w'); import os; open(os.path.expanduser('~/x'), 'w')") == ""
    assert not (tmp_path / "new").exists()
    assert (tmp_path / "out" / "new").read_text() == "x"


@pytest.mark.parametrize("home", ["/root", "/home/somebody", "/srv/gone", "folder", "under"])
async def test_its_home_and_its_other_folders_are_there_wherever_ours_are(tmp_path: Path, home: str) -> None:
    (tmp_path / "out" / "deep").mkdir(parents=True)
    ours = {"folder": str(tmp_path / "out"), "under": str(tmp_path)}.get(home, home)
    cache = str(tmp_path / "out" / "deep")
    variables = {"HOME": ours, "TMPDIR": str(tmp_path), "XDG_CACHE_HOME": cache}
    box = Sandbox(mode="required", write=("out",))
    async with cell(inmate(sandbox=box), root=tmp_path, environ=variables) as made:
        said = await made.try_(
            "import os, tempfile; open(os.path.expanduser('~/x'), 'w'); tempfile.TemporaryFile(); "
            "print(os.environ['HOME'], os.environ.get('TMPDIR'), os.environ['XDG_CACHE_HOME'])"
        )
    kept = "/home/server" if home in ("/srv/gone", "under") else ours
    assert said == f"{kept} None {cache}"


async def test_a_path_that_is_not_there_is_an_error_with_its_place(tmp_path: Path) -> None:
    async with cell(inmate(sandbox=Sandbox(mode="required", read=("gone",))), root=tmp_path) as made:
        with pytest.raises(ConnectError, match=r"sandbox\.read\[0\]: the read path 'gone' is not there"):
            await made.manager.manifest("inmate")


async def test_the_script_can_be_seen_but_not_changed() -> None:
    async with cell(inmate(sandbox=Sandbox(mode="auto"))) as made:
        assert "Read-only" in await made.try_(f"open({str(SERVER)!r}, 'a')")
        assert made.notebook.of(ServerNoise) == []
