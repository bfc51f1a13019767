"""Rows about lists of tools: pages, bad definitions, names, and lists that change."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from luthier.errors import Refused, WireError
from luthier.tools.naming import NameTable
from luthier.uri import ToolUri
from tests.faults.bench import PATIENCE, Bench, House, lives, turn, until
from tests.faults.modes.lists import NAMES, SCHEMAS, USABLE
from tests.faults.rows.table import BOTH, own, row

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

ALL = ["echo", "pid", *(f"t{n}" for n in range(6))]


async def eventually(look: Callable[[], Awaitable[bool]]) -> None:
    """Like `until`, for a look that must be awaited."""
    end = time.monotonic() + PATIENCE
    while not await look():
        assert time.monotonic() < end, "it did not come about"
        await turn()


@row("67", "bad_tools")
async def a_bad_definition_costs_that_tool_only_and_says_why(house: House) -> None:
    manifest = await house.manifest()
    names = {tool.name for tool in manifest.tools}
    assert names >= {"echo", "pid", "null_parts", "odd_parts"}
    dropped = {drop.name for drop in manifest.dropped}
    assert dropped >= {"schema_text", "schema_list", "schema_number"}
    assert all(drop.reason for drop in manifest.dropped)
    assert len(manifest.tools) + len(manifest.dropped) == 2 + len(USABLE) + 8


@own("67", "bad_tools", eras=BOTH)
async def tools_beside_bad_ones_can_be_called(bench: Bench) -> None:
    async with bench.runtime() as rt:
        for name in ("echo", "null_parts", "odd_parts", "output_ref", "output_remote", "output_nonsense"):
            result = await rt.call(f"mcp://faulty/{name}")
            assert not result.is_error, name


@dataclass(frozen=True)
class Tried:
    """What a tool of the mode `schemas` must be given as it is, and what must be refused."""

    passed: tuple[dict[str, Any], ...]
    refused: tuple[dict[str, Any], ...] = ()


DEEP: dict[str, Any] = {"kids": [{"kids": [{"kids": []}, {}]}]}


async def takes(bench: Bench, **tools: Tried) -> None:
    async with bench.runtime() as rt:
        for name, tried in tools.items():
            for given in tried.passed:
                assert (await rt.call(f"mcp://faulty/{name}", given)).content == given, name
            for given in tried.refused:
                with pytest.raises(Refused) as refused:
                    await rt.call(f"mcp://faulty/{name}", given)
                assert refused.value.refusal_kind == "arguments", name
            assert bench.journal.calls(name) == list(tried.passed)


@own("58", "schemas", eras=BOTH)
async def words_beside_a_reference_are_kept_and_it_is_followed(bench: Bench) -> None:
    await takes(bench, defaults=Tried(({"level": "some"}, {}), ({"level": "none"},)))


@own("59", "schemas", eras=BOTH)
async def references_to_properties_and_to_themselves_are_followed(bench: Bench) -> None:
    await takes(
        bench,
        by_property=Tried(
            ({"name": "a", "rows": [{"name": "b"}]},), ({"name": 1}, {"rows": [{"name": 1}]}, {"rows": ["a"]})
        ),
        recursive=Tried(({"root": DEEP},), ({"root": {"kids": [{"kids": [{"kid": 1}]}]}}, {"root": []})),
    )


@own("62", "schemas", eras=BOTH)
async def an_array_without_items_takes_any(bench: Bench) -> None:
    await takes(bench, array_of_anything=Tried(({"items": [1, "a", None, [{}]]},), ({"items": "a"},)))


@row("63", "schemas")
async def a_schema_is_handed_on_as_it_came(house: House) -> None:
    came = {tool.name: tool.input_schema for tool in (await house.manifest()).tools}
    assert {name: json.dumps(came[name]) for name in SCHEMAS} == {
        name: json.dumps(definition) for name, definition in SCHEMAS.items()
    }


@own("63", "schemas", eras=BOTH)
async def a_model_is_given_the_schema_as_it_came(bench: Bench) -> None:
    async with bench.runtime() as rt:
        await rt.tools.load()
        came = {bound.tool.name: bound.schema["input_schema"] for bound in rt.tools.list_tools()}
        assert {name: came[name] for name in SCHEMAS} == SCHEMAS


@own("65", "schemas", eras=BOTH)
async def a_schema_that_says_little_allows_much(bench: Bench) -> None:
    anything: dict[str, Any] = {"a": 1, "b": [None]}
    await takes(
        bench,
        empty=Tried((anything, {})),
        bare=Tried((anything, {})),
        required_only=Tried((anything,), ({},)),
    )


@own("66", "schemas", eras=BOTH)
async def parameters_may_have_any_name(bench: Bench) -> None:
    given = {"auth-method": "token", "x.y": 1, "$top": 2, "@id": "a", "": None}
    await takes(bench, hyphens=Tried((given,), ({}, {"auth-method": 1})))


@own("83", "odd_names", eras=BOTH)
async def every_name_can_be_called_and_has_a_name_that_models_can_take(bench: Bench) -> None:
    async with bench.runtime() as rt:
        await rt.tools.load()
        for name in NAMES:
            uri = ToolUri.mcp("faulty", name)
            assert (await rt.call(uri)).content == name
            assert (await rt.call(str(uri))).content == name
        table = NameTable(ToolUri.mcp("faulty", name) for name in NAMES)
        assert len(set(table.names)) == len(NAMES)
        for name in table.names:
            assert 0 < len(name) <= 64
            assert name.isascii()
            assert set(name) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")
            assert table.name_of(table.uri_of(name)) == name


@own("85", "odd_names")
async def a_server_whose_name_holds_the_separator_is_not_taken_apart(bench: Bench) -> None:
    servers = {id: bench.fields() for id in ("a-b", "a", "a__b")}
    async with bench.runtime(servers) as rt:
        listing = await rt.tools.load()
        table = NameTable(tool.uri for tool in listing.tools)
        for server in servers:
            uri = ToolUri.mcp(server, "c-d")
            assert table.uri_of(table.name_of(uri)) == uri
            assert (await rt.call(uri)).uri.server == server


@own("86", "odd_names")
async def the_name_that_is_listed_is_the_name_that_is_called(bench: Bench) -> None:
    async with bench.runtime({"f1_": bench.fields()}) as rt:
        listing = await rt.tools.load()
        table = NameTable(tool.uri for tool in listing.tools)
        for bound in rt.tools.list_tools():
            if bound.name.startswith("mcp://"):
                uri = table.uri_of(bound.schema["name"])
                assert str(uri) == bound.name
                assert str((await rt.call(uri)).uri) == bound.name


@row("87", "pages", ("good",))
async def all_pages_are_read(house: House) -> None:
    assert await house.names() == ALL
    assert (await house.call("t5")).content == "called"


@row("87", "pages", ("null",))
async def a_null_cursor_ends_a_list(house: House) -> None:
    assert await house.names() == ALL


@row("87", "pages", ("empty",))
async def an_empty_cursor_ends_a_list(house: House) -> None:
    assert await house.names() == ALL
    assert len(house.journal.heard("tools/list")) == 4


@row("87", "pages", ("repeated",))
async def a_cursor_that_repeats_itself_ends_a_list(house: House) -> None:
    assert await house.names() == ALL
    assert len(house.journal.heard("tools/list")) <= 6


@row("87", "pages", ("circle",))
async def cursors_that_run_in_a_circle_end_a_list(house: House) -> None:
    assert await house.names() == ALL
    assert len(house.journal.heard("tools/list")) <= 6


@row("87", "pages", ("endless",), fields={"timeout_ms": 5000}, within=12)
async def cursors_without_an_end_are_cut_off(house: House) -> None:
    assert await house.names() == ALL


@row("89", "changing")
async def a_changed_list_is_read_again(house: House) -> None:
    assert "grown0" not in await house.names()
    await house.call("grow")
    await eventually(lambda: has(house, "grown0"))
    assert (await house.call("grown0")).content == "grown"


@row("89", "changing")
async def a_burst_of_changes_is_read_in_a_few_goes(house: House) -> None:
    await house.names()
    before = len(house.journal.heard("tools/list"))
    await house.call("grow", times=50)
    await eventually(lambda: has(house, "grown49"))
    assert len(house.journal.heard("tools/list")) - before <= 20


@row("89", "changing")
async def the_old_list_is_kept_when_the_new_one_cannot_be_read(house: House) -> None:
    before = await house.names()
    asked = len(house.journal.heard("tools/list"))
    await house.call("break_list")
    await eventually(lambda: fails_or_keeps(house, before))
    await house.journal.hears("tools/list", times=asked + 1)
    assert await house.names() == before
    assert (await house.call("echo", a=1)).content == {"a": 1}


@row("89", "changed_at_once")
async def a_change_told_before_the_first_list_is_no_trouble(house: House) -> None:
    assert await house.names() == ["echo", "pid"]


@own("90", "tools_from_file", eras=BOTH)
async def a_restarted_server_is_asked_for_its_tools_again(bench: Bench) -> None:
    tools = bench.root / "tools"
    tools.write_text("one")
    async with bench.house(bench.entry(str(tools))) as house:
        assert "one" in await house.names()
        first = await house.pid()
        tools.write_text("two")
        with pytest.raises(WireError):
            await house.call("act")
        await until(lambda: not lives(first), what="the first server is gone")
        names = await house.names()
        assert "two" in names
        assert "one" not in names
        tools.write_text("three")
        await house.manager.reconnect("faulty")
        assert "three" in await house.names()


@own("90", "tools_from_file")
async def two_servers_of_one_command_have_lists_of_their_own(bench: Bench) -> None:
    for name in ("one", "two"):
        (bench.root / name).write_text(name)
    entries = [bench.entry(str(bench.root / name), id=name) for name in ("one", "two")]
    async with bench.house(*entries) as house:
        assert "two" not in await house.names("one")
        assert "two" in await house.names("two")


@own("91", "tools_from_file", eras=BOTH)
async def what_governs_a_tool_outlives_its_server(bench: Bench) -> None:
    tools = bench.root / "tools"
    tools.write_text("one two")
    servers = {"faulty": bench.fields(str(tools), tools={"allow": ["one", "act", "three"]})}
    async with bench.runtime(servers) as rt:
        assert listed(await rt.tools.load()) == {"one", "act"}
        with pytest.raises(WireError):
            await rt.call("mcp://faulty/act")
        tools.write_text("two three")
        assert listed(await rt.tools.load()) == {"act"}  # what is new waits for approval
        await rt.pins.approve(await rt.review_tools("faulty"), by="operator")
        assert listed(await rt.tools.load()) == {"act", "three"}
        assert (await rt.call("mcp://faulty/three")).content == "from the file"


async def has(house: House, name: str, server: str = "faulty") -> bool:
    return name in await house.names(server)


async def fails_or_keeps(house: House, names: list[str]) -> bool:
    return await house.names() == names


def listed(listing: object) -> set[str]:
    tools = getattr(listing, "tools", ())
    return {tool.name for tool in tools if tool.uri.scheme == "mcp"}
