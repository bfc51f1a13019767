"""Schemas as providers take them: an object at the root. Any other shape travels as its one member."""

from __future__ import annotations

from typing import Any

import msgspec

MEMBER = "value"
_SHARED = ("$defs", "definitions")  # what references of the form `#/$defs/x` lead to


def is_object(schema: dict[str, Any]) -> bool:
    """Whether what fits the schema is an object, as it says itself."""
    return schema.get("type") == "object"


def carried(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema that a provider is given."""
    if is_object(schema):
        return schema
    shared = {name: schema[name] for name in _SHARED if name in schema}
    inner = {name: part for name, part in schema.items() if name not in shared and name != "$schema"}
    return {
        "type": "object",
        "properties": {MEMBER: inner},
        "required": [MEMBER],
        "additionalProperties": False,
        **shared,
    }


def unpacked(value: Any, schema: dict[str, Any]) -> Any:
    """What was asked for, out of what came; UNSET where it is not there."""
    if value is msgspec.UNSET or is_object(schema):
        return value
    return value.get(MEMBER, msgspec.UNSET) if isinstance(value, dict) else value
