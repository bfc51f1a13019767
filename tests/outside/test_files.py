"""Files that a project keeps: what was written comes back with its label, what was not is a stranger's."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import pytest

from luthier.connect import MemoryState
from luthier.outside import FilesTool
from luthier.outside.keeping import namespace_of
from luthier.taint import SECRET, TRUSTED, UNTRUSTED, Confidentiality, Integrity, Label, Source
from tests.outside.kit import call_of

if TYPE_CHECKING:
    from pathlib import Path

    from luthier.tools import Reply

WEB = Label(Integrity.untrusted, Confidentiality.private, frozenset({Source("web", "fetch", "c0")}))


class Cabinet:
    def __init__(self, root: Path) -> None:
        self.root = root / "files"
        self.state = MemoryState()
        self.tool = FilesTool(self.root, lambda: self.state, "p")

    async def do(
        self, action: str, *, label: Label = TRUSTED, control: Label = TRUSTED, **arguments: Any
    ) -> Reply:
        call = call_of("storage/files", {"action": action, **arguments}, label=label, control=control)
        return await self.tool.carry(call)


@pytest.fixture
def cabinet(tmp_path: Path) -> Cabinet:
    return Cabinet(tmp_path)


async def test_text_that_was_written_is_read(cabinet: Cabinet) -> None:
    wrote = await cabinet.do("write", path="a/b.txt", content="grüß")
    assert wrote.content == {"path": "a/b.txt", "success": True, "size": 6}
    read = (await cabinet.do("read", path="a/b.txt")).content
    assert read == {"path": "a/b.txt", "found": True, "content": "grüß", "encoding": "text", "size": 6}
    assert (await cabinet.do("exists", path="a/b.txt")).content == {
        "path": "a/b.txt",
        "found": True,
        "size": 6,
    }
    assert (cabinet.root / "a" / "b.txt").stat().st_mode & 0o777 == 0o600


async def test_bytes_go_by_base64(cabinet: Cabinet) -> None:
    data = bytes(range(256))
    await cabinet.do("write", path="x", content=base64.b64encode(data).decode(), encoding="base64")
    read = (await cabinet.do("read", path="x")).content
    assert (base64.b64decode(read["content"]), read["encoding"]) == (data, "base64"), "it is no text"
    await cabinet.do("write", path="y", content="text")
    assert (await cabinet.do("read", path="y", encoding="base64")).content["content"] == "dGV4dA=="


async def test_what_is_not_there_is_an_answer_too(cabinet: Cabinet) -> None:
    for path in ("nothing", "no/such/folder"):
        read = await cabinet.do("read", path=path)
        assert (read.content["found"], read.content["content"], read.is_error) == (False, None, False)
        assert not (await cabinet.do("exists", path=path)).content["found"]
        assert (await cabinet.do("delete", path=path)).content == {
            "path": path,
            "success": True,
            "found": False,
        }
        assert read.label == UNTRUSTED


class TestLabels:
    @pytest.mark.parametrize("label", [TRUSTED, UNTRUSTED, WEB], ids=str)
    async def test_a_file_comes_back_with_the_label_that_went_in_with_it(
        self, cabinet: Cabinet, label: Label
    ) -> None:
        await cabinet.do("write", path="a", content="x", label=label)
        for action in ("read", "exists"):
            assert (await cabinet.do(action, path="a")).label == label

    async def test_a_file_that_was_not_written_here_is_a_strangers(self, cabinet: Cabinet) -> None:
        cabinet.root.mkdir()
        (cabinet.root / "a").write_text("x")
        assert (await cabinet.do("read", path="a")).label == UNTRUSTED

    async def test_a_file_that_somebody_changed_is_a_strangers_too(self, cabinet: Cabinet) -> None:
        await cabinet.do("write", path="a", content="x")
        assert (await cabinet.do("read", path="a")).label == TRUSTED
        (cabinet.root / "a").write_text("y")
        assert (await cabinet.do("read", path="a")).label == UNTRUSTED
        await cabinet.do("append", path="a", content="z")
        assert (await cabinet.do("read", path="a")).label == UNTRUSTED, "also when more was written"

    async def test_what_is_appended_joins_what_was_there(self, cabinet: Cabinet) -> None:
        await cabinet.do("append", path="a", content="x")
        assert (await cabinet.do("read", path="a")).label == TRUSTED
        await cabinet.do("append", path="a", content="y", control=WEB)
        read = await cabinet.do("read", path="a")
        assert (read.content["content"], read.label) == ("xy", WEB)

    async def test_what_is_written_anew_has_only_its_own(self, cabinet: Cabinet) -> None:
        await cabinet.do("write", path="a", content="x", label=WEB)
        await cabinet.do("write", path="a", content="y")
        assert (await cabinet.do("read", path="a")).label == TRUSTED

    async def test_what_is_deleted_takes_its_label_along(self, cabinet: Cabinet) -> None:
        await cabinet.do("write", path="a", content="x", label=WEB)
        deleted = await cabinet.do("delete", path="a")
        assert (deleted.content["found"], deleted.label) == (True, WEB)
        assert cabinet.state.list("files:p") == {}

    @pytest.mark.parametrize("action", ["write", "append"])
    async def test_nothing_secret_is_kept(self, cabinet: Cabinet, action: str) -> None:
        reply = await cabinet.do(action, path="a", content="x", label=SECRET)
        assert reply.content["error"]["kind"] == "denied"
        assert not (cabinet.root / "a").exists()


async def test_pages_hold_every_file_once_in_order(cabinet: Cabinet) -> None:
    for path in ("b/2", "b/1", "b/c/3", "a", "c"):
        await cabinet.do("write", path=path, content=path, label=WEB if path == "a" else TRUSTED)
    found: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        page = (await cabinet.do("list", limit=2, cursor=cursor or None)).content
        found += [file["path"] for file in page["files"]]
        cursor = page["cursor"]
        assert page["list_complete"] is (cursor is None)
    assert found == ["a", "b/1", "b/2", "b/c/3", "c"]
    listed = await cabinet.do("list", prefix="b/")
    assert [file["path"] for file in listed.content["files"]] == ["b/1", "b/2", "b/c/3"]
    assert listed.label == UNTRUSTED
    assert (await cabinet.do("list")).label == WEB


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"action": "read"}, "needs a path"),
        ({"action": "write", "path": "a"}, "needs content"),
        ({"action": "write", "path": "a", "content": "!", "encoding": "base64"}, "not base64"),
        ({"action": "write", "path": "a", "content": "x" * (10 * 1024 * 1024 + 1)}, "can be kept"),
        ({"action": "write", "path": "../a", "content": "x"}, "no path of a stored file"),
    ],
)
async def test_what_cannot_be_done_is_an_error_of_the_tool(
    cabinet: Cabinet, arguments: dict[str, Any], said: str
) -> None:
    reply = await cabinet.do(**arguments)
    assert reply.is_error
    assert said in reply.content["error"]["message"]


async def test_a_folder_that_is_a_link_is_not_used(cabinet: Cabinet, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    cabinet.root.symlink_to(tmp_path / "elsewhere")
    reply = await cabinet.do("write", path="a", content="x")
    assert reply.content["error"]["kind"] == "code"
    assert not list((tmp_path / "elsewhere").iterdir())


def test_projects_are_told_apart_by_name_or_else_by_folder(tmp_path: Path) -> None:
    assert namespace_of(tmp_path, "shop") == "shop"
    assert namespace_of(tmp_path, None) != namespace_of(tmp_path / "other", None)
    assert namespace_of(tmp_path, " ") == namespace_of(tmp_path, None)
