"""The two servers that come with the house, registered as one wants them."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest

import luthier
from luthier.connect import ServerRegistry, register_default_mcp_servers
from luthier.connect.launch import prepare
from luthier.connect.registry import ServerRegistry as Registry
from luthier.errors import ConnectError, NotFoundError

if TYPE_CHECKING:
    from pathlib import Path

    from luthier.spec import ServerEntry


class Book:
    """A registry that is told one entry after the other."""

    def __init__(self) -> None:
        self.entries: dict[str, ServerEntry] = {}

    def register(self, entry: ServerEntry, /) -> None:
        self.entries[entry.id] = entry


class SlowBook(Book):
    """The same, in a database."""

    async def register(self, entry: ServerEntry, /) -> None:  # type: ignore[override]  # to be awaited
        self.entries[entry.id] = entry


KEY = {"BRAVE_API_KEY": "from the environment"}


@pytest.mark.parametrize("book", [Book(), SlowBook()], ids=["at once", "awaited"])
async def test_both_are_registered_and_may_be_registered_again(book: Book) -> None:
    for _ in range(2):
        assert await luthier.register_default_mcp_servers(book, environ=KEY) == ("web-search", "fetch")
    search, fetch = book.entries["web-search"], book.entries["fetch"]
    assert (search.command, search.args) == (
        "npx",
        ("--silent", "-y", "@modelcontextprotocol/server-brave-search"),
    )
    assert (fetch.command, fetch.args, fetch.env) == ("uvx", ("mcp-server-fetch",), {})
    assert {search.timeout, fetch.timeout} == {30.0}
    assert search.allowed_agents is fetch.allowed_agents is None


@pytest.mark.parametrize(
    ("only", "exclude", "expected"),
    [
        (["fetch"], (), ("fetch",)),
        (["fetch", "web-search"], (), ("web-search", "fetch")),
        (None, ["fetch"], ("web-search",)),
        (["fetch"], ["fetch"], ()),
        ([], (), ()),
    ],
)
async def test_some_can_be_chosen_and_what_is_excluded_is_out(
    only: list[str] | None, exclude: list[str], expected: tuple[str, ...]
) -> None:
    book = Book()
    assert await register_default_mcp_servers(book, only=only, exclude=exclude, environ=KEY) == expected
    assert tuple(book.entries) == expected


@pytest.mark.parametrize("how", [{"only": ["fetsch"]}, {"exclude": ["fetsch"]}])
async def test_another_id_is_not_known_and_near_ones_are_told(how: dict[str, list[str]]) -> None:
    book = Book()
    with pytest.raises(NotFoundError) as caught:
        await register_default_mcp_servers(book, only=how.get("only"), exclude=how.get("exclude", ()))
    assert caught.value.near == ("fetch",)
    assert book.entries == {}


async def test_callers_can_be_limited() -> None:
    book = Book()
    await register_default_mcp_servers(book, allowed_agents=["researcher"], environ=KEY)
    assert {entry.allowed_agents for entry in book.entries.values()} == {("researcher",)}


async def started(book: Book, environ: dict[str, str], root: Path) -> dict[str, str]:
    """The environment in which the search would be started."""
    for name in ("npx", "node"):
        (root / name).write_text("#!/bin/sh\n")
        (root / name).chmod(0o755)
    registry = Registry(book.entries.values(), root=root)
    return prepare(book.entries["web-search"], registry, {"PATH": str(root), **environ}).env


async def test_the_key_comes_from_the_environment_when_the_server_is_started(tmp_path: Path) -> None:
    book = Book()
    await register_default_mcp_servers(book, environ=KEY)
    assert "from the environment" not in str(book.entries)
    assert (await started(book, KEY, tmp_path))["BRAVE_API_KEY"] == "from the environment"


@pytest.mark.parametrize("key", ["BSA-1", "${HOME}", "$${x}", ""])
async def test_a_key_of_ones_own_wins_and_is_taken_as_it_is(key: str, tmp_path: Path) -> None:
    book = Book()
    await register_default_mcp_servers(book, brave_api_key=key, environ=KEY)
    assert (await started(book, KEY, tmp_path))["BRAVE_API_KEY"] == key


async def test_a_missing_key_is_warned_of_and_fails_that_server_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    book = Book()
    with caplog.at_level(logging.WARNING, "luthier.connect"):
        await register_default_mcp_servers(book, environ={})
        assert "set BRAVE_API_KEY" in caplog.text
        caplog.clear()
        await register_default_mcp_servers(book, only=["fetch"], environ={})
        assert caplog.text == ""
    with pytest.raises(ConnectError, match="BRAVE_API_KEY is not set"):
        await started(book, {}, tmp_path)


async def test_a_registry_that_is_replaced_can_be_filled_too() -> None:
    class Holder:
        registry = ServerRegistry()

        def register(self, entry: ServerEntry, /) -> None:
            self.registry = self.registry.with_entry(entry)

    holder = Holder()
    await register_default_mcp_servers(holder, only=["fetch"])
    assert holder.registry.ids == ("fetch",)
