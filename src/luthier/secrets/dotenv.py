"""Reads the lines of an `.env` file: `NAME=value`, quoted or not; nothing in them is expanded."""

from __future__ import annotations

import re

from luthier.errors import Fault, SpecError

_NAME = re.compile(r"(?:export\s+)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)")
_SINGLE = re.compile(r"'(?P<text>[^']*)'\s*(?:#.*)?")
_DOUBLE = re.compile(r'"(?P<text>(?:[^"\\]|\\.)*)"\s*(?:#.*)?')
_COMMENT = re.compile(r"(?:^|\s)#.*")
_ESCAPE = re.compile(r"\\(.)")
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t"}


def parse_env(text: str, *, file: str) -> dict[str, str]:
    """The names and values of an `.env` file; a later line wins. Raises SpecError with every faulty line."""
    names: dict[str, str] = {}
    faults: list[Fault] = []
    for number, line in enumerate(re.split(r"\r?\n", text.removeprefix("\ufeff")), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        before, equals, after = line.partition("=")
        name = _NAME.fullmatch(before.strip())
        if not (equals and name):
            faults.append(Fault("this line is not NAME=value", file, number, 1))
            continue
        value = _value(after.strip())
        if value is None:
            message = f"the quotes around the value of {name['name']} do not match"
            hint = "write \\n for a line break"
            faults.append(Fault(message, file, number, len(before) + 2, suggestion=hint))
        else:
            names[name["name"]] = value
    if faults:
        raise SpecError(faults)
    return names


def _value(written: str) -> str | None:
    if not written.startswith(("'", '"')):
        return _COMMENT.sub("", written).rstrip()
    if found := _SINGLE.fullmatch(written):
        return found["text"]
    if found := _DOUBLE.fullmatch(written):
        return _ESCAPE.sub(lambda match: _ESCAPED.get(match[1], match[1]), found["text"])
    return None
