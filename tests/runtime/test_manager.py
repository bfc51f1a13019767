"""The connection manager that people bring the name of: the examples of its page, and what it keeps to."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

import pytest

from luthier import InMemoryMCPServerRegistry, MCPConnectionManager, Refused, SQLMCPServerRegistry, tool
from luthier.errors import CallTimeoutError, ConnectError, NotFoundError
from luthier.govern import Verdict
from luthier.store import DEFAULT
from luthier.testing import FakeClock, MemoryAudit, MemoryServer
from luthier.wire import Hang

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from luthier.runtime.registries import Registry

# As an agent of the page declares its tools.
TOOLS = [
    {"type": "builtin", "name": "save_to_memory"},
    {"type": "mcp", "server_id": "web-search"},
]
ENTRY: dict[str, Any] = {
    "id": "web-search",
    "name": "Web Search",
    "transport": {"type": "http", "url": "https://mcp.example.com/search"},
}


def search(**tools: Any) -> MemoryServer:
    return MemoryServer("web-search", {"search": lambda said: f"found {said.get('q')}", "save": 1, **tools})


@pytest.fixture(params=["memory", "sql"])
def registry(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Registry]:
    if request.param == "memory":
        yield InMemoryMCPServerRegistry()
    else:
        yield (kept := SQLMCPServerRegistry(DEFAULT, root=tmp_path))
        kept.close()


def manager(
    registry: Registry, server: MemoryServer | None = None, other: MemoryServer | None = None, **more: Any
) -> MCPConnectionManager:
    ways = {"web-search": (server or search()).transport}
    if other is not None:
        ways["other"] = other.transport
    parts = {"audit": MemoryAudit(), "transports": ways, **more}
    return MCPConnectionManager(registry, parts.pop("options", None), **parts)


async def test_an_agent_gets_the_tools_that_it_declares(registry: Registry) -> None:
    registry.register(ENTRY)
    audit = MemoryAudit()
    async with manager(registry, audit=audit) as made:
        tools = await made.resolve_tools(TOOLS, "researcher")
        assert set(tools) == {"save_to_memory", "search", "save"}
        assert await tools["search"].execute(q="lutes") == "found lutes"
        assert tools["search"].schema["name"] == "web-search__search"
    verdict = next(record for record in audit.records if isinstance(record, Verdict))
    assert verdict.principals == ("researcher",)


async def test_only_the_named_tools_are_given_and_a_name_that_is_not_there_is_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    registry = InMemoryMCPServerRegistry()
    registry.register(ENTRY)
    async with manager(registry) as made:
        for names, given in ((["search"], {"search"}), ([], set()), (["search", "serach"], {"search"})):
            with caplog.at_level(logging.WARNING):
                source = {"type": "mcp", "server_id": "web-search", "tool_names": names}
                assert set(await made.resolve_tools([source])) == given
    assert "has no tool 'serach'" in caplog.text


async def test_a_name_from_two_sources_bears_its_server(tmp_path: Path) -> None:
    registry = InMemoryMCPServerRegistry()
    for id in ("web-search", "other"):
        registry.register({**ENTRY, "id": id})

    def save() -> str:
        """Saves."""
        return "saved"

    other = MemoryServer("other", {"search": "there", "alone": 1})
    async with manager(registry, search(), other, tools=[tool(save)], root=tmp_path) as made:
        sources: list[Any] = ["save_to_memory", {"type": "custom", "name": "save"}]
        sources += [{"type": "mcp", "server_id": id} for id in ("web-search", "other")]
        tools = await made.resolve_tools(sources)
        assert set(tools) == {
            "save_to_memory", "save", "web-search__save", "web-search__search", "other__search", "alone",
        }  # fmt: skip
        assert await tools["other__search"].execute() == "there"
        assert await tools["save"].execute() == "saved"


async def test_to_an_agent_a_server_that_is_not_for_it_is_not_there() -> None:
    registry = InMemoryMCPServerRegistry()
    registry.register({**ENTRY, "allowed_agents": ["admin-agent-001"]})
    async with manager(registry) as made:
        assert set(await made.resolve_tools(TOOLS, "admin-agent-001")) > {"search"}
        said = []
        for server in ("web-search", "web-searhc"):
            with pytest.raises(NotFoundError) as caught:
                await made.resolve_tools([{"type": "mcp", "server_id": server}], "researcher")
            said.append(str(caught.value))
        assert said[0] == said[1].replace("searhc", "search")


@pytest.mark.parametrize("wrong", [{"type": "mcp"}, {"type": "builtin"}, {"type": "odd", "name": "x"}, {}])
async def test_what_is_no_source_is_told(wrong: dict[str, Any]) -> None:
    async with manager(InMemoryMCPServerRegistry()) as made:
        with pytest.raises(ValueError, match="is no source of tools"):
            await made.resolve_tools([wrong])
        with pytest.raises(NotFoundError):
            await made.resolve_tools(["no_such_builtin"])


async def test_the_registry_is_asked_anew_each_time() -> None:
    registry = InMemoryMCPServerRegistry()
    async with manager(registry) as made:
        with pytest.raises(NotFoundError):
            await made.resolve_tools(TOOLS)
        registry.register(ENTRY)
        tools = await made.resolve_tools(TOOLS)
        registry.register({**ENTRY, "tools": {"deny": ["search"]}})
        assert "search" not in await made.resolve_tools(TOOLS)
        with pytest.raises(Refused):
            await tools["search"].execute()
        await registry.delete_server("web-search")
        with pytest.raises(Refused, match="is disabled"):
            await made.resolve_tools(TOOLS)
        with pytest.raises(NotFoundError):
            await made.resolve_tools(TOOLS, "researcher")


async def test_a_time_for_all_servers_and_one_that_an_entry_has_of_its_own() -> None:
    for entry, options, seconds in (
        ({}, {"default_tool_timeout_ms": 10_000}, 10),
        ({"tool_timeout_ms": 2_000}, {"default_tool_timeout_ms": 10_000}, 2),
        ({}, None, 30),
    ):
        registry, clock = InMemoryMCPServerRegistry(), FakeClock()
        registry.register({**ENTRY, **entry})
        async with manager(registry, search(slow=Hang()), options=options, clock=clock) as made:
            tools = await made.resolve_tools(TOOLS)
            call = asyncio.create_task(tools["slow"].execute())
            await clock.advance(seconds - 0.1)
            assert not call.done()
            await clock.advance(0.2)
            with pytest.raises(CallTimeoutError):
                await call


async def test_where_there_is_no_time_for_all_a_call_may_take_long() -> None:
    registry, clock = InMemoryMCPServerRegistry(), FakeClock()
    registry.register(ENTRY)
    options = {"default_tool_timeout_ms": 0}
    async with manager(registry, search(slow=Hang()), options=options, clock=clock) as made:
        call = asyncio.create_task((await made.resolve_tools(TOOLS))["slow"].execute())
        await clock.advance(60)
        assert not call.done()
        call.cancel()


async def test_the_list_of_tools_is_kept_for_as_long_as_is_said() -> None:
    for options, lists in (({"cache_ttl_ms": 600_000}, 1), ({"cache_ttl_ms": 0}, 2), (None, 1)):
        registry, server = InMemoryMCPServerRegistry(), search()
        registry.register(ENTRY)
        async with manager(registry, server, options=options) as made:
            for _ in range(2):
                await made.resolve_tools(TOOLS)
        listed = [message for message in server.received if message["method"] == "tools/list"]
        assert (len(listed) == 1) == (lists == 1)


def test_an_option_that_there_is_not_is_told_with_the_nearest() -> None:
    with pytest.raises(NotFoundError, match="cache_ttl_ms"):
        MCPConnectionManager(InMemoryMCPServerRegistry(), {"cache_ttl": 1})


async def test_connections_are_given_up_and_made_again() -> None:
    registry, server = InMemoryMCPServerRegistry(), search()
    registry.register(ENTRY)
    made = manager(registry, server)
    await made.reconnect("web-search")  # nothing is connected yet
    tools = await made.resolve_tools(TOOLS)
    assert server.connections == 1
    await made.reconnect("web-search")
    await made.reconnect("nobody")
    assert await tools["search"].execute(q="lutes") == "found lutes"
    assert server.connections == 2
    await made.close_all()
    await made.close_all()
    assert set(await made.resolve_tools(TOOLS)) > {"search"}
    assert server.connections == 3
    await made.close_all()


async def test_a_server_out_of_reach_is_the_error() -> None:
    registry = InMemoryMCPServerRegistry()
    registry.register({"id": "gone", "command": "python", "args": ["none.py"], "max_retries": 0})
    async with manager(registry) as made:
        with pytest.raises(ConnectError):
            await made.resolve_tools([{"type": "mcp", "server_id": "gone"}])


async def test_what_tools_gave_is_drained_once_by_its_agent_or_for_all() -> None:
    registry = InMemoryMCPServerRegistry()
    registry.register(ENTRY)
    async with manager(registry) as made:
        one, other = [await made.resolve_tools(TOOLS, agent) for agent in ("one", "other")]
        await one["search"].execute(q="x")
        await other["save"].execute()
        drained = made.drain_taint_entries(one)
        (entry,) = drained["web-search:search"]
        assert list(drained) == ["web-search:search"]
        assert (entry["source"], entry["server_id"], entry["tool_name"]) == (
            "mcp_tool",
            "web-search",
            "search",
        )
        assert entry["agent_id"] == "one"
        assert made.drain_taint_entries(one) == {}
        assert list(made.drain_taint_entries()) == ["web-search:save"]
        assert made.drain_taint_entries() == {}
