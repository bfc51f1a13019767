"""Prints docs/keys.md: every key of an ensemble and of luthier.yaml, as the schemas for editors have them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from luthier.spec.control_steps import READERS
from luthier.spec.reader import camel
from luthier.spec.schema import SCHEMAS
from luthier.spec.schema.terms import EXPRESSION

if TYPE_CHECKING:
    from collections.abc import Iterator

HEAD = """\
# Every key

What may stand in an ensemble's file and in `luthier.yaml`, key by key; [ensembles.md](ensembles.md),
[operations.md](operations.md), [models.md](models.md), [servers.md](servers.md) and the other pages say what
it means. This page is written by `python scripts/keys.py` from the schemas for editors.

Keys with `_` may be written in camelCase too: `max_retries`, `maxRetries`. A value of nothing counts as left
out. **Bold** keys are needed.

## In an editor

`luthier schema ensemble` and `luthier schema project` print JSON Schemas, with which an editor knows these
keys and what they hold. `luthier check` knows more: the steps that are named, the scripts, the servers and
their tools.

```sh
luthier schema ensemble > ensemble.schema.json
```

Most editors with support for YAML take its place from a comment in the first line of a file:
`# yaml-language-server: $schema=../ensemble.schema.json`.
"""
TITLES = {"ensemble": "An ensemble", "project": "luthier.yaml"}
WORDS = {
    "string": "text",
    "number": "number",
    "integer": "whole number",
    "boolean": "true or false",
    "object": "mapping",
}
FLOW = {"#/$defs/flow_items": "list of steps and control steps", "#/$defs/flow_item": "step or control step"}
Schema = dict[str, Any]


class Page:
    """One file's tables, each mapping once."""

    def __init__(self, root: Schema, title: str) -> None:
        self._root = root
        self._waiting: list[tuple[str, Schema]] = [(title, root)]
        self._seen: set[frozenset[str]] = set()

    def lines(self) -> Iterator[str]:
        level = "##"
        while self._waiting:
            title, schema = self._waiting.pop(0)
            keys = frozenset(schema["properties"]) - {"transport"}  # may stand in `transport` as well
            if keys in self._seen:
                continue  # told once, however often it may be used
            self._seen.add(keys)
            yield from (f"\n{level} {title}\n", "| key | holds | |", "| --- | --- | --- |")
            yield from self._rows(title, schema)
            level = "###"

    def _rows(self, title: str, schema: Schema) -> Iterator[str]:
        properties, needed = schema["properties"], _needed(schema)
        for name, held in properties.items():
            said = held.get("description", "")
            if said.startswith("The same as") or _is_camel(name, properties):
                continue
            also = [
                other
                for other, its in properties.items()
                if its.get("description") == f"The same as `{name}`." and other != camel(name)
            ]
            also = [other for other in also if not _is_camel(other, properties)]
            shown = ", ".join(f"`{one}`" for one in (name, *also))
            within = f"`{name}`" if title in TITLES.values() else f"{title} / `{name}`"
            words = " or ".join(dict.fromkeys(self._words(held, within)))
            bold = f"**{shown}**" if name in needed else shown
            yield f"| {bold} | {words} | {said} |"
        for form in self._forms(schema):
            self._waiting.append(form)

    def _forms(self, schema: Schema) -> Iterator[tuple[str, Schema]]:
        """What the config of each operation says."""
        for part in schema.get("allOf", ()):
            config = part.get("then", {}).get("properties", {}).get("config", {})
            if "$ref" in config:
                operation = config["$ref"].rpartition("/")[2].removesuffix("_config")
                yield from self._mappings(config, f"`config` of `{operation}`")

    def _words(self, schema: Schema, title: str) -> Iterator[str]:
        """What a value is; the mappings in it are noted for tables of their own."""
        if flow := FLOW.get(schema.get("$ref", "")):
            defs = self._root["$defs"]
            self._waiting += [("A place in `flow`", defs["flow_place"])]
            self._waiting += [(f"`{kind}` in `flow`", defs[kind]) for kind in READERS]
            yield flow
            return
        schema = self._target(schema)
        if "enum" in schema or "const" in schema:
            options = schema.get("enum", [schema.get("const")])
            words = [_spelled(one) for one in options if one is not None]
            words = [word for word in words if word == word.upper() or word.upper() not in words]
            yield " ".join(f"`{word}`" for word in words)
            return
        forms = [*schema.get("anyOf", ()), *schema.get("oneOf", ())]
        lone = [one for one in forms if len(one.get("properties", ())) == 1 and one.get("type") == "object"]
        if len(lone) > 1:
            merged = {key: held for one in lone for key, held in one["properties"].items()}
            self._waiting.append((f"{title}, with one of", {"properties": merged}))
            forms = [one for one in forms if one not in lone]
            yield "mapping"
        for form in forms:
            if form.get("type") != "null" and not form.keys() <= {"required", "properties"}:
                yield from self._words(form, title)
        mappings = list(self._mappings(schema, title))
        self._waiting += mappings
        types = schema.get("type", ())
        for kind in [types] if isinstance(types, str) else types:
            if kind == "array":
                inner = " or ".join(dict.fromkeys(self._words(schema.get("items", {}), title)))
                yield f"list of {inner}" if inner else "list"
            elif kind != "null":
                yield (
                    "expression"
                    if schema.get("pattern") == EXPRESSION["pattern"]
                    else _bounded(WORDS[kind], schema)
                )
        if not types and not schema.get("anyOf") and not schema.get("oneOf"):
            further = [schema[key] for key in ("then", "else") if key in schema]
            yield from (word for one in further for word in self._words(one, title))
            if not further:
                yield "anything"

    def _mappings(self, schema: Schema, title: str) -> Iterator[tuple[str, Schema]]:
        """The mappings with keys of their own that a value may be, or hold under names of one's own."""
        found = list(self._found(schema))
        for number, one in enumerate(found):
            tag = one["properties"].get("type", {}).get("enum", [])
            more = f" ({' '.join(map(str, filter(None, tag)))})" if len(found) > 1 and tag else ""
            yield title + (more or (f" ({number + 1})" if len(found) > 1 else "")), one

    def _found(self, schema: Schema) -> Iterator[Schema]:
        schema = self._target(schema)
        if "properties" in schema and schema.get("additionalProperties") is False:
            yield schema
        inner = schema.get("additionalProperties")
        if isinstance(inner, dict):
            yield from self._found(inner)
        for key in ("then", "else"):
            if key in schema:
                yield from self._found(schema[key])
        if "properties" in schema and schema.get("additionalProperties") is not False:
            forms: dict[str, Schema] = {}
            for form in (one for part in schema.get("allOf", ()) for one in self._found(part)):
                kind = str(form["properties"].get("type", {}).get("enum"))
                forms.setdefault(kind, {"properties": {}})["properties"].update(form["properties"])
            for form in forms.values():
                form["properties"] = {**form["properties"], **_wider(schema, form)}
            yield from forms.values()

    def _target(self, schema: Schema) -> Schema:
        while "$ref" in schema:
            schema = self._root["$defs"][schema["$ref"].rpartition("/")[2]]
        return schema


def _is_camel(name: str, properties: Schema) -> bool:
    others = [other for other in properties if other != name and "_" in other and camel(other) == name]
    return any(properties[other].get("description") != f"The same as `{name}`." for other in others)


def _needed(schema: Schema) -> set[str]:
    found = set(schema.get("required", ()))
    for part in schema.get("allOf", ()):
        needed = [one["required"][0] for one in part.get("anyOf", ()) if "required" in one]
        names = {name for name in needed if name in schema["properties"]}
        if (
            len(needed) == len(part.get("anyOf", ()))
            and needed
            and all(
                schema["properties"][other].get("description") == f"The same as `{needed[0]}`."
                for other in names - {needed[0]}
            )
        ):
            found.add(needed[0])
    return found


def _wider(schema: Schema, form: Schema) -> Schema:
    """What the mapping around its forms says of their keys, but for the one that tells them apart."""
    told = {key: value for key, value in schema["properties"].items() if key in form["properties"]}
    return {key: value for key, value in told.items() if key not in ("type", "backend")}


def _bounded(word: str, schema: Schema) -> str:
    low, high = schema.get("minimum"), schema.get("maximum")
    if "exclusiveMinimum" in schema:
        return f"{word} above {schema['exclusiveMinimum']}"
    if low is not None and high is not None:
        return f"{word} from {low} to {high}"
    return f"{word} from {low} on" if low else word


def _spelled(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def page() -> str:
    """The page."""
    lines = [HEAD]
    for kind, schema in SCHEMAS.items():
        lines += Page(schema, TITLES[kind]).lines()
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    print(page(), end="")
