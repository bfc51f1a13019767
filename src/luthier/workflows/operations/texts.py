"""JSON values as text, spelled as expressions spell them."""

from __future__ import annotations

import json
from typing import Any

from luthier.expr.numbers import number_text


def a_kind(value: Any) -> str:
    """What a value is, in the words of the files: `a list`, `text`, `true or false`."""
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case str():
            return "text"
        case int() | float():
            return "a number"
        case list():
            return "a list"
        case _:
            return "a mapping"


def json_text(value: Any) -> str:
    """Compact JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def spelled(value: Any) -> str:
    """Text as it is, numbers without a needless `.0`, the rest as JSON."""
    match value:
        case str():
            return value
        case bool() | None:
            return json_text(value)
        case int() | float():
            return number_text(value)
        case _:
            return json_text(value)
