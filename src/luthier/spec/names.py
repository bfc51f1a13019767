"""The names that expressions know besides the steps, and what a step may be called."""

from __future__ import annotations

import re

SCOPE = frozenset({"input", "state", "run", "env"})
"""Roots that are always there; `env` holds what the project exposes."""

LOOP_NAMES = frozenset({"item", "index", "iteration", "error", "mapResults", "results"})
"""Roots that control steps of later versions bring."""

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
    if name in SCOPE | LOOP_NAMES | _WORDS | _LIBRARY:
        return "this word means something else in expressions"
    return ""
