"""The written order as schemas for editors: places of steps, and every control step in each of its forms."""

from __future__ import annotations

from luthier.spec.control_steps import KINDS, MOST_AT_ONCE, MOST_ITERATIONS, READERS, WAITS
from luthier.spec.flow import LISTED
from luthier.spec.schema.steps import COMMON, NAME, UNUSED_KEYS
from luthier.spec.schema.terms import (
    ANY,
    CONDITION,
    EXPRESSION,
    FILLED,
    Key,
    Schema,
    choice,
    either,
    items_of,
    key,
    lone,
    mapping,
    needs,
    ref,
    says,
    when,
    whole,
)

_ID = key("id", "name", holds=NAME, says="What expressions call it; else its kind and its place.")
_STEPS = ref("flow_items")
_ITEMS = key(
    "items",
    holds=either(items_of(ANY), EXPRESSION),
    says="The list, or an expression that gives one.",
    needed=True,
)
_AT_ONCE = key("max_concurrency", holds=whole(1, MOST_AT_ONCE), says="Items in work at once; 100 without it.")
_BODY = key("steps", holds=_STEPS, says="What runs.", needed=True)
_CONDITION = key("condition", holds=CONDITION, says="What it goes by.", needed=True)
_CATCH = key("catch", holds=_STEPS, says="What runs when `steps` failed.")
_FINALLY = key("finally", holds=_STEPS, says="What runs in any case.")
_ONE = key("step", holds=ref("flow_item"), says="What runs for each item; its output is the item's.")
_MANY = key("steps", holds=_STEPS, says="What runs for each item; the list of outputs is the item's.")

_KEYS: dict[str, tuple[Key, ...]] = {
    "parallel": (
        _BODY,
        key("wait_for", holds=choice(WAITS), says="Which of them are waited for; all without it."),
    ),
    "branch": (
        _CONDITION,
        key("then", holds=_STEPS, says="What runs if it holds.", needed=True),
        key("else", holds=_STEPS, says="What runs if not."),
    ),
    "foreach": (
        _ITEMS,
        _AT_ONCE,
        key("break_when", holds=CONDITION, says="Read after each batch: whether that was the last."),
        _ONE,
        _MANY,
    ),
    "try": (_BODY, _CATCH, _FINALLY),
    "switch": (
        key("value", holds={"not": {"type": "null"}}, says="What decides.", needed=True),
        key(
            "cases",
            holds={"type": "object", "minProperties": 1, "additionalProperties": _STEPS},
            says="What runs, by the text of the value.",
            needed=True,
        ),
        key("default", holds=_STEPS, says="What runs where there is no such case."),
    ),
    "while": (
        _CONDITION,
        key("max_iterations", holds=whole(1, MOST_ITERATIONS), says="1000 without it; more is a failure."),
        _BODY,
    ),
    "map-reduce": (
        _ITEMS,
        _AT_ONCE,
        key("map", holds=ref("flow_item"), says="What runs for each item.", needed=True),
        key("reduce", holds=ref("flow_item"), says="What runs for all that came of them.", needed=True),
    ),
}
_FURTHER: dict[str, list[Schema]] = {"foreach": [lone(_ONE, _MANY)], "try": [needs(_CATCH, _FINALLY)]}


def _forms() -> dict[str, Schema]:
    """A schema for each way to write a control step, by the key or the type that tells it."""
    forms: dict[str, Schema] = {}
    for kind in READERS:
        keys, further = _KEYS[kind], _FURTHER.get(kind, [])
        forms[kind] = mapping(_ID, *keys, also=further)
        forms[f"{kind}_typed"] = mapping(key("type", needed=True), _ID, *keys, also=further)
        if kind in LISTED:
            rest = [one for one in keys if one is not _BODY]
            forms[f"{kind}_listed"] = mapping(key(kind, holds=_STEPS, needed=True), _ID, *rest, also=further)
    return forms


def _item() -> Schema:
    """A step's name, a place with `agent`, or a control step: told apart by the keys that are there."""
    chosen: Schema = ref("flow_place")
    for kind in READERS:
        spelled = [word for word, meaning in KINDS.items() if meaning == kind]
        chosen = when(says("type", *spelled), ref(f"{kind}_typed"), chosen)
    for word, kind in reversed(KINDS.items()):
        inside = mapping(key(word, holds=ref(kind), needed=True))
        if kind in LISTED:
            there: Schema = {"properties": {word: {"type": "array"}}}
            inside = when(there, ref(f"{kind}_listed"), inside)
        chosen = when({"required": [word]}, inside, chosen)
    return {"type": ["string", "object"], **when({"type": "object"}, chosen)}


_PLACE = mapping(
    key("agent", holds=FILLED, says="The step that runs here.", needed=True),
    _ID,
    key("type", holds=choice(("agent", "step"))),
    *COMMON,
    *UNUSED_KEYS,
)

DEFINITIONS: dict[str, Schema] = {
    "flow_items": items_of(ref("flow_item"), 1),
    "flow_item": _item(),
    "flow_place": _PLACE,
    **_forms(),
}
