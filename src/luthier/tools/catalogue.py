"""From what was declared to the tools themselves: sources are resolved by address against manifests and local tools."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

from luthier.tools.builtin import LocalTools
from luthier.tools.source import ToolSource
from luthier.tools.tool import Manifest, Tool

ManifestOf = Callable[[str], Awaitable[Manifest]]
"""Gives a server's manifest by id; raises NotFoundError for an unknown server, ConnectError for one out of reach."""


async def resolve(
    sources: Iterable[ToolSource], manifests: ManifestOf, local: LocalTools | None = None
) -> tuple[Tool, ...]:
    """The tools of all sources in their order, each once. Servers are asked at the same time, each once.

    Raises NotFoundError with near names for an unknown server or tool.
    """
    raise NotImplementedError
