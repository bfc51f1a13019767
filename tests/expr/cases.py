"""Reads the case files of the language and plays one case."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from luthier.expr import Limits, Scope, compile_condition, compile_value, parse
from luthier.taint import Labelled
from luthier.tools import Envelope, delivered

CASES = Path(__file__).parent.parent / "cases" / "expr"
START = 1_900_000_000.25
"""The recorded start of every case's run, in Unix seconds: 2030-03-17T17:46:40.250Z."""


@cache
def read(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = YAML(typ="safe", pure=True).load(CASES / name)
    return loaded


def names() -> list[str]:
    return sorted(path.name for path in CASES.glob("*.yaml"))


def scope_of(values: dict[str, Any], **given: Any) -> Scope:
    """A scope of values; `{envelope: CONTENT}` under a name stands for a tool step with that content."""
    labelled = {name: Labelled(_step(value)) for name, value in values.items()}
    return Scope(labelled, now=START, limits=Limits(**given))


def _step(value: Any) -> Any:
    if not isinstance(value, dict) or set(value) != {"envelope"}:
        return value
    fields = {"tool": "t", "server": "s", "content": value["envelope"], "duration": 12.5, "isError": False}
    return {"output": Envelope(fields), "success": True, "failed": False}


def give(case: dict[str, Any], scope: dict[str, Any]) -> Any:
    """What the case's expression, condition or value gives."""
    place = scope_of(scope | case.get("scope", {}))
    if "expr" in case:
        return parse(case["expr"]).evaluate(place).value
    if "condition" in case:
        return compile_condition(case["condition"]).evaluate(place).value
    return compile_value(case["value"]).evaluate(place).value


def same(given: Any, expected: Any) -> bool:
    """Equal as JSON: 1 is not true, the order of names counts, whole numbers up to 2**53 are ints."""
    return json.dumps(_normal(delivered(given), exact=True)) == json.dumps(_normal(expected, exact=False))


def _normal(value: Any, *, exact: bool) -> Any:
    if isinstance(value, dict):
        return {key: _normal(item, exact=exact) for key, item in value.items()}
    if isinstance(value, list):
        return [_normal(item, exact=exact) for item in value]
    if isinstance(value, int) and abs(value) > 2**53:
        return float(value)
    whole = isinstance(value, float) and value.is_integer() and abs(value) < 2**53
    return int(value) if whole and not exact else value
