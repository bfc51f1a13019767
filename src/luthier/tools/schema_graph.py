"""A JSON Schema seen as a graph: which subschemas judge the same value, and which judge its members.

References are followed inside the document only. What is followed here may be more than a validator would
follow, never less: the graph is there to bound work.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote, urldefrag, urljoin

from luthier.tools.pointers import follow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from luthier.tools.tool import JsonObject

SAME_VALUE = ("not", "if", "then", "else")
SAME_VALUE_LISTS = ("allOf", "anyOf", "oneOf")
SAME_VALUE_MAPS = ("dependentSchemas", "dependencies")
EVERY_PROPERTY = ("additionalProperties", "unevaluatedProperties")
EVERY_ITEM = ("items", "additionalItems", "unevaluatedItems", "contains")
DEFINITIONS = ("$defs", "definitions")

_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")

SUBSCHEMAS = (*SAME_VALUE, *EVERY_PROPERTY, *EVERY_ITEM, "propertyNames", "contentSchema")
SUBSCHEMA_LISTS = (*SAME_VALUE_LISTS, "prefixItems", "items")
SUBSCHEMA_MAPS = (*SAME_VALUE_MAPS, *DEFINITIONS, "properties", "patternProperties")


class Judge:
    """One subschema: who else judges the same value, and who judges its members."""

    __slots__ = (
        "every_item",
        "every_property",
        "items",
        "patterns",
        "properties",
        "property_names",
        "same_value",
    )

    def __init__(self) -> None:
        self.same_value: list[Judge] = []
        self.properties: dict[str, Judge] = {}
        self.every_property: list[Judge] = []
        self.property_names: list[Judge] = []
        self.items: list[Judge | None] = []
        self.every_item: list[Judge] = []
        self.patterns = Patterns(0, 0)

    @property
    def below(self) -> list[Judge]:
        """All who judge this value or a member of it."""
        named, listed = self.properties.values(), filter(None, self.items)
        return [
            *self.same_value,
            *named,
            *self.every_property,
            *self.property_names,
            *listed,
            *self.every_item,
        ]


class Patterns(NamedTuple):
    """How many patterns a subschema matches against a string, and against each key of an object."""

    on_text: int
    on_keys: int


def judges(root: JsonObject) -> Judge:
    """The judge of a whole document, with all others that can be reached from it."""
    # Draft 4 writes `id` where later drafts write `$id`; both readings are followed.
    readings = (_Identifiers(root, ("$id",)), _Identifiers(root, ("$id", "id")))
    known: dict[int, Judge] = {}
    waiting: list[JsonObject] = []

    def judge(node: JsonObject) -> Judge:
        if id(node) not in known:
            known[id(node)] = Judge()
            waiting.append(node)
        return known[id(node)]

    first = judge(root)
    while waiting:
        node = waiting.pop()
        targets = [target for key in _REFERENCES for target in _targets(node.get(key), node, root, readings)]
        it = known[id(node)]
        it.same_value = [judge(sub) for sub in (*_same_value(node), *targets)]
        it.properties = {
            key: judge(sub) for key, sub in _mapping(node, "properties").items() if isinstance(sub, dict)
        }
        it.every_property = [
            judge(sub) for sub in (*_in_maps(node, ("patternProperties",)), *_at(node, EVERY_PROPERTY))
        ]
        it.property_names = [judge(sub) for sub in _at(node, ("propertyNames",))]
        it.items = [judge(sub) if isinstance(sub, dict) else None for sub in _prefix(node)]
        it.every_item = [judge(sub) for sub in _at(node, EVERY_ITEM)]
        it.patterns = Patterns(int("pattern" in node), len(_mapping(node, "patternProperties")))
    return first


def order(roots: Iterable[Judge], below: Callable[[Judge], list[Judge]]) -> tuple[list[Judge], bool]:
    """All that can be reached, those below first, and whether there is a way back from below."""
    done: set[Judge] = set()
    open_: set[Judge] = set()
    listed: list[Judge] = []
    cyclic = False
    for root in roots:
        path = [] if root in done else [(root, iter(below(root)))]
        while path:
            judge, rest = path[-1]
            open_.add(judge)
            following = next((other for other in rest if other not in done), None)
            if following is None:
                path.pop()
                open_.discard(judge)
                done.add(judge)
                listed.append(judge)
            elif following in open_:
                cyclic = True
            else:
                path.append((following, iter(below(following))))
    return listed, cyclic


def _targets(
    reference: Any, node: JsonObject, root: JsonObject, readings: tuple[_Identifiers, ...]
) -> list[JsonObject]:
    if not isinstance(reference, str):
        return []
    found = [target for reading in readings for target in reading.targets(node, reference)]
    if reference.startswith("#"):
        found.append(follow(root, unquote(reference[1:])))
    return list({id(target): target for target in found if isinstance(target, dict)}.values())


class _Identifiers:
    """What the identifiers of a document name, read by the given keywords."""

    def __init__(self, root: JsonObject, keywords: tuple[str, ...]) -> None:
        self._bases: dict[int, str] = {}
        self._resources: dict[str, JsonObject] = {"": root}
        self._anchors: dict[str, list[JsonObject]] = {}
        waiting: list[tuple[Any, str]] = [(root, "")]
        while waiting:
            value, base = waiting.pop()
            if isinstance(value, list):
                waiting.extend((item, base) for item in value)
            elif isinstance(value, dict):
                base = self._named(value, base, keywords)
                self._bases[id(value)] = base
                waiting.extend((item, base) for item in value.values())

    def _named(self, node: JsonObject, base: str, keywords: tuple[str, ...]) -> str:
        for keyword in keywords:
            if isinstance(name := node.get(keyword), str):
                if name.startswith("#"):
                    self._anchors.setdefault(name[1:], []).append(node)
                else:
                    base = urldefrag(_joined(base, name))[0]
                    self._resources.setdefault(base, node)
        for keyword in ("$anchor", "$dynamicAnchor"):
            if isinstance(name := node.get(keyword), str):
                self._anchors.setdefault(name, []).append(node)
        return base

    def targets(self, node: JsonObject, reference: str) -> list[Any]:
        resource, fragment = urldefrag(_joined(self._bases.get(id(node), ""), reference))
        return [*self._anchors.get(fragment, []), follow(self._resources.get(resource), unquote(fragment))]


def _joined(base: str, reference: str) -> str:
    # urljoin knows only hierarchical schemes; a fragment belongs to whatever the base is.
    return urldefrag(base)[0] + reference if reference.startswith("#") else urljoin(base, reference)


def _same_value(node: JsonObject) -> list[JsonObject]:
    return [*_at(node, SAME_VALUE), *_in_lists(node, SAME_VALUE_LISTS), *_in_maps(node, SAME_VALUE_MAPS)]


def _prefix(node: JsonObject) -> list[Any]:
    listed = node.get("prefixItems", node.get("items"))
    return listed if isinstance(listed, list) else []


def _at(node: JsonObject, keys: tuple[str, ...]) -> list[JsonObject]:
    return [sub for key in keys if isinstance(sub := node.get(key), dict)]


def _in_lists(node: JsonObject, keys: tuple[str, ...]) -> list[JsonObject]:
    lists = [subs for key in keys if isinstance(subs := node.get(key), list)]
    return [sub for subs in lists for sub in subs if isinstance(sub, dict)]


def _in_maps(node: JsonObject, keys: tuple[str, ...]) -> list[JsonObject]:
    return [sub for key in keys for sub in _mapping(node, key).values() if isinstance(sub, dict)]


def _mapping(node: JsonObject, key: str) -> JsonObject:
    found = node.get(key)
    return found if isinstance(found, dict) else {}
