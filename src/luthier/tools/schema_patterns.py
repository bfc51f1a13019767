"""Schemas without the patterns that the linear regex engine cannot run: loosened, never tightened.

Lookarounds and backreferences have no form that is matched in linear time, and a server's pattern is not
worth the risk of a backtracking engine: the server checks its own patterns anyway. Where accepting more
inside would refuse more outside (`not`, `if`, `oneOf`, a counted `contains`), the outside is loosened too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from luthier.tools.schema_graph import SUBSCHEMA_LISTS, SUBSCHEMA_MAPS, SUBSCHEMAS

if TYPE_CHECKING:
    from collections.abc import Callable

    from luthier.tools.tool import JsonObject

_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_TURNING = (
    "not",
    "if",
)  # accepting more inside may refuse more outside; without `if`, then and else say nothing
_COUNTED = ("contains", "minContains", "maxContains")
_LEFT_OVER = (
    "unevaluatedProperties",
    "unevaluatedItems",
)  # they refuse what a dropped keyword would have covered


def patterns_in(schema: JsonObject) -> list[str]:
    """Every pattern of a schema, as often as it stands there."""
    found: list[str] = []

    def look(node: JsonObject) -> None:
        if isinstance(pattern := node.get("pattern"), str):
            found.append(pattern)
        if isinstance(keyed := node.get("patternProperties"), dict):
            found.extend(keyed)

    _each(schema, look)
    return found


def without(schema: JsonObject, patterns: set[str]) -> JsonObject:
    """The schema without those patterns; whatever fits the schema fits the result."""
    return _Loosening(patterns).node(schema) if patterns else schema


class _Loosening:
    def __init__(self, patterns: set[str]) -> None:
        self._patterns = patterns

    def node(self, schema: JsonObject) -> JsonObject:
        loose = {key: self._under(key, value) for key, value in schema.items() if key not in _LEFT_OVER}
        if self._lost(schema):
            del loose["pattern"]
        for key in _TURNING:
            if key in loose and self._touches(schema[key]):
                del loose[key]
        if "oneOf" in loose and self._touches(schema["oneOf"]):
            loose["allOf"] = [*loose.get("allOf", ()), {"anyOf": loose.pop("oneOf")}]
        if "maxContains" in loose and self._touches(schema.get("contains")):
            for key in _COUNTED:
                loose.pop(key, None)
        return loose

    def _under(self, key: str, value: Any) -> Any:
        if isinstance(value, dict):
            if key in SUBSCHEMAS:
                return self.node(value)
            if key in SUBSCHEMA_MAPS:
                inner = {name: self._sub(sub) for name, sub in value.items()}
                return self._keyed(inner) if key == "patternProperties" else inner
        if isinstance(value, list) and key in SUBSCHEMA_LISTS:
            return [self._sub(sub) for sub in value]
        return value

    def _sub(self, sub: Any) -> Any:
        return self.node(sub) if isinstance(sub, dict) else sub

    def _keyed(self, keyed: JsonObject) -> JsonObject:
        kept = {pattern: sub for pattern, sub in keyed.items() if pattern not in self._patterns}
        # Nobody knows which properties the lost pattern covered, so `additionalProperties` may judge none.
        return kept if len(kept) == len(keyed) else {**kept, "": True}

    def _lost(self, node: JsonObject) -> bool:
        pattern = node.get("pattern")
        return isinstance(pattern, str) and pattern in self._patterns

    def _touches(self, value: Any) -> bool:
        """Whether a subschema is loosened, or may be through a reference."""
        if isinstance(value, list):
            return any(map(self._touches, value))
        if not isinstance(value, dict):
            return False
        if self._lost(value) or any(key in value for key in (*_REFERENCES, *_LEFT_OVER)):
            return True
        keyed = value.get("patternProperties")
        if isinstance(keyed, dict) and not self._patterns.isdisjoint(keyed):
            return True
        return any(map(self._touches, value.values()))


def _each(value: Any, look: Callable[[JsonObject], None]) -> None:
    if not isinstance(value, dict):
        return
    look(value)
    for key, inner in value.items():
        if key in SUBSCHEMA_MAPS and isinstance(inner, dict):
            for sub in inner.values():
                _each(sub, look)
        elif key in SUBSCHEMA_LISTS and isinstance(inner, list):
            for sub in inner:
                _each(sub, look)
        elif key in SUBSCHEMAS:
            _each(inner, look)
