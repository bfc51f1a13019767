"""What is told of tools to the person who approves them: what the cleaner changed, and what looks odd."""

from __future__ import annotations

from typing import TYPE_CHECKING

from luthier.govern.pins import definition_of
from luthier.text import Finding, clean, lookalikes, suspicions

if TYPE_CHECKING:
    from collections.abc import Iterable

    from luthier.tools import Tool
    from luthier.uri import ToolUri

_ALIKE = {"looks": "lookalike-name", "near": "near-name"}


def found_in(tools: Iterable[Tool]) -> dict[ToolUri, tuple[Finding, ...]]:
    """The findings of each tool of a server: of its definition, and of its name among the others."""
    tools = tuple(tools)
    found: dict[ToolUri, tuple[Finding, ...]] = {tool.uri: () for tool in tools}
    by_key = {str(tool.uri): tool for tool in tools if tool.uri.scheme == "mcp"}
    for tool in by_key.values():
        definition = definition_of(tool)
        found[tool.uri] = clean(definition).findings + suspicions(definition)
    names = {key: (tool.uri.server, tool.name) for key, tool in by_key.items()}
    for one, other, alike in lookalikes(names):
        for key, like in ((one, other), (other, one)):
            found[by_key[key].uri] += (Finding(_ALIKE[alike], "/name", f"could be taken for {like}"),)
    return found
