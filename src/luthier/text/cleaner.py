"""The cleaner of definitions: what a server says of a tool, as people and models may see it.

Texts lose what hides in them. What must be sent back to the server exactly as it is (a name, a value of an
enum, a pattern) cannot be changed without meaning something else: a value with hidden characters is left
out of what is shown, a name with them costs the tool. Nothing else is touched, and results never are. Pins
are over the definition as it was sent; docs/definitions.md lists the rules.
"""

from __future__ import annotations

from typing import Any

import msgspec

from luthier.text.escaping import one_line
from luthier.text.hidden import BLANKS, LONGEST, hidden, shown_text
from luthier.text.names import disguised

MAX_DEPTH = 100
"""Levels of a definition."""

LONGEST_NAME = 128
"""Characters of the name of a tool."""

_TEXTS = frozenset({"title", "description", "$comment"})
_SHOWN = ("title", "description", "inputSchema", "outputSchema", "annotations")  # of a definition, to anyone
_PADDING = b" " * (BLANKS + 1)
_LEFT_OUT = object()


class Finding(msgspec.Struct, frozen=True):
    """What a rule found: where, as a JSON Pointer into the definition, and in words."""

    rule: str
    path: str
    note: str


class Cleaned(msgspec.Struct, frozen=True):
    """A definition as it may be shown, what was changed, and why the tool cannot be used, if it cannot."""

    definition: dict[str, Any]
    findings: tuple[Finding, ...] = ()
    fault: str = ""


_Path = tuple[Any, str | int]  # what it is in, and its key there: spelled only where something is found


class _Fault(Exception):
    """The tool cannot be used."""


def is_clean(text: bytes) -> bool:
    """Whether it is plain from the JSON text of a definition that nothing in it needs cleaning.

    Most definitions are short plain ASCII without an escape, and this is all that they cost.
    """
    return (
        len(text) <= LONGEST
        and text.isascii()
        and b"\\" not in text
        and b"\x7f" not in text
        and _PADDING not in text
        and text.count(b"{") + text.count(b"[") <= MAX_DEPTH
    )


def name_fault(name: str) -> str:
    """Why a tool may not have that name; empty where it may."""
    if len(name) > LONGEST_NAME:
        return f"its name is longer than {LONGEST_NAME} characters"
    if name.isascii() and name.isprintable():
        return ""
    if hidden(name) or not name.isprintable():
        return "its name has hidden characters"
    if word := disguised(name, whole=True):
        return f"{one_line(word, 40)!r} in its name only looks like Latin letters"
    return ""


def clean(definition: dict[str, Any]) -> Cleaned:
    """The definition with its texts cleaned. It is the same object where nothing had to be changed."""
    findings: list[Finding] = []
    fault = name_fault(str(definition.get("name", "")))
    changed: dict[str, Any] = {}
    try:
        for key in _SHOWN:
            if key in definition:
                value = _member(key, definition[key], (None, key), findings, 1)
                if value is not definition[key]:
                    changed[key] = value
    except _Fault as error:
        fault = fault or str(error)
    if not changed:
        return Cleaned(definition, tuple(findings), fault)
    kept = {key: value for key, value in changed.items() if value is not _LEFT_OUT}
    rest = {key: value for key, value in definition.items() if key not in changed}
    return Cleaned(rest | kept, tuple(findings), fault)


def _member(key: str, value: Any, path: _Path, findings: list[Finding], depth: int) -> Any:
    if type(value) is not str:
        return _value(value, path, findings, depth)
    if key not in _TEXTS:
        return _exact(value, path, findings)
    text, rules = shown_text(value)
    findings.extend(Finding(rule, _pointer(path), f"changed: {one_line(value, 80)}") for rule in rules)
    return value if text == value else text


def _value(value: Any, path: _Path, findings: list[Finding], depth: int) -> Any:
    kind = type(value)
    if kind is dict:
        return _object(value, path, findings, depth)
    if kind is list:
        return _list(value, path, findings, depth)
    return _exact(value, path, findings) if kind is str else value


def _exact(value: str, path: _Path, findings: list[Finding]) -> Any:
    if (value.isascii() and value.isprintable()) or not hidden(value):
        return value
    findings.append(Finding("value", _pointer(path), f"not shown: {one_line(value, 80)}"))
    return _LEFT_OUT


def _object(value: dict[str, Any], path: _Path, findings: list[Finding], depth: int) -> dict[str, Any]:
    _bound(depth)
    new: dict[str, Any] = {}
    same = True
    for key, item in value.items():
        if not (key.isascii() and key.isprintable()) and hidden(key):
            raise _Fault(f"the name {one_line(key, 80)!r} in it has hidden characters")
        got = _member(key, item, (path, key), findings, depth + 1)
        same = same and got is item
        if got is not _LEFT_OUT:
            new[key] = got
    return value if same else new


def _list(value: list[Any], path: _Path, findings: list[Finding], depth: int) -> list[Any]:
    _bound(depth)
    new = [_value(item, (path, at), findings, depth + 1) for at, item in enumerate(value)]
    if all(got is item for got, item in zip(new, value, strict=True)):
        return value
    return [item for item in new if item is not _LEFT_OUT]


def _bound(depth: int) -> None:
    if depth > MAX_DEPTH:
        raise _Fault(f"its definition is nested deeper than {MAX_DEPTH} levels")


def _pointer(path: _Path | None) -> str:
    keys: list[str] = []
    while path is not None:
        path, key = path
        keys.append(str(key).replace("~", "~0").replace("/", "~1"))
    return "".join(f"/{key}" for key in reversed(keys))
