"""Sources become tools: by address, each once, each server asked once and all at the same time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from luthier.errors import ConnectError, NotFoundError
from luthier.tools import DroppedTool, Manifest, Tool
from luthier.tools.builtin import Builtin, LocalTools
from luthier.tools.catalogue import resolve
from luthier.tools.source import BuiltinSource, CustomSource, McpSource
from luthier.uri import ToolUri

if TYPE_CHECKING:
    from luthier.context import CallContext
    from luthier.taint import Labelled
    from luthier.tools import Reply


def of(server: str, *names: str, dropped: tuple[DroppedTool, ...] = ()) -> Manifest:
    tools = tuple(Tool(uri=ToolUri.mcp(server, name), input_schema={}) for name in names)
    return Manifest(server=server, tools=tools, dropped=dropped)


class Servers:
    """Manifests by server, and who was asked for."""

    def __init__(self, *manifests: Manifest) -> None:
        self._manifests = {manifest.server: manifest for manifest in manifests}
        self.asked: list[str] = []

    async def __call__(self, server: str) -> Manifest:
        self.asked.append(server)
        await asyncio.sleep(0)
        if server not in self._manifests:
            raise NotFoundError("server", server, near=sorted(self._manifests))
        return self._manifests[server]


def local(*uris: ToolUri) -> LocalTools:
    async def act(arguments: Labelled[dict[str, object]], context: CallContext) -> Reply:
        raise NotImplementedError

    entries = [Builtin(Tool(uri=uri, input_schema={}), act) for uri in uris]
    return LocalTools(
        [entry for entry in entries if entry.tool.uri.scheme == "custom"],
        [entry for entry in entries if entry.tool.uri.scheme == "builtin"],
    )


async def addresses(
    *sources: BuiltinSource | McpSource | CustomSource, servers: Servers, at_home: LocalTools
) -> list[str]:
    return [str(tool.uri) for tool in await resolve(sources, servers, at_home)]


GIT = of("git", "log", "status", "show", dropped=(DroppedTool("blame", "its schema is no object"),))
TIME = of("time", "now", "status")
HOME = local(ToolUri.builtin("save_to_memory"), ToolUri.custom("add"))


async def test_sources_give_their_tools_in_the_order_they_were_declared() -> None:
    servers = Servers(GIT, TIME)
    assert await addresses(
        CustomSource("add"),
        McpSource("time"),
        BuiltinSource("save_to_memory"),
        McpSource("git", ("show", "log")),
        servers=servers,
        at_home=HOME,
    ) == [
        "custom://add",
        "mcp://time/now",
        "mcp://time/status",
        "builtin://save_to_memory",
        "mcp://git/show",
        "mcp://git/log",
    ]


async def test_no_names_are_all_tools_and_an_empty_list_is_none() -> None:
    servers = Servers(GIT)
    assert len(await addresses(McpSource("git"), servers=servers, at_home=HOME)) == 3
    assert await addresses(McpSource("git", ()), servers=servers, at_home=HOME) == []


async def test_nothing_declared_is_no_tool() -> None:
    servers = Servers()
    assert await addresses(servers=servers, at_home=HOME) == []
    assert servers.asked == []


async def test_what_is_declared_twice_is_there_once_where_it_was_declared_first() -> None:
    found = await addresses(
        McpSource("git", ("log",)), CustomSource("add"), McpSource("git"), CustomSource("add"),
        servers=Servers(GIT), at_home=HOME,
    )  # fmt: skip
    assert found == ["mcp://git/log", "custom://add", "mcp://git/status", "mcp://git/show"]


async def test_tools_of_one_name_on_two_servers_are_two_tools() -> None:
    found = await addresses(
        McpSource("git", ("status",)),
        McpSource("time", ("status",)),
        servers=Servers(GIT, TIME),
        at_home=HOME,
    )
    assert found == ["mcp://git/status", "mcp://time/status"]


async def test_each_server_is_asked_once_and_all_at_the_same_time() -> None:
    both_asked = asyncio.Event()
    asked: list[str] = []

    async def manifests(server: str) -> Manifest:
        asked.append(server)
        if len(asked) == 2:
            both_asked.set()
        await asyncio.wait_for(both_asked.wait(), 10)
        return of(server, "tool")

    await resolve([McpSource("a"), McpSource("b"), McpSource("a", ("tool",))], manifests)
    assert sorted(asked) == ["a", "b"]


async def test_an_unknown_tool_is_not_found_and_near_ones_are_told() -> None:
    with pytest.raises(NotFoundError) as caught:
        await addresses(McpSource("git", ("log", "lgo")), servers=Servers(GIT), at_home=HOME)
    assert str(caught.value) == "There is no tool 'lgo' on server 'git'. Did you mean log?"


async def test_a_tool_whose_definition_was_dropped_says_why() -> None:
    with pytest.raises(NotFoundError, match="cannot be used: its schema is no object"):
        await addresses(McpSource("git", ("blame",)), servers=Servers(GIT), at_home=HOME)


async def test_an_unknown_server_is_not_found() -> None:
    with pytest.raises(NotFoundError, match="There is no server 'gti'"):
        await addresses(McpSource("gti"), servers=Servers(GIT), at_home=HOME)


async def test_of_several_faults_that_of_the_first_source_is_told() -> None:
    async def manifests(server: str) -> Manifest:
        if server == "slow":
            for _ in range(5):
                await asyncio.sleep(0)
        raise ConnectError(f"{server} is gone", server=server)

    with pytest.raises(ConnectError, match="slow is gone"):
        await resolve([McpSource("slow"), McpSource("fast")], manifests)


async def test_a_fault_of_ours_is_not_hidden() -> None:
    async def manifests(server: str) -> Manifest:
        raise ZeroDivisionError(server)

    with pytest.raises(ExceptionGroup) as caught:
        await resolve([McpSource("git")], manifests)
    assert caught.group_contains(ZeroDivisionError)


@pytest.mark.parametrize("source", [BuiltinSource("save_to_mem"), CustomSource("ad")])
async def test_an_unknown_local_tool_is_not_found_and_near_ones_are_told(
    source: BuiltinSource | CustomSource,
) -> None:
    with pytest.raises(NotFoundError, match="Did you mean"):
        await addresses(source, servers=Servers(), at_home=HOME)


async def test_without_local_tools_none_is_found() -> None:
    with pytest.raises(NotFoundError, match="custom://add"):
        await resolve([CustomSource("add")], Servers())
