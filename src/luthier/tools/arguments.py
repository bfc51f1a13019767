"""Arguments made fit for a tool without changing what they say: needless nulls dropped, JSON text decoded.

Callers write `null` for "not given" and models write lists as text; strict servers refuse both. Two repairs,
each made only where the schema leaves no doubt:

- an explicit null of an optional property whose schema does not allow null is dropped;
- a text is decoded where the schema wants an array or object and no string, and the text holds one.

What a schema allows is read generously (a keyword that is not understood allows everything), so that
arguments which fit already come back as they are.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import msgspec

from luthier.taint import Labelled
from luthier.tools.pointers import follow

if TYPE_CHECKING:
    from luthier.tools.tool import JsonObject

MAX_DEPTH = 32
"""Nesting of values and of schemas that is looked through; below it everything is left as it is."""

_ANY = frozenset({"null", "boolean", "number", "string", "array", "object"})
_OPENING = ("[", "{")
_OLD_DIALECTS = ("draft-04", "draft-06", "draft-07")


def prepare(schema: JsonObject, arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments as the tool wants them. What fits the schema already comes back unchanged."""
    if not any(map(_repairable, arguments.values())):
        return arguments
    return _Preparation(schema).members([schema], arguments, MAX_DEPTH)


def prepare_labelled(schema: JsonObject, arguments: Labelled[dict[str, Any]]) -> Labelled[dict[str, Any]]:
    """`prepare` on the value. Every label stays, that of a dropped null too: it decided something."""
    prepared = prepare(schema, arguments.value)
    return arguments if prepared is arguments.value else Labelled(prepared, arguments.label, arguments.parts)


class _Preparation:
    """One pass over one value. A list of schemas means that all of them hold."""

    def __init__(self, root: JsonObject) -> None:
        self._root = root
        self._ref_stands_alone = any(name in str(root.get("$schema")) for name in _OLD_DIALECTS)
        self._known_kinds: dict[int, frozenset[str]] = {}

    @cached_property
    def _one_resource(self) -> bool:
        """Whether `#` means the root everywhere: no identifier below it."""
        waiting: list[Any] = [*self._root.values()]
        for value in waiting:  # grows while it is read
            if isinstance(value, dict):
                if isinstance(value.get("$id"), str) or isinstance(value.get("id"), str):
                    return False
                waiting.extend(value.values())
            elif isinstance(value, list):
                waiting.extend(value)
        return True

    def _value(self, schemas: list[Any], value: Any, depth: int) -> Any:
        if isinstance(value, str):
            return self._decoded(schemas, value, depth)
        if depth and isinstance(value, dict):
            return self.members(schemas, value, depth)
        if depth and isinstance(value, list):
            return self._items(schemas, value, depth)
        return value

    def members(self, schemas: list[Any], values: dict[str, Any], depth: int) -> dict[str, Any]:
        forms = self._forms(schemas, "object")
        prepared: dict[str, Any] = {}
        changed = False
        for key, value in values.items():
            if not _repairable(value):
                prepared[key] = value
                continue
            judges = [judge for form in forms for judge in _judges(form, key)]
            if value is None and not self._allow(judges, "null") and not _required(forms, key):
                changed = True
                continue
            prepared[key] = self._value(judges, value, depth - 1)
            changed = changed or prepared[key] is not value
        return prepared if changed else values

    def _items(self, schemas: list[Any], values: list[Any], depth: int) -> list[Any]:
        forms = self._forms(schemas, "array")
        judges = [
            form["items"]
            for form in forms
            if isinstance(form.get("items"), dict) and "prefixItems" not in form
        ]
        prepared = [self._value(judges, value, depth - 1) for value in values]
        return prepared if any(new is not old for new, old in zip(prepared, values, strict=True)) else values

    def _decoded(self, schemas: list[Any], text: str, depth: int) -> Any:
        if not _repairable(text) or self._allow(schemas, "string"):
            return text
        try:
            value = msgspec.json.decode(text)
        except (ValueError, RecursionError):
            return text
        kind = "array" if isinstance(value, list) else "object"
        return self._value(schemas, value, depth) if self._allow(schemas, kind) else text

    def _allow(self, schemas: list[Any], kind: str) -> bool:
        return all(kind in self._kinds(schema, MAX_DEPTH) for schema in schemas)

    def _kinds(self, schema: Any, depth: int) -> frozenset[str]:
        """The JSON types that a schema may accept; integers are numbers here."""
        if not isinstance(schema, dict):
            return frozenset() if schema is False else _ANY
        if not depth:
            return _ANY
        if id(schema) not in self._known_kinds:
            self._known_kinds[id(schema)] = _ANY  # for a way back to here
            self._known_kinds[id(schema)] = self._found_kinds(schema, depth - 1)
        return self._known_kinds[id(schema)]

    def _found_kinds(self, schema: JsonObject, depth: int) -> frozenset[str]:
        kinds = self._kinds(self._target(schema), depth)
        if self._ref_stands_alone and "$ref" in schema:
            return kinds
        kinds &= _typed(schema)
        for form in _listed(schema, "allOf"):
            kinds &= self._kinds(form, depth)
        for key in ("anyOf", "oneOf"):
            if forms := _listed(schema, key):
                kinds &= frozenset().union(*(self._kinds(form, depth) for form in forms))
        return kinds

    def _forms(self, schemas: list[Any], kind: str) -> list[JsonObject]:
        """All that must hold for a value of that type; of alternatives, the only one that admits it."""
        found: dict[int, JsonObject] = {}
        waiting = [*schemas]
        while waiting:
            schema = waiting.pop()
            if not isinstance(schema, dict) or id(schema) in found:
                continue
            found[id(schema)] = schema
            waiting.append(self._target(schema))
            if self._ref_stands_alone and "$ref" in schema:
                continue
            waiting.extend(_listed(schema, "allOf"))
            for key in ("anyOf", "oneOf"):
                fitting = [form for form in _listed(schema, key) if kind in self._kinds(form, MAX_DEPTH)]
                if len(fitting) == 1:
                    waiting.append(fitting[0])
        if self._ref_stands_alone:
            return [schema for schema in found.values() if "$ref" not in schema]
        return list(found.values())

    def _target(self, schema: JsonObject) -> Any:
        """What a `$ref` leads to; True, which allows everything, where none is followed."""
        reference = schema.get("$ref")
        if not isinstance(reference, str) or not reference.startswith("#") or not self._one_resource:
            return True
        return follow(self._root, unquote(reference[1:]))


def _repairable(value: Any) -> bool:
    if isinstance(value, str):
        return value.lstrip().startswith(_OPENING)
    return value is None or isinstance(value, (dict, list))


def _typed(schema: JsonObject) -> frozenset[str]:
    kinds = _ANY
    if "type" in schema:
        written = schema["type"]
        names = written if isinstance(written, list) else [written]
        kinds &= {"number" if name == "integer" else name for name in names if isinstance(name, str)}
    if "const" in schema:
        kinds &= {_kind(schema["const"])}
    if options := _listed(schema, "enum"):
        kinds &= {_kind(option) for option in options}
    return kinds


def _kind(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"


def _listed(schema: JsonObject, key: str) -> list[Any]:
    found = schema.get(key)
    return found if isinstance(found, list) else []


def _judges(form: JsonObject, key: str) -> list[Any]:
    """The subschemas of one form that judge this property for certain."""
    named = form.get("properties")
    if isinstance(named, dict) and key in named:
        return [named[key]]
    rest = form.get("additionalProperties")
    return [rest] if isinstance(rest, dict) and "patternProperties" not in form else []


def _required(forms: list[JsonObject], key: str) -> bool:
    return any(key in _listed(form, "required") for form in forms)
