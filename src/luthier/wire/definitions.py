"""Tool definitions as servers list them: read leniently, one by one, so that a bad one costs only itself."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from luthier.text import clean, is_clean, one_line
from luthier.text.cleaner import name_fault
from luthier.tools import DroppedTool, JsonObject, Tool
from luthier.uri import ToolUri
from luthier.wire.codec import REFUSED, value
from luthier.wire.mirrors import Mirrors, mirrors_of
from luthier.wire.repair import UnreadableError


class Page(msgspec.Struct, rename="camel"):
    """One page of `tools/list`. Nothing is promised about the types."""

    tools: Raw | UnsetType = UNSET
    next_cursor: Any = None
    ttl_ms: Any = None


page_decoder = msgspec.json.Decoder(Page)
_list = msgspec.json.Decoder(list[Raw]).decode
_any = msgspec.json.Decoder()


class Listing:
    """The tools of all pages of one list so far."""

    def __init__(self, server: str, *, modern: bool = False) -> None:
        self.tools: list[Tool] = []
        self.dropped: list[DroppedTool] = []
        self.oddities: list[str] = []
        self.ttl_ms: int | None = None
        self.mirrors: dict[str, Mirrors] = {}  # by tool, where there are any
        self._server = server
        self._modern = modern
        self._names: set[str] = set()

    def add(self, page: Page) -> None:
        """Take one page; what was odd in it is added to `dropped` and `oddities`."""
        if isinstance(page.ttl_ms, int) and not isinstance(page.ttl_ms, bool) and page.ttl_ms >= 0:
            self.ttl_ms = page.ttl_ms if self.ttl_ms is None else min(self.ttl_ms, page.ttl_ms)
        try:
            definitions = [] if page.tools is UNSET else _list(page.tools)
        except REFUSED:
            page.tools = UNSET
        if page.tools is UNSET:
            self.oddities.append("a page of the tool list has no list of tools")
            return
        for text in definitions:
            self._read(text)

    def _read(self, text: Raw) -> None:
        try:
            definition, _ = value(text, _any)
        except UnreadableError as error:
            self.dropped.append(DroppedTool("", f"it cannot be read: {error}"))
            return
        self._take(definition, bytes(text))

    def _take(self, definition: Any, text: bytes) -> None:
        reason = fault_of(definition)
        shown = definition
        name = definition.get("name") if isinstance(definition, dict) else None
        if not reason and name in self._names:
            reason = "the server lists another tool of this name before it"
        if not reason and self._modern:
            reason = self._mirror(definition)
        if not reason and (name_fault(definition["name"]) or not is_clean(text)):
            cleaned = clean(definition)
            shown, reason = cleaned.definition, cleaned.fault
        if reason:
            self.dropped.append(DroppedTool(one_line(name, 128) if isinstance(name, str) else "", reason))
            return
        self._names.add(definition["name"])
        self.tools.append(_tool(self._server, definition, shown, sha256(text).hexdigest()))
        if not isinstance(definition.get("outputSchema"), dict | None):
            self.oddities.append(
                f"the outputSchema of {one_line(definition['name'], 128)} is not an object: not used"
            )

    def _mirror(self, definition: JsonObject) -> str:
        """Note which arguments it wants in headers; why it may not want that."""
        try:
            mirrors = mirrors_of(definition["inputSchema"])
        except ValueError as error:
            return str(error)
        if mirrors:
            self.mirrors[definition["name"]] = mirrors
        return ""


def fault_of(definition: Any) -> str:
    """Why this definition cannot be used; empty when it can."""
    if not isinstance(definition, dict):
        return "the definition is not an object"
    name = definition.get("name")
    if not isinstance(name, str) or not name:
        return "it has no name"
    if "inputSchema" not in definition:
        return "it has no inputSchema"
    schema = definition["inputSchema"]
    if not isinstance(schema, dict):
        return f"its inputSchema is {_kind(schema)}, not an object"
    root = schema.get("type", "object")
    if root != "object" and not (isinstance(root, list) and "object" in root):
        return f"its inputSchema describes {one_line(str(root), 40)}, not an object"
    return ""


def _tool(server: str, definition: JsonObject, shown: JsonObject, digest: str) -> Tool:
    description = shown.get("description")
    title = shown.get("title")
    output = shown.get("outputSchema")
    annotations = shown.get("annotations")
    return Tool(
        uri=ToolUri("mcp", server, definition["name"]),
        description=description if isinstance(description, str) else "",
        title=title if isinstance(title, str) else "",
        input_schema=shown["inputSchema"],
        output_schema=output if isinstance(output, dict) else None,
        annotations=annotations if isinstance(annotations, dict) else {},
        raw=definition,
        digest=digest,
    )


def _kind(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return "text"
        case list():
            return "a list"
        case _:
            return "a number"
