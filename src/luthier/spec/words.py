"""The words that faults are told in: what a value is, what was expected, what may have been meant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from luthier.text import near, one_line

if TYPE_CHECKING:
    from collections.abc import Iterable

_SHOWN = 60
WHOLE = "a whole number"


def kind(value: Any) -> str:
    """What a JSON-like value is, in plain words."""
    match value:
        case None:
            return "nothing"
        case bool():
            return str(value).lower()
        case int() | float():
            return "a number"
        case str():
            return "text"
        case dict():
            return "a mapping"
        case list() | tuple():
            return "a list"
        case _:
            return f"a Python {type(value).__name__}"


def quoted(text: str) -> str:
    """A word from a file as faults show it."""
    return f"`{one_line(text, _SHOWN)}`"


def listed(words: Iterable[str]) -> str:
    return ", ".join(words)


def meant(name: str, candidates: Iterable[str], *, otherwise: str = "") -> str:
    """`did you mean a or b?`, or what to say where nothing is near."""
    found = near(name, candidates)
    return f"did you mean {' or '.join(found)}?" if found else otherwise


def wrong_type(key: str, expected: str, value: Any) -> tuple[str, str]:
    """The message and the suggestion for a value of the wrong type."""
    what = str(value) if expected == WHOLE and isinstance(value, float) else kind(value)
    message = f"{quoted(key)} must be {expected}, not {what}"
    if isinstance(value, str) and ("${" in value or "{{" in value):
        return message, "an expression is not read here"
    if expected == "text" and isinstance(value, (bool, int, float)):
        return message, f'write "{str(value).lower() if isinstance(value, bool) else value}"'
    if isinstance(value, str) and _reads_as(value, expected):
        return message, f"write {value} without quotes"
    return message, ""


def _reads_as(text: str, expected: str) -> bool:
    if expected == "true or false":
        return text in ("true", "false")
    return "number" in expected and text.isascii() and text.isdigit()


def as_suggestion(hint: str) -> str:
    """A hint, which is a sentence, as the end of another one."""
    return hint[:1].lower() + hint[1:].removesuffix(".")
