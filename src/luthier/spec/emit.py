"""JSON-like values as YAML text: in blocks, or in one line as flow."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

from luthier.spec.scalars import resolve

if TYPE_CHECKING:
    from collections.abc import Iterator

STEP = 2
_WIDTH = 100
_PLAIN = re.compile(r"(?:\.{0,2}[A-Za-z_/]|--?[A-Za-z])[\w/.@+-]*(?::[\w/.@+-]+)*", re.ASCII)
_SWITCHES = ("yes", "no", "on", "off", "y", "n", "true", "false", "null")  # what readers of YAML 1.1 change
_PRINTABLE = re.compile("[ -~\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
_SHORT = {"\n": "\\n", "\t": "\\t", "\r": "\\r", '"': '\\"', "\\": "\\\\"}


def flow(value: Any, *, quoted: bool = False) -> str:
    """The value in one line. `quoted`: every text in quotes, as JSON wants it."""
    match value:
        case str():
            return scalar(value, quoted=quoted)
        case dict():
            items = (
                f"{scalar(key, quoted=quoted)}: {flow(item, quoted=quoted)}" for key, item in value.items()
            )
            return "{" + ", ".join(items) + "}"
        case list():
            return "[" + ", ".join(flow(item, quoted=quoted) for item in value) + "]"
        case _:
            return msgspec.json.encode(value).decode()


def member(key: str, value: Any, indent: int) -> list[str]:
    """The lines of a key and its value in a block mapping; the first without its indentation."""
    head = f"{scalar(key)}:"
    short = f"{head} {flow(value)}"
    if not isinstance(value, dict | list) or not value:
        return [short]
    if isinstance(value, list):
        if not any(isinstance(item, dict | list) for item in value) and indent + len(short) <= _WIDTH:
            return [short]
        inner = indent + STEP
        return [head, *(line for item in value for line in _indented(element(item, inner), inner))]
    return [head, *members(value, indent + STEP)]


def members(value: dict[str, Any], indent: int) -> list[str]:
    """The lines of a block mapping."""
    return [line for key, item in value.items() for line in _indented(member(key, item, indent), indent)]


def element(value: Any, indent: int) -> list[str]:
    """The lines of an item of a block list; the first without its indentation."""
    if not isinstance(value, dict) or not value:
        return [f"- {flow(value)}"]
    first, *rest = members(value, indent + STEP)
    return [f"- {first.strip()}", *rest]


def scalar(text: str, *, quoted: bool = False) -> str:
    """A text, plain where every reader takes it for the same text."""
    if not quoted and _PLAIN.fullmatch(text) and text.lower() not in _SWITCHES and not _is_other(text):
        return text
    return '"' + "".join(map(_escaped, text)) + '"'


def _is_other(text: str) -> bool:
    try:
        return resolve(text) != text
    except ValueError:
        return True


def _escaped(character: str) -> str:
    if character in _SHORT:
        return _SHORT[character]
    if _PRINTABLE.fullmatch(character):
        return character
    return f"\\U{ord(character):08x}"


def _indented(lines: list[str], indent: int) -> Iterator[str]:
    """The first line indented; the others are already."""
    yield " " * indent + lines[0]
    yield from lines[1:]
