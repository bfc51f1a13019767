"""What a tool's input schema says about names: which it knows, and whether it takes others. Pure."""

from __future__ import annotations

from typing import Any

_PARTS = ("allOf", "anyOf", "oneOf")
_DEPTH = 16  # of references and parts followed; deeper ones name nothing


def names_of(schema: Any) -> frozenset[str]:
    """The properties that a schema names at its top, in its parts, and where it refers to itself."""
    return frozenset(name for part in _parts(schema, schema, 0) for name in _mapping(part.get("properties")))


def is_open(schema: Any) -> bool:
    """Whether it takes properties that it does not name."""
    return all(
        part.get("additionalProperties") is not False and part.get("unevaluatedProperties") is not False
        for part in _parts(schema, schema, 0)
    )


def _parts(schema: Any, root: Any, depth: int) -> list[dict[str, Any]]:
    if not isinstance(schema, dict) or depth > _DEPTH:
        return []
    found = [schema]
    inner = [part for key in _PARTS for part in _list(schema.get(key))]
    for part in [*inner, _referred(schema.get("$ref"), root)]:
        found += _parts(part, root, depth + 1)
    return found


def _referred(reference: Any, root: Any) -> Any:
    """What a reference within the schema points to; None for any other."""
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return None
    for token in reference[2:].split("/"):
        root = _mapping(root).get(token.replace("~1", "/").replace("~0", "~"))
    return root


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
