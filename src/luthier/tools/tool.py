"""One callable thing: its address, what it says of itself, and its schemas as the server sent them."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import msgspec

from luthier.uri import ToolUri

JsonObject = dict[str, Any]


class Tool(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A tool as it may be shown: its texts and schemas are cleaned of what hides in them.

    `raw` is the whole definition as the server sent it, and never changed; `digest` is the SHA-256 of its
    bytes, empty where there were none. What goes to the server and comes back is judged by its own schemas.
    """

    uri: ToolUri
    description: str = ""
    title: str = ""
    input_schema: JsonObject
    output_schema: JsonObject | None = None
    annotations: JsonObject = msgspec.field(default_factory=dict)
    raw: JsonObject = msgspec.field(default_factory=dict)
    digest: str = ""

    @property
    def name(self) -> str:
        """The name that its own server knows it by."""
        return self.uri.name

    @property
    def own_input_schema(self) -> JsonObject:
        """The schema of its arguments as its server sent it."""
        schema: JsonObject = self.raw.get("inputSchema", self.input_schema)
        return schema

    @property
    def own_output_schema(self) -> JsonObject | None:
        """The schema of its structured results as its server sent it, if it promises any."""
        return None if self.output_schema is None else self.raw.get("outputSchema", self.output_schema)


class DroppedTool(msgspec.Struct, frozen=True):
    """A definition that could not be used, and why; the rest of its list is kept."""

    name: str
    reason: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """The tools that one server advertises, in its own order; `ttl_ms` is how long it says that they hold."""

    server: str
    tools: tuple[Tool, ...] = ()
    dropped: tuple[DroppedTool, ...] = ()
    ttl_ms: int | None = None

    def find(self, name: str) -> Tool | None:
        """The tool of that name, the first where there are two, or None."""
        return self._by_name.get(name)

    @cached_property
    def _by_name(self) -> dict[str, Tool]:
        return {tool.name: tool for tool in reversed(self.tools)}
