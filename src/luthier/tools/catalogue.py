"""From what was declared to the tools themselves: sources are looked up by address, never renamed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from luthier.errors import LuthierError, NotFoundError
from luthier.text import near
from luthier.tools.source import BuiltinSource, CustomSource, McpSource, ToolSource
from luthier.uri import ToolUri

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from luthier.tools.builtin import LocalTools
    from luthier.tools.tool import Manifest, Tool

    ManifestOf = Callable[[str], Awaitable[Manifest]]


async def resolve(
    sources: Iterable[ToolSource], manifests: ManifestOf, local: LocalTools | None = None
) -> tuple[Tool, ...]:
    """The tools of all sources in their order, each once.

    `manifests` gives a server's manifest by its id, and raises NotFoundError where there is no such server.
    Servers are asked at the same time, each once. Raises NotFoundError with near names for an unknown server
    or tool, and whatever `manifests` raises; of several faults, that of the first source.
    """
    declared = tuple(sources)
    listed = await _fetched(
        [source.server_id for source in declared if isinstance(source, McpSource)], manifests
    )
    found: dict[ToolUri, Tool] = {}
    for source in declared:
        for tool in _tools(source, listed, local):
            found.setdefault(tool.uri, tool)
    return tuple(found.values())


async def _fetched(servers: list[str], manifests: ManifestOf) -> dict[str, Manifest | LuthierError]:
    async def fetch(server: str) -> Manifest | LuthierError:
        try:
            return await manifests(server)
        except LuthierError as error:
            return error

    async with asyncio.TaskGroup() as group:
        tasks = {server: group.create_task(fetch(server)) for server in dict.fromkeys(servers)}
    return {server: task.result() for server, task in tasks.items()}


def _tools(
    source: ToolSource, listed: dict[str, Manifest | LuthierError], local: LocalTools | None
) -> Iterable[Tool]:
    match source:
        case McpSource(server_id, tool_names):
            manifest = listed[server_id]
            if isinstance(manifest, LuthierError):
                raise manifest
            return manifest.tools if tool_names is None else [_named(manifest, name) for name in tool_names]
        case BuiltinSource(name):
            return [_local(ToolUri.builtin(name), local)]
        case CustomSource(name):
            return [_local(ToolUri.custom(name), local)]


def _named(manifest: Manifest, name: str) -> Tool:
    if tool := manifest.find(name):
        return tool
    dropped = next((dropped for dropped in manifest.dropped if dropped.name == name), None)
    raise NotFoundError(
        "tool",
        name,
        where=f"on server {manifest.server!r}",
        near=near(name, (tool.name for tool in manifest.tools)),
        hint=f"The server lists it, but it cannot be used: {dropped.reason}" if dropped else "",
    )


def _local(uri: ToolUri, local: LocalTools | None) -> Tool:
    if local is None:
        raise NotFoundError("tool", str(uri))
    return local.get(uri).tool
