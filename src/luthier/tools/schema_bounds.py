"""What a schema may cost: its size before it is compiled, and its work on a value before it is asked.

A validator cannot be interrupted, and a few references can ask it for more steps than there are atoms
(`a: allOf [b, b]`, `b: allOf [c, c]`, …). So the steps are counted here first, with a budget.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from luthier.errors import SchemaError
from luthier.tools.schema_graph import judges, order
from luthier.tools.schema_patterns import patterns_in

if TYPE_CHECKING:
    from collections.abc import Callable

    from luthier.tools.schema_graph import Judge
    from luthier.tools.tool import JsonObject

MAX_DEPTH = 64
MAX_NODES = 50_000
MAX_CHARACTERS = 4 * 1024 * 1024
MAX_PATTERNS = 200
MAX_COMBINATIONS = 10_000
"""Subschemas that may judge one and the same value."""

LIGHT = 5_000
"""A schema without recursion that unfolds to no more than this needs no counting per value."""

MAX_STEPS = 50_000
MAX_MATCHED_TEXT = 100_000
MAX_VALUE_DEPTH = 200
"""Where the schema recurses the validator does too, on the machine's stack; deep values have killed it."""


def check_size(definition: Any) -> None:
    """Raises SchemaError when a definition is too deep or too large, or is not JSON."""
    level: list[Any] = [definition]
    nodes = characters = depth = 0
    while level:
        depth += 1
        nodes += len(level)
        if depth > MAX_DEPTH:
            raise SchemaError(f"The schema is nested deeper than {MAX_DEPTH} levels.")
        if nodes > MAX_NODES:
            raise SchemaError(f"The schema has more than {MAX_NODES} values in it.")
        below: list[Any] = []
        for value in level:
            characters += _characters(value)
            if isinstance(value, dict):
                below.extend(value.values())
            elif isinstance(value, list):
                below.extend(value)
        if characters > MAX_CHARACTERS:
            raise SchemaError(f"The schema is larger than {MAX_CHARACTERS} characters.")
        level = below


def _characters(value: Any) -> int:
    match value:
        case str():
            return len(value)
        case dict():
            if not all(isinstance(key, str) for key in value):
                raise SchemaError("The schema has a key that is not a string.")
            return sum(map(len, value))
        case None | bool() | int() | float() | list():
            return 0
        case _:
            raise SchemaError(
                f"The schema holds a value of type {type(value).__name__}, which JSON does not know."
            )


class Weight(NamedTuple):
    """How often a subschema meets a value, and how many characters are matched against patterns."""

    steps: int
    text: int


class Work:
    """How much one schema asks of a validator. Raises SchemaError when no value could be judged in time."""

    def __init__(self, definition: JsonObject) -> None:
        self._first = judges(definition)
        everyone, recursive = order([self._first], lambda judge: judge.below)
        by_value, endless = order(everyone, lambda judge: judge.same_value)
        if endless:
            raise SchemaError("The schema refers to itself for the same value, which would never end.")
        if max(_unfolded(by_value, lambda judge: judge.same_value).values()) > MAX_COMBINATIONS:
            raise SchemaError(f"The schema combines more than {MAX_COMBINATIONS} forms for one value.")
        patterns = max(sum(sum(judge.patterns) for judge in everyone), len(patterns_in(definition)))
        if patterns > MAX_PATTERNS:
            raise SchemaError(f"The schema has more than {MAX_PATTERNS} patterns.")
        size = _unfolded(everyone, lambda judge: judge.below)[self._first]
        self.light = not recursive and not patterns and size <= LIGHT

    def weigh(self, value: Any, max_steps: int = MAX_STEPS) -> Weight:
        """Count, no further than the budget. A value nested too deep exceeds any budget."""
        waiting: list[tuple[Judge, Any, int]] = [(self._first, value, 1)]
        steps = text = 0
        while waiting:
            judge, value, depth = waiting.pop()
            steps += 1
            if depth > MAX_VALUE_DEPTH or steps + len(waiting) > max_steps:
                return Weight(max_steps + 1, text)
            waiting += [(other, value, depth) for other in judge.same_value]
            if isinstance(value, str):
                text += judge.patterns.on_text * len(value)
            elif isinstance(value, dict):
                text += judge.patterns.on_keys and judge.patterns.on_keys * sum(map(len, value))
                waiting += [
                    (sub, value[key], depth + 1) for key, sub in judge.properties.items() if key in value
                ]
                waiting += [(sub, item, depth + 1) for sub in judge.every_property for item in value.values()]
                waiting += [(sub, key, depth + 1) for sub in judge.property_names for key in value]
            elif isinstance(value, list | tuple):
                pairs = zip(judge.items, value, strict=False)
                waiting += [(sub, item, depth + 1) for sub, item in pairs if sub]
                waiting += [(sub, item, depth + 1) for sub in judge.every_item for item in value]
        return Weight(steps, text)


def _unfolded(listed: list[Judge], below: Callable[[Judge], list[Judge]]) -> dict[Judge, int]:
    """The size of the tree that unfolds under each; those below come first, and a way back counts as one."""
    sizes: dict[Judge, int] = {}
    for judge in listed:
        sizes[judge] = 1 + sum(sizes.get(other, 1) for other in below(judge))
    return sizes
