"""Connections to the servers of a registry, and their tools for agents, by names that people bring along.

A Runtime over the registry's entries does the work, and each call passes its gate. It is made with the first
tools that are asked for, and made again after `close_all`.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import msgspec

from luthier.context import OPERATOR
from luthier.errors import NotFoundError
from luthier.redaction import logger
from luthier.runtime.runtime import Runtime
from luthier.text import near
from luthier.uri import ToolUri

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from types import TracebackType

    from luthier.runtime.parts import Registered
    from luthier.runtime.toolset import BoundTool, ToolSet
    from luthier.spec import ServerEntry

_log = logger("luthier.runtime")

TOOL_TIMEOUT_MS = 30_000
CACHE_TTL_MS = 300_000
_NEVER_MS = 86_400_000  # what stands for no limit: a day


class ResolvedTools(dict[str, "BoundTool"]):
    """The tools of one agent by name; `await tools[name].execute(…)` makes a call in the agent's name."""

    def __init__(self, tools: Mapping[str, BoundTool], own: ToolSet) -> None:
        super().__init__(tools)
        self.own = own


class MCPConnectionManager:
    """`registry` is asked for its entries each time that tools are asked for.

    `options`, a mapping or by name: `default_tool_timeout_ms` (0: no limit) and `cache_ttl_ms` (0: off) stand
    where an entry says nothing. `source` is the project whose policies, environment and store hold; without
    one they are the usual, and kept in memory. Other parts are those of a Runtime.
    """

    def __init__(
        self,
        registry: Registered,
        options: Mapping[str, int] | None = None,
        *,
        default_tool_timeout_ms: int = TOOL_TIMEOUT_MS,
        cache_ttl_ms: int = CACHE_TTL_MS,
        source: Any = None,
        **parts: Any,
    ) -> None:
        said = {"default_tool_timeout_ms": default_tool_timeout_ms, "cache_ttl_ms": cache_ttl_ms}
        for name in options or {}:
            if name not in said:
                raise NotFoundError("option", name, near=near(name, said))
        said.update(options or {})
        self._tool_timeout = (said["default_tool_timeout_ms"] or _NEVER_MS) / 1000
        self._cache_ttl = said["cache_ttl_ms"] / 1000
        self._registry = registry
        self._source = {} if source is None else source
        self._parts = parts
        self._runtime: Runtime | None = None
        self._given: list[ToolSet] = []  # that nobody has drained yet

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close_all()

    async def resolve_tools(
        self, sources: Iterable[Mapping[str, Any] | str], agent_id: str | None = None
    ) -> ResolvedTools:
        """The tools of these sources as that agent may use them; without one, as the operator may.

        A name that comes from two sources, or is a local tool's, becomes `SERVER__NAME`. Raises NotFoundError
        for a server or a local tool that there is not, or that the agent may not use, and WireError for a
        server that cannot be reached.
        """
        wanted = [_source(source) for source in sources]
        servers = list(dict.fromkeys(source.server for source in wanted if source.local is None))
        runtime = await self._brought_up(servers)
        own = runtime.tools_of(agent_id or OPERATOR)
        if servers:
            listing = await own.load(*servers)
            for error in listing.failed.values():
                raise error
        found = [pair for source in wanted for pair in _chosen(own, source)]
        counts = Counter(name for name, _ in found)
        self._given.append(own)
        return ResolvedTools({_named(name, tool, counts): tool for name, tool in found}, own)

    async def reconnect(self, server_id: str) -> None:
        """Give up the connection to a server; the next use makes another. An unknown one is passed over."""
        if self._runtime is not None and server_id in self._runtime.project.servers:
            await self._runtime.reconnect(server_id)

    def drain_taint_entries(self, tools: ResolvedTools | None = None) -> dict[str, list[dict[str, str]]]:
        """What these tools, or all, gave since the last time that is not trusted, by `server:tool`."""
        sets = self._given if tools is None else [tools.own]
        drained = {key: entries for one in sets for key, entries in one.drain_taint_entries().items()}
        self._given = [one for one in self._given if one not in sets]
        return drained

    async def close_all(self) -> None:
        """End every connection. Tools that are asked for later are connected anew."""
        runtime, self._runtime = self._runtime, None
        if runtime is not None:
            await runtime.close()

    async def _brought_up(self, servers: Sequence[str]) -> Runtime:
        """The runtime, with these servers as the registry has them now. Raises SpecError for a faulty one.

        One that is not there is left for the gate to tell of, in the words that the agent may hear.
        """
        there = await asyncio.to_thread(self._registry.load)
        if self._runtime is None:
            self._runtime = await Runtime.open(self._source, **self._parts).__aenter__()
        for server in servers:
            known = self._runtime.project.servers.get(server)
            if server in there.entries or server in there.broken:
                entry = self._entry(there.get(server))
                if known != entry:
                    await self._runtime.register(entry)
            elif known is not None:  # it was taken out of the registry
                await self._runtime.register(msgspec.structs.replace(known, disabled=True))
        return self._runtime

    def _entry(self, entry: ServerEntry) -> ServerEntry:
        return msgspec.structs.replace(
            entry,
            tool_timeout=self._tool_timeout if entry.tool_timeout is None else entry.tool_timeout,
            cache_ttl=self._cache_ttl if entry.cache_ttl is None else entry.cache_ttl,
        )


class _Source(NamedTuple):
    """A server, and which of its tools (None: all), or the address of a local tool."""

    server: str = ""
    names: Collection[str] | None = None
    local: ToolUri | None = None


def _source(source: Mapping[str, Any] | str) -> _Source:
    """What is meant by a source. Raises ValueError."""
    if isinstance(source, str):
        return _Source(local=ToolUri.builtin(source))
    match source.get("type"), source.get("name"), source.get("server_id"):
        case "mcp", _, str(server):
            return _Source(server, source.get("tool_names"))
        case "builtin", str(name), _:
            return _Source(local=ToolUri.builtin(name))
        case "custom", str(name), _:
            return _Source(local=ToolUri("custom", "", name))
    raise ValueError(f"{source!r} is no source of tools: write {{'type': 'mcp', 'server_id': …}}")


def _chosen(own: ToolSet, source: _Source) -> list[tuple[str, BoundTool]]:
    if source.local is not None:
        return [(source.local.name, own.get(source.local))]
    tools = {tool.tool.name: tool for tool in own.list_tools() if tool.tool.uri.server == source.server}
    for name in source.names or ():
        if name not in tools:
            _log.warning("server %s has no tool %r", source.server, name)
    return [(name, tool) for name, tool in tools.items() if source.names is None or name in source.names]


def _named(name: str, tool: BoundTool, counts: Counter[str]) -> str:
    return f"{tool.tool.uri.server}__{name}" if counts[name] > 1 and tool.tool.uri.server else name
