"""What a plain scalar means, by the core schema of YAML 1.2; only what JSON has is read."""

from __future__ import annotations

import math
import re

CORE = "tag:yaml.org,2002:"

_MAX_DIGITS = 300
_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_NUMBER = re.compile(
    r"(?P<int>[-+]?[0-9]+)"
    r"|0o(?P<octal>[0-7]+)"
    r"|0x(?P<hex>[0-9a-fA-F]+)"
    r"|(?P<float>[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?)"
    r"|(?P<other>[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))"
)


def resolve(text: str) -> str | float | bool | None:
    """The value of a plain scalar. Raises ValueError for infinities, NaN and numbers beyond all measure."""
    if text in _WORDS:
        return _WORDS[text]
    found = _NUMBER.fullmatch(text)
    if found is None:
        return text
    if len(text) > _MAX_DIGITS:
        raise ValueError(f"a number cannot have more than {_MAX_DIGITS} digits")
    if found["other"]:
        raise ValueError(f"{text} is not a number that JSON has")
    if found["int"]:
        return int(text)
    if found["octal"] or found["hex"]:
        return int(text, 0)
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is larger than any number here")
    return number


def tag_of(value: str | float | bool | None) -> str:  # noqa: FBT001  (a value of any JSON type)
    """The core tag of a scalar's value."""
    names = {type(None): "null", bool: "bool", int: "int", float: "float", str: "str"}
    return CORE + names[type(value)]
