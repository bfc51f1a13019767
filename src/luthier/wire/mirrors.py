"""Arguments that a tool wants repeated in HTTP headers (`x-mcp-header`), and how headers carry them."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from luthier.tools import JsonObject

KEY = "x-mcp-header"
PREFIX = "Mcp-Param-"

Mirrors = tuple[tuple[tuple[str, ...], str], ...]
"""Pairs of the path of an argument and the name of its header."""

_PLAIN = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?|")
_ENCODED = re.compile(r"=\?base64\?.*\?=")
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_TYPES = frozenset({"string", "integer", "boolean"})
_LONGEST = 8 * 1024  # characters of a header's value: what servers take at most

# Where schemas stand within schemas, besides `properties`.
_SCHEMA = frozenset(
    {
        "additionalProperties",
        "contains",
        "contentSchema",
        "else",
        "if",
        "items",
        "not",
        "propertyNames",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
    }
)
_SCHEMAS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_NAMED = frozenset({"patternProperties", "dependentSchemas", "$defs", "definitions"})


def header_value(text: str) -> str:
    """The text as a header can carry it: plain where that is safe, else `=?base64?…?=`."""
    if _PLAIN.fullmatch(text) and not _ENCODED.fullmatch(text):
        return text
    return f"=?base64?{base64.b64encode(text.encode('utf-8', 'surrogatepass')).decode()}?="


def mirrors_of(schema: JsonObject) -> Mirrors:
    """What the schema wants mirrored. Raises ValueError, saying what is wrong, where it may not want that."""
    found: dict[str, tuple[tuple[str, ...], str]] = {}
    for path, node in _walk(schema):
        if KEY not in node:
            continue
        if not path:
            raise ValueError(f"{KEY} stands where no argument can be told from the names alone")
        name, type_ = node[KEY], node.get("type")
        where = ".".join(path)[:80]
        if not isinstance(name, str) or not _TOKEN.fullmatch(name):
            raise ValueError(f"the {KEY} of {where!r} is no name of a header")
        if not isinstance(type_, str) or type_ not in _TYPES:
            raise ValueError(f"{KEY} stands at {where!r}, which is no string, integer or boolean")
        if name.lower() in found:
            raise ValueError(f"two arguments want the header {name[:80]!r}")
        found[name.lower()] = (path, PREFIX + name)
    return tuple(found.values())


def mirrored(mirrors: Mirrors, arguments: Mapping[str, Any]) -> dict[str, str]:
    """The headers for these arguments; what is absent or null has none."""
    headers = {}
    for path, name in mirrors:
        value: Any = arguments
        for key in path:
            value = value.get(key) if isinstance(value, Mapping) else None
        if isinstance(value, bool):
            headers[name] = "true" if value else "false"
        elif isinstance(value, str | int) and len(text := str(value)) <= _LONGEST:
            headers[name] = header_value(text)
    return headers


def _walk(schema: JsonObject) -> Iterator[tuple[tuple[str, ...] | None, JsonObject]]:
    """All schemas in a schema, each with the names that lead to it, None where other keywords lie between."""
    stack: list[tuple[tuple[str, ...] | None, Any]] = [((), schema)]
    while stack:
        path, node = stack.pop()
        if not isinstance(node, dict):
            continue
        yield path, node
        for word, value in node.items():
            if word == "properties" and isinstance(value, dict):
                stack += [(None if path is None else (*path, name), below) for name, below in value.items()]
            elif word in _SCHEMA:
                stack.append((None, value))
            elif word in _SCHEMAS and isinstance(value, list):
                stack += [(None, below) for below in value]
            elif word in _NAMED and isinstance(value, dict):
                stack += [(None, below) for below in value.values()]
