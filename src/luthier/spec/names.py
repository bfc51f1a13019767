"""The names that expressions know besides the steps, and what a step may be called."""

from __future__ import annotations

import re

SCOPE = frozenset({"input", "state", "run", "env", "scoring", "__cache_hit"})
"""Roots that are always there; `env` holds what the project exposes."""

ITEM_NAMES = frozenset({"item", "index"})
ITERATION_NAMES = frozenset({"iteration", "lastIterationResults"})
BREAK_NAMES = frozenset({"lastBatchResults"})
CATCH_NAMES = frozenset({"error"})
REDUCE_NAMES = frozenset({"mapResults", "results"})

LOOP_NAMES = {
    **dict.fromkeys(ITEM_NAMES, "in the body of `foreach` and in `map`"),
    **dict.fromkeys(ITERATION_NAMES, "in `while`"),
    **dict.fromkeys(BREAK_NAMES, "in `breakWhen`"),
    **dict.fromkeys(CATCH_NAMES, "in `catch`"),
    **dict.fromkeys(REDUCE_NAMES, "in `reduce`"),
}
"""Roots that control steps bring, and where."""

_WORDS = frozenset(
    {"true", "false", "null", "undefined", "NaN", "Infinity", "typeof", "in", "instanceof", "new"}
)
_LIBRARY = frozenset({"Math", "JSON", "Date", "Object", "Array", "String", "Number", "Boolean"})
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:-[A-Za-z0-9_]+)*")
_LONGEST = 64


def name_fault(name: str) -> str:
    """Why a step cannot be called so; empty if it can."""
    if not _NAME.fullmatch(name):
        return "a name is letters, digits, _ and single hyphens between them, and begins with a letter"
    if len(name) > _LONGEST:
        return f"a name has at most {_LONGEST} characters"
    if name in SCOPE | LOOP_NAMES.keys() | _WORDS | _LIBRARY:
        return "this word means something else in expressions"
    return ""
