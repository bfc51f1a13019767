"""Lists of tools: bad definitions, odd names, pages, changes."""

from __future__ import annotations

import os
import threading

from tests.faults.modes.mode import acts, always, mode
from tests.faults.peer import RpcError, echo, text

TYPE_CHECKING = False  # `typing` is a slow import, see peer.py
if TYPE_CHECKING:
    from typing import Any

    from tests.faults.peer import Call, Json, Method, Peer

OPEN: Json = {"type": "object"}

UNUSABLE: list[Any] = [
    {"name": "schema_text", "inputSchema": {"type": "string"}},
    {"name": "schema_list", "inputSchema": [1]},
    {"name": "schema_number", "inputSchema": 5},
    {"description": "nameless", "inputSchema": OPEN},
    {"name": 5, "inputSchema": OPEN},
    {"name": "", "inputSchema": OPEN},
    "not even an object",
    None,
]

USABLE: dict[str, Json] = {
    "output_ref": {"outputSchema": {"$ref": "#/$defs/N", "$defs": {"N": {"type": "object"}}}},
    "output_remote": {"outputSchema": {"$ref": "http://127.0.0.1:9/never.json"}},
    "output_nonsense": {"outputSchema": {"type": "nonsense"}},
    "null_parts": {
        "description": None,
        "title": None,
        "annotations": None,
        "outputSchema": None,
        "_meta": None,
    },
    "odd_parts": {"description": 7, "title": [], "annotations": "none"},
}

NAMES = ("catalog.get-entity", "a/b", "f1_", "a__b__c", "c-d", "naïve ☃", "n" * 90, "n" * 89 + "m")


SCHEMAS: dict[str, Json] = {
    "generated": {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Search",
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "words": {"type": "string", "minLength": 1, "pattern": "^[a-z ]+$", "x-order": 1},
            "limit": {"anyOf": [{"type": "integer", "exclusiveMinimum": 0}, {"type": "null"}], "default": 9},
            "when": {"type": "string", "format": "date-time", "examples": ["2026-01-01T00:00:00Z"]},
        },
        "required": ["words"],
    },
    "defaults": {
        "type": "object",
        "properties": {"level": {"$ref": "#/$defs/Level", "default": "all", "description": "How much."}},
        "$defs": {"Level": {"enum": ["all", "some"]}},
    },
    "by_property": {
        "type": "object",
        "properties": {
            "head": {"type": "object", "properties": {"name": {"type": "string"}}},
            "name": {"$ref": "#/properties/head/properties/name"},
            "rows": {"type": "array", "items": {"$ref": "#/properties/head"}},
        },
    },
    "recursive": {
        "type": "object",
        "properties": {"root": {"$ref": "#/$defs/Node"}},
        "$defs": {
            "Node": {
                "type": "object",
                "properties": {"kids": {"type": "array", "items": {"$ref": "#/$defs/Node"}}},
                "additionalProperties": False,
            }
        },
    },
    "array_of_anything": {"type": "object", "properties": {"items": {"type": "array"}}},
    "empty": {},
    "bare": {"type": "object"},
    "required_only": {"type": "object", "required": ["a"]},
    "hyphens": {
        "type": "object",
        "properties": {"auth-method": {"type": "string"}, "x.y": {}, "$top": {}, "@id": {}, "": {}},
        "required": ["auth-method"],
    },
}
"""Names say what is special about them."""


@mode
def bad_tools(peer: Peer) -> None:
    """A list in which some definitions are of no use, some only odd, and some good."""
    for name, more in USABLE.items():
        peer.tool(name, always(text("works")), **more)
    peer.tools[1:1] = UNUSABLE


@mode
def odd_names(peer: Peer) -> None:
    """Tool names that the protocol allows and model providers do not."""
    for name in NAMES:
        peer.tool(name, always(text(name)))


@mode
def schemas(peer: Peer) -> None:
    """Input schemas as generators write them, and as rewriting them has damaged them; tools that echo."""
    for name, definition in SCHEMAS.items():
        peer.tool(name, echo)
        peer.tools[-1]["inputSchema"] = definition.copy()


@mode
def pages(peer: Peer) -> None:
    """A list of four pages; the argument says how its cursors misbehave, if they do."""
    kind, size, total, asked = peer.arguments[0], 2, 8, 0
    for n in range(total - len(peer.tools)):
        peer.tool(f"t{n}", always(text("called")))

    def list_tools(message: Json) -> Json:
        nonlocal asked
        asked += 1
        start = int(str(message.get("params", {}).get("cursor") or 0).partition(":")[0])
        page: Json = {"tools": peer.tools[start : start + size]}
        after = start + size
        match kind:
            case "repeated":
                return page | {"nextCursor": str(min(after, total - size))}
            case "circle":
                return page | {"nextCursor": str(after % total)}
            case "endless":
                return page | {"nextCursor": f"{min(after, total)}:{asked}"}
            case _ if after < total:
                return page | {"nextCursor": str(after)}
            case "null":
                return page | {"nextCursor": None}
            case "empty":
                return page | {"nextCursor": ""}
            case _:
                return page

    peer.methods["tools/list"] = list_tools


@mode
def changing(peer: Peer) -> None:
    """A server that gains tools while it runs and says so; told to, it then fails to give its list."""
    broken = threading.Event()

    def list_tools(message: Json) -> Json:
        if broken.is_set():
            raise RpcError(-32603, "the list is broken")
        return peer.list_tools(message)

    def grow(call: Call) -> Json:
        for n in range(int(call.arguments.get("times", 1))):
            peer.tool(f"grown{n}", always(text("grown")))
            peer.tools_changed()
        return text("ok")

    def break_list(_: Call) -> Json:
        broken.set()
        peer.tools_changed()
        return text("ok")

    peer.methods["tools/list"] = list_tools
    peer.tool("grow", grow)
    peer.tool("break_list", break_list)


@mode
def changed_at_once(peer: Peer) -> None:
    """A server that reports a changed list before anybody has asked for the first."""

    def then_changed(method: Method) -> Method:
        def both(message: Json) -> Json | None:
            threading.Timer(0.01, peer.tools_changed).start()
            return method(message)

        return both

    for name in ("initialize", "subscriptions/listen"):
        peer.methods[name] = then_changed(peer.methods[name])


@mode
def tools_from_file(peer: Peer) -> None:
    """A server whose tools come from a file, so that a restart may bring others; `act` crashes it."""
    with open(peer.arguments[0], encoding="utf-8") as file:  # noqa: PTH123  (pathlib is a slow import)
        for name in file.read().split():
            peer.tool(name, always(text("from the file")))

    @acts(peer)
    def act(_: Call) -> None:
        os._exit(5)
