"""What an agent or a step declares as its tools: `{type: builtin|mcp|custom, …}`, or one of the short ways.

save_to_memory                                  a built-in tool, or else a custom one of that name
mcp://git/git_log   mcp://git/*   custom://x    addresses
{mcp: git}   {mcp: git, tools: [git_log]}       a server's tools
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

from luthier.text import near, one_line
from luthier.uri import SERVER_ID, ToolUri

if TYPE_CHECKING:
    from collections.abc import Collection

BUILTIN_NAMES = frozenset({"save_to_memory"})
"""Built-in tools that a bare name means."""

CUSTOM_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


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

_TOOL_NAMES = ("tool_names", "toolNames", "tools")
_KEYS = {
    "builtin": ("type", "name"),
    "custom": ("type", "name"),
    "mcp": ("type", "server_id", "serverId", *_TOOL_NAMES),
}


def read_source(value: object, *, builtins: Collection[str] = BUILTIN_NAMES) -> ToolSource:
    """Read a source in any of its spellings. Raises ValueError that says what is wrong with it."""
    uri = getattr(getattr(value, "tool", None), "uri", None)
    match value:
        case BuiltinSource() | McpSource() | CustomSource():
            return value
        case str() if "://" in value:
            return _of_uri(ToolUri.parse(value))
        case str():
            return BuiltinSource(value) if value in builtins else CustomSource(_custom_name(value))
        case dict() if "type" in value:
            return _structured(value)
        case dict() if "mcp" in value:
            _known_keys(value, ("mcp", *_TOOL_NAMES))
            return McpSource(_server_id(value["mcp"]), _tool_names(value))
        case _ if isinstance(uri, ToolUri):  # a decorated function, or a built-in tool
            return _of_uri(uri)
        case _:
            raise ValueError(
                f"{_shown(value)} is not a tool source: write a name, an address such as mcp://git/git_log, "
                "{mcp: server, tools: [names]}, or {type: builtin, mcp or custom, …}"
            )


def _of_uri(uri: ToolUri) -> ToolSource:
    match uri.scheme:
        case "mcp":
            return McpSource(uri.server, None if uri.name == "*" else (uri.name,))
        case "builtin":
            return BuiltinSource(uri.name)
        case "custom":
            return CustomSource(_custom_name(uri.name))


def _structured(value: dict[Any, Any]) -> ToolSource:
    kind = value["type"]
    if not isinstance(kind, str) or kind not in _KEYS:
        raise ValueError(f"{_shown(kind)} is not a type of tool source: write builtin, mcp or custom")
    _known_keys(value, _KEYS[kind])
    if kind == "mcp":
        server = value.get("server_id", value.get("serverId"))
        if server is None:
            raise ValueError("a source of type mcp lacks server_id")
        return McpSource(_server_id(server), _tool_names(value))
    name = value.get("name")
    if not isinstance(name, str) or not name:
        raise ValueError(f"a source of type {kind} lacks a name")
    return BuiltinSource(name) if kind == "builtin" else CustomSource(_custom_name(name))


def _known_keys(value: dict[Any, Any], known: tuple[str, ...]) -> None:
    for key in value:
        if key not in known:
            close = near(str(key), known, 1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise ValueError(f"{_shown(key)} is not a key of this tool source{hint}")


def _tool_names(value: dict[Any, Any]) -> tuple[str, ...] | None:
    written = [key for key in _TOOL_NAMES if key in value]
    if len(written) > 1:
        raise ValueError(f"{' and '.join(written)} say the same thing; keep one")
    names = value[written[0]] if written else None
    if names is None:
        return None
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) and name for name in names):
        raise ValueError(f"{written[0]} must be a list of tool names")
    return tuple(dict.fromkeys(names))


def _server_id(value: object) -> str:
    if not isinstance(value, str) or not SERVER_ID.fullmatch(value):
        raise ValueError(f"{_shown(value)} is not a server id (letters, digits, _ and -, at most 64)")
    return value


def _custom_name(name: str) -> str:
    if not CUSTOM_NAME.fullmatch(name):
        raise ValueError(
            f"{_shown(name)} is not the name of a custom tool (letters, digits, _ and -, at most 64)"
        )
    return name


def _shown(value: object) -> str:
    return repr(one_line(str(value), 80))
