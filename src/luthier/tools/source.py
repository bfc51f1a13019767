"""What an agent or a step declares as its tools: `{type: builtin|mcp|custom, …}`, and the short ways to write it."""

from __future__ import annotations

import msgspec


class BuiltinSource(msgspec.Struct, frozen=True, tag_field="type", tag="builtin"):
    """One of Luthier's own tools."""

    name: str


class McpSource(msgspec.Struct, frozen=True, tag_field="type", tag="mcp", omit_defaults=True):
    """Tools of one server: those named, or all that it advertises (None). An empty tuple is none."""

    server_id: str
    tool_names: tuple[str, ...] | None = None


class CustomSource(msgspec.Struct, frozen=True, tag_field="type", tag="custom"):
    """A Python function that the host registered as a tool."""

    name: str


ToolSource = BuiltinSource | McpSource | CustomSource


def read_source(value: object) -> ToolSource:
    """Read a source in any of its spellings. Raises ValueError that says what is wrong with it."""
    raise NotImplementedError
