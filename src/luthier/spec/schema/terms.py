"""The terms that the schemas for editors are made of: keys in every spelling, values, and what may be empty.

They follow the reader: a key may be written in snake_case or camelCase, and null is as good as absent unless
the key is needed.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

import msgspec

from luthier.spec.reader import camel

if TYPE_CHECKING:
    from collections.abc import Iterable

Schema = dict[str, Any]

ANY: Schema = {}
TEXT: Schema = {"type": "string"}
FILLED: Schema = {"type": "string", "pattern": r"\S"}
FLAG: Schema = {"type": "boolean"}
TEXTS: Schema = {"type": "array", "items": TEXT}
TEXT_MAP: Schema = {"type": "object", "additionalProperties": TEXT}
OBJECT: Schema = {"type": "object"}
EXPRESSION: Schema = {"type": "string", "pattern": r"\$\{|\{\{"}
PLAIN: Schema = {"type": "string", "not": {"pattern": r"(^|[^\\])(\$\{|\{\{)"}}
"""Text that holds no expression."""

LITERAL: Schema = {"pattern": r"\S", **PLAIN}

_CONDITIONS = {"allOf", "anyOf", "oneOf", "not", "if", "enum", "const"}

CONDITION: Schema = {"type": ["boolean", "string"], "pattern": r"\S"}
MAPPING: Schema = {"anyOf": [OBJECT, EXPRESSION]}
SECONDS: Schema = {"type": "number", "exclusiveMinimum": 0}
ANY_SECONDS: Schema = {"type": "number", "minimum": 0}


class Key(msgspec.Struct, frozen=True):
    """One key: its names, the first of which is the usual one, what it holds, and what it is for."""

    names: tuple[str, ...]
    holds: Schema
    says: str = ""
    needed: bool = False
    empty: bool = True  # whether null is as good as nothing

    @property
    def spellings(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(spelled for name in self.names for spelled in (name, camel(name))))


def key(*names: str, holds: Schema = ANY, says: str = "", needed: bool = False, empty: bool = True) -> Key:
    """A key under its names."""
    return Key(names, holds, says, needed, empty and not needed)


def mapping(*keys: Key, also: Iterable[Schema] = (), closed: bool = True) -> Schema:
    """A mapping with these keys; no two spellings of one stand together. `also` holds further conditions."""
    properties = {
        spelled: _told(one, first=index == 0) for one in keys for index, spelled in enumerate(one.spellings)
    }
    further = [*also, *(needs(one) for one in keys if one.needed and len(one.spellings) > 1)]
    twice = [list(pair) for one in keys for pair in combinations(one.spellings, 2)]
    if twice:
        further.append({"not": {"anyOf": [{"required": pair} for pair in twice]}})
    made: Schema = {"type": "object", "properties": properties}
    if required := [one.names[0] for one in keys if one.needed and len(one.spellings) == 1]:
        made["required"] = required
    if further:
        made["allOf"] = further
    return {**made, "additionalProperties": False} if closed else made


def needs(*keys: Key) -> Schema:
    """At least one of these keys is there, in some spelling."""
    return {"anyOf": [there(spelled) for one in keys for spelled in one.spellings]}


def there(name: str) -> Schema:
    """The key stands there, and is not empty."""
    return {"required": [name], "properties": {name: {"not": {"type": "null"}}}}


def filled(*names: str) -> Schema:
    """These keys are there, in some spelling, and are not empty texts."""
    spelled = [Key((name,), FILLED).spellings for name in names]
    return {
        "allOf": [
            {"anyOf": [{**there(one), "properties": {one: FILLED}} for one in each]} for each in spelled
        ]
    }


def without(keys: Iterable[Key]) -> Schema:
    """None of these keys stands there."""
    return {"properties": {spelled: False for one in keys for spelled in one.spellings}}


def lone(*keys: Key) -> Schema:
    """Exactly one of these keys is there."""
    return {"oneOf": [needs(one) for one in keys]}


def whole(low: int | None = 0, high: int | None = None) -> Schema:
    """A whole number within bounds."""
    bounds = {"minimum": low, "maximum": high}
    return {"type": "integer", **{name: bound for name, bound in bounds.items() if bound is not None}}


def choice(words: Iterable[Any]) -> Schema:
    return {"enum": list(dict.fromkeys(words))}


def items_of(schema: Schema, least: int = 0) -> Schema:
    """A list."""
    return {"type": "array", "items": schema, **({"minItems": least} if least else {})}


def either(*schemas: Schema) -> Schema:
    return {"anyOf": list(schemas)}


def ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


def when(condition: Schema, then: Schema, otherwise: Schema | None = None) -> Schema:
    made: Schema = {"if": condition, "then": then}
    return made if otherwise is None else {**made, "else": otherwise}


def says(name: str, *values: Any) -> Schema:
    """The key says one of these values."""
    return {"required": [name], "properties": {name: choice(values)}}


def emptied(schema: Schema) -> Schema:
    """The same, or null."""
    match schema:
        case {"enum": words, **rest} if not rest:
            return {"enum": [*words, None]}
        case {"type": str() as type_} if not _CONDITIONS & schema.keys():
            return {**schema, "type": [type_, "null"]}
        case {"type": list() as types} if not _CONDITIONS & schema.keys():
            return {**schema, "type": [*types, "null"]}
        case {"anyOf": forms, **rest} if not rest:
            return {"anyOf": [*forms, {"type": "null"}]}
        case _:
            return {"anyOf": [schema, {"type": "null"}]} if schema else schema


def _told(one: Key, *, first: bool) -> Schema:
    held = emptied(one.holds) if one.empty else one.holds
    said = one.says if first else f"The same as `{one.names[0]}`."
    return {**held, "description": said} if said else held
