"""The registries that people bring the names of: entries in any spelling, kept in memory or in a database."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from luthier import (
    FilesystemMount,
    InMemoryMCPServerRegistry,
    MCPServerConfig,
    MCPServerEntry,
    Runtime,
    SandboxConfig,
    SpecError,
    SQLMCPServerRegistry,
    register_default_mcp_servers,
)
from luthier.connect import MemoryServers
from luthier.errors import NotFoundError
from luthier.runtime.registries import Registry
from luthier.spec import Sandbox, ServerEntry
from luthier.store import DEFAULT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(params=["memory", "sql"])
def registry(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Registry]:
    if request.param == "memory":
        yield InMemoryMCPServerRegistry()
    else:
        with closing(SQLMCPServerRegistry(DEFAULT, root=tmp_path)) as registry:
            yield registry


async def test_entries_are_registered_listed_loaded_and_deleted(registry: Registry) -> None:
    # As the page of the seeds registers them.
    registry.register(
        {
            "id": "web-search",
            "name": "Web Search",
            "transport": {"type": "http", "url": "https://mcp.example.com/web-search", "headers": {"A": "b"}},
        }
    )
    registry.register(
        {
            "id": "code-executor",
            "name": "Code Executor",
            "transport": {"type": "stdio", "command": "npx", "args": ["-y", "@mcp/code-sandbox"]},
            "timeout_ms": 60_000,
        }
    )
    search, executor = await registry.list_servers()
    assert (search.id, search.name, search.transport, search.headers) == (
        "web-search",
        "Web Search",
        "http",
        {"A": "b"},
    )
    assert executor == await registry.load_server("code-executor")
    assert executor.timeout == 60
    assert await registry.delete_server("web-search")
    assert not await registry.delete_server("web-search")
    assert await registry.load_server("web-search") is None


async def test_what_is_registered_again_takes_the_place_of_the_first(registry: Registry) -> None:
    registry.register(ServerEntry(id="git", command="uvx"))
    await registry.save_server({"id": "git", "command": "npx"})
    assert [entry.command for entry in await registry.list_servers()] == ["npx"]


async def test_the_default_servers_are_registered(registry: Registry) -> None:
    for _ in range(2):
        assert await register_default_mcp_servers(registry, environ={}) == ("web-search", "fetch")
    assert [entry.id for entry in await registry.list_servers()] == ["web-search", "fetch"]


async def test_an_entry_that_is_none_is_not_registered(registry: Registry) -> None:
    for wrong in ({"id": "git"}, {"command": "uvx"}, {"id": "git", "command": "uvx", "odd": 1}):
        with pytest.raises(SpecError):
            registry.register(wrong)
    with pytest.raises(SpecError):
        registry.register(ServerEntry(id="git"))
    assert await registry.list_servers() == []


async def test_a_runtime_takes_the_servers_of_a_registry(registry: Registry, tmp_path: Path) -> None:
    registry.register({"id": "git", "command": "uvx"})
    runtime = Runtime.open({"servers": {"time": {"command": "uvx"}}}, servers=registry, root=tmp_path)
    assert list(runtime.project.servers) == ["time", "git"]
    await runtime.close()


def test_who_registers_at_the_same_time_as_another_has_the_last_word() -> None:
    class Raced(MemoryServers):
        def replace(self, entry: ServerEntry, *, was: ServerEntry | None = None) -> None:
            try:
                super().replace(entry, was=was)
            except NotFoundError:
                super().add(ServerEntry(id=entry.id, command="node"))  # the other one
                raise

    registry = Registry(Raced())
    registry.register({"id": "git", "command": "uvx"})
    assert registry.load().entries["git"].command == "uvx"


def test_a_registry_in_memory_can_be_cleared() -> None:
    registry = InMemoryMCPServerRegistry()
    registry.register({"id": "git", "command": "uvx"})
    registry.clear()
    assert registry.load().entries == {}


def test_a_config_is_spelled_as_elsewhere() -> None:
    config = MCPServerConfig(
        name="slack", transport="streamable_http", url="http://localhost:3001/mcp", command=None
    )
    assert config == ServerEntry(id="slack", name="slack", transport="http", url="http://localhost:3001/mcp")
    assert MCPServerEntry(id="a", name="A", command="uvx").name == "A"
    with pytest.raises(SpecError, match="needs a `command` or a `url`"):
        MCPServerConfig(name="slack", transport="stdio")


def test_a_sandbox_is_spelled_as_elsewhere() -> None:
    sandbox = SandboxConfig(filesystem=["/data:rw", "/docs", {"path": "/a:b"}, FilesystemMount("/c", "rw")])
    config = MCPServerConfig(name="files", transport="stdio", command="npx", sandbox=sandbox)
    assert config.sandbox == Sandbox(
        mode="required", network="none", read=("/docs", "/a:b"), write=("/data", "/c")
    )
    looser = SandboxConfig.from_dict({"network": "allow", "allow_unsandboxed": True})
    assert (looser.to_entry()["mode"], looser.to_entry()["network"]) == ("auto", "host")
    assert SandboxConfig(enabled=False).to_entry()["mode"] == "off"
    assert MCPServerConfig(name="files", transport="stdio", command="npx", sandbox=None).sandbox == Sandbox()


@pytest.mark.parametrize("wrong", [{"network": "some"}, {"filesystem": [{"path": "/a", "mode": "rx"}]}])
def test_a_sandbox_that_is_none_is_told(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"Invalid enum value"):
        SandboxConfig.from_dict(wrong).to_entry()
