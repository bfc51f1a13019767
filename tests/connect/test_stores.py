"""Every store of server entries keeps one contract; a file keeps besides all that is not edited."""

from __future__ import annotations

import multiprocessing
import os
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings

from luthier.connect import MemoryServers, YamlServers
from luthier.connect.locked_file import locked
from luthier.errors import NotFoundError, SpecError, StoreError
from luthier.spec import Auth, ServerEntry, ToolFilter, load_project
from luthier.store import DEFAULT, Database, SqlServers
from tests.connect.writers import add_forever, add_many
from tests.spec.entries import ENTRIES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from luthier.connect import ServerStore

GIT = ServerEntry(id="git", name="git", command="uvx", args=("mcp-server-git",))
TIME = ServerEntry(id="time", name="time", command="uvx", args=("mcp-server-time",))


KINDS = ["memory", "yaml", "sqlite", "postgres"]


@contextmanager
def made(request: pytest.FixtureRequest, kind: str, folder: Path) -> Iterator[ServerStore]:
    if kind == "memory":
        yield MemoryServers()
    elif kind == "yaml":
        path = folder / "luthier.yaml"
        path.write_text("# a project\nstore: sqlite:///x.db\n", encoding="utf-8")
        yield YamlServers(path)
    else:
        database = Database(DEFAULT if kind == "sqlite" else request.getfixturevalue("postgres_url"), folder)
        yield SqlServers(database)
        database.close()


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ServerStore]:
    with made(request, request.param, tmp_path) as store:
        yield store


def test_a_store_in_memory_may_begin_with_entries() -> None:
    assert MemoryServers([GIT, TIME]).load().entries == {"git": GIT, "time": TIME}


# What all keep


def test_at_first_there_is_nothing(store: ServerStore) -> None:
    assert store.load().entries == {}
    assert store.load().broken == {}
    with pytest.raises(NotFoundError, match="no server 'git'"):
        store.get("git")


def test_what_was_added_is_there_in_its_order(store: ServerStore) -> None:
    store.add(TIME)
    store.add(GIT)
    assert list(store.load().entries.values()) == [TIME, GIT]
    assert store.get("git") == GIT


def test_an_id_is_taken_once(store: ServerStore) -> None:
    store.add(GIT)
    with pytest.raises(SpecError, match="there is a server 'git' already"):
        store.add(msgspec.structs.replace(GIT, command="npx"))
    assert store.get("git") == GIT


def test_an_entry_is_replaced_in_its_place(store: ServerStore) -> None:
    store.add(GIT)
    store.add(TIME)
    other = msgspec.structs.replace(GIT, command=None, args=(), url="https://x.example", transport="auto")
    store.replace(other)
    assert list(store.load().entries.values()) == [other, TIME]


def test_an_entry_that_was_changed_meanwhile_is_not_replaced_by_who_must_know_it(store: ServerStore) -> None:
    store.add(GIT)
    approved, seen = msgspec.structs.replace(GIT, command="npx"), store.get("git")
    store.replace(approved, was=seen)
    assert store.get("git") == approved
    with pytest.raises(StoreError, match="changed meanwhile"):
        store.replace(GIT, was=seen)
    assert store.get("git") == approved
    with pytest.raises(NotFoundError):
        store.replace(TIME, was=TIME)


def test_an_entry_is_removed(store: ServerStore) -> None:
    store.add(GIT)
    store.add(TIME)
    store.remove("git")
    assert list(store.load().entries) == ["time"]
    store.remove("time")
    assert store.load().entries == {}
    store.add(GIT)
    assert store.get("git") == GIT


def test_what_is_not_there_is_neither_replaced_nor_removed(store: ServerStore) -> None:
    store.add(GIT)
    with pytest.raises(NotFoundError, match="Did you mean git"):
        store.remove("gitt")
    with pytest.raises(NotFoundError):
        store.replace(TIME)
    assert list(store.load().entries.values()) == [GIT]


def test_what_could_not_be_read_back_is_not_kept(store: ServerStore) -> None:
    store.add(GIT)
    for wrong in (ServerEntry(id="new"), ServerEntry(id="no id", command="uvx")):
        with pytest.raises(SpecError):
            store.add(wrong)
    with pytest.raises(SpecError):
        store.replace(ServerEntry(id="git"))
    assert list(store.load().entries.values()) == [GIT]


def test_an_entry_without_a_name_is_named_by_its_id(store: ServerStore) -> None:
    store.add(ServerEntry(id="git", command="uvx"))
    assert store.get("git").name == "git"


@given(entry=ENTRIES, other=ENTRIES)
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_field_survives(store: ServerStore, entry: ServerEntry, other: ServerEntry) -> None:
    other = msgspec.structs.replace(other, id=entry.id)
    store.add(entry)
    assert store.get(entry.id) == entry
    store.replace(other)
    assert store.load().entries == {entry.id: other}
    store.remove(entry.id)


# Of a file

TEXT = """\
# The servers of the house
environment: development   # for now
{0}
  # tells the time
{1}
policies: []  # none
"""
BLOCKS = TEXT.format(
    "mcpServers:",
    "  time: {command: uvx, args: [mcp-server-time]}  # flow\n  web:\n    httpUrl: https://x.example  # URL\n"
    "    timeout: 15000\n    # of the operator\n    headers:\n      # a key\n      X-Key: ${env.KEY}\n",
)
LISTS = TEXT.format(
    "servers:",
    "  - id: time\n    command: uvx  # fast\n    args: [mcp-server-time]\n"
    "  - name: web\n    transport: {type: http, url: https://x.example}\n",
)
NESTED = TEXT.format(
    "mcp:\n  servers: # nested", "    - {id: time, command: uvx}\n    - {id: web, command: npx}\n"
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "luthier.yaml"


@pytest.mark.parametrize("text", [BLOCKS, LISTS, NESTED], ids=["blocks", "lists", "nested"])
def test_adding_and_removing_leaves_every_character_of_the_rest(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    store = YamlServers(path)
    store.add(GIT)
    there = path.read_text(encoding="utf-8")
    assert list(load_project(path).servers) == ["time", "web", "git"]
    lines = iter(there.splitlines())
    assert all(line in lines for line in text.splitlines()), "a line is gone, or the order is another"
    store.remove("git")
    assert path.read_text(encoding="utf-8") == text


def test_replacing_edits_only_the_keys_that_say_something_else(path: Path) -> None:
    path.write_text(BLOCKS, encoding="utf-8")
    store = YamlServers(path)
    web = store.get("web")
    store.replace(
        msgspec.structs.replace(web, url="https://y.example", disabled=True, tools=ToolFilter(deny=("x",)))
    )
    assert path.read_text(encoding="utf-8") == BLOCKS.replace("x.example", "y.example").replace(
        "      X-Key: ${env.KEY}\n",
        "      X-Key: ${env.KEY}\n    tools:\n      deny: [x]\n    disabled: true\n",
    )
    store.replace(web)
    assert path.read_text(encoding="utf-8") == BLOCKS


def test_a_spelling_that_cannot_be_edited_by_keys_is_written_anew(path: Path) -> None:
    path.write_text(LISTS, encoding="utf-8")
    store = YamlServers(path)
    other = ServerEntry(
        id="web", name="web", transport="http", url="https://x.example", auth=Auth(type="bearer", token="t")
    )
    store.replace(other)
    store.replace(process := msgspec.structs.replace(GIT, id="web", name="web"))
    assert list(store.load().entries.values()) == [store.get("time"), process]
    assert "command: uvx  # fast" in path.read_text(encoding="utf-8")


def test_a_file_with_faults_elsewhere_is_edited(path: Path) -> None:
    path.write_text(
        "servers:\n  a: {command: 1}\n  b: nothing\n  'c d': {command: uvx}\nodd: 1\n", encoding="utf-8"
    )
    store = YamlServers(path)
    store.add(GIT)
    found = store.load()
    assert list(found.entries) == ["git"]
    assert list(found.broken) == ["a", "b", "servers.c d"]
    with pytest.raises(SpecError, match=r"luthier\.yaml:2:16: `command` must be text"):
        store.get("a")
    for server in ("a", "b", "c d"):
        store.remove(server)
    assert (
        path.read_text(encoding="utf-8")
        == "servers:\n  git:\n    command: uvx\n    args: [mcp-server-git]\nodd: 1\n"
    )


def test_two_entries_of_one_id_are_both_told_of(path: Path) -> None:
    path.write_text(
        "servers: [{id: git, command: uvx}, {id: git, command: npx}, {command: uvx}]\n", encoding="utf-8"
    )
    found = YamlServers(path).load()
    assert found.entries == {}
    assert "two servers named `git`" in str(found.broken["git"])
    assert "`id` is missing" in str(found.broken["servers.2"])


@pytest.mark.parametrize("text", ["servers: [", "- a list\n", "servers: all\n", "servers: {git: *gone}\n"])
def test_a_file_that_cannot_be_read_is_left_alone(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SpecError, match=r"luthier\.yaml:\d+:\d+"):
        YamlServers(path).add(GIT)
    assert path.read_text(encoding="utf-8") == text


def test_what_stands_elsewhere_is_not_edited_by_an_alias(path: Path) -> None:
    text = "servers:\n  time: &one {command: uvx}\n  web: *one\n"
    path.write_text(text, encoding="utf-8")
    store = YamlServers(path)
    with pytest.raises(SpecError, match="edit the file by hand"):
        store.replace(msgspec.structs.replace(GIT, id="web"))
    assert path.read_text(encoding="utf-8") == text


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_the_encoding_the_mode_and_the_link_stay(path: Path, encoding: str, tmp_path: Path) -> None:
    target = tmp_path / "elsewhere" / "project.yaml"
    target.parent.mkdir()
    target.write_bytes("# Gerät\r\nservers:\r\n  time: {command: uvx}\r\n".encode(encoding))
    target.chmod(0o640)
    path.symlink_to(target)
    store = YamlServers(path)
    store.add(GIT)
    assert path.is_symlink()
    assert target.stat().st_mode & 0o777 == 0o640
    text = target.read_bytes().decode(encoding)
    assert text.startswith("# Gerät\r\nservers:\r\n")
    assert text.count("\n") == text.count("\r\n") == 6
    assert list(store.load().entries) == ["time", "git"]
    assert [found.name for found in target.parent.iterdir()] == ["project.yaml"]


def test_what_a_killed_writer_left_is_cleared_away(path: Path) -> None:
    path.write_text("servers: {}\n", encoding="utf-8")
    (path.parent / ".luthier.yaml.new").write_text("half", encoding="utf-8")
    YamlServers(path).add(GIT)
    assert [file.name for file in path.parent.iterdir()] == ["luthier.yaml"]


def test_a_file_that_is_not_there_is_told_of(path: Path) -> None:
    with pytest.raises(SpecError, match="cannot be read"):
        YamlServers(path).add(GIT)


def test_a_folder_that_takes_no_file_is_told_of(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 252)  # there is no room for the name of a second file
    path.write_text("servers: {}\n", encoding="utf-8")
    with pytest.raises(StoreError, match=r"cannot be written: File name too long\. See who may write"):
        YamlServers(path).add(GIT)
    assert path.read_text(encoding="utf-8") == "servers: {}\n"


def test_a_lock_that_is_not_given_back_is_told_of(path: Path) -> None:
    path.write_text("servers: {}\n", encoding="utf-8")
    with locked(path):
        with pytest.raises(StoreError, match="is being edited by another process"):
            with locked(path, patience=0.0):
                pass
    with locked(path, patience=0.0):
        pass


# Several processes

SPAWN = multiprocessing.get_context("spawn")


def test_concurrent_writers_lose_nothing(path: Path) -> None:
    path.write_text("# all of them\nservers:\n", encoding="utf-8")
    writers = [SPAWN.Process(target=add_many, args=(path, number)) for number in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(50)
    assert [writer.exitcode for writer in writers] == [0, 0, 0]
    entries = YamlServers(path).load().entries
    assert sorted(entries) == sorted(f"s{number}-{turn}" for number in range(3) for turn in range(8))
    assert {entry.command for entry in entries.values()} == {"npx"}


def test_a_writer_that_is_killed_leaves_a_file_that_can_be_read_and_edited(path: Path) -> None:
    path.write_text("# here\nservers:\n  time: {command: uvx}\n", encoding="utf-8")
    before = path.stat().st_ino
    writer = SPAWN.Process(target=add_forever, args=(path,))
    writer.start()
    while path.stat().st_ino == before:  # bounded by the time of a test
        os.sched_yield()
    os.kill(writer.pid or 0, signal.SIGKILL)
    writer.join(10)
    store = YamlServers(path)
    assert set(store.load().entries) - {"git"} == {"time"}
    store.add(msgspec.structs.replace(TIME, id="new"))
    assert path.read_text(encoding="utf-8").startswith("# here\n")
