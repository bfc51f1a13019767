"""JSON that people and programs hand in, read in one way: a name that stands twice in an object is a fault.

Readers of JSON disagree about which of the two holds (RFC 8259, 4), so what was looked at in one place and
done in another would not be the same. What servers answer is data and is read by `wire/`, which takes the
last.
"""

from __future__ import annotations

import json
import re
from typing import Any, TypeVar, overload

import msgspec

from luthier.text import one_line

T = TypeVar("T")

LOOKED_THROUGH = 256 * 1024
"""Characters in which the place of a name is looked for; finding out that there is one takes all of them."""

_SHOWN = 60
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)(?=(?P<key>[ \t\r\n]*:)?)|[{}\[\]]')


class RepeatedNameError(msgspec.DecodeError):
    """A name that stands twice. `line` and `column` count from 1; 0 where the place is too far in.

    `fact` is what it says, without the place.
    """

    def __init__(self, name: str, line: int = 0, column: int = 0) -> None:
        at = f" in line {line}, column {column}" if line else ""
        self.fact = f"the key `{one_line(name, _SHOWN)}` stands a second time"
        super().__init__(f"{self.fact}{at}")
        self.name = name
        self.line = line
        self.column = column


@overload
def given_json(text: str | bytes) -> Any: ...
@overload
def given_json(text: str | bytes, type: type[T]) -> T: ...
def given_json(text: str | bytes, type: Any = Any) -> Any:
    """The value of a JSON text, by a type. Raises DecodeError, and RecursionError where it is too deep."""
    try:
        value = msgspec.json.decode(text, type=type)
        written = text if isinstance(text, str) else text.decode()
    except (UnicodeDecodeError, UnicodeEncodeError) as error:
        raise msgspec.DecodeError(f"this is not UTF-8 text: {error.reason}") from None
    try:
        _objects.decode(written)
    except RepeatedNameError as error:
        raise _placed(written) or error from None
    except ValueError as error:
        raise msgspec.DecodeError(str(error)) from None
    return value


def _counted(members: list[tuple[str, Any]]) -> None:
    if len(members) != len(dict(members)):
        seen: set[str] = set()
        for name, _ in members:
            if name in seen:
                raise RepeatedNameError(name)
            seen.add(name)


_objects = json.JSONDecoder(object_pairs_hook=_counted, parse_int=str, parse_float=str)


def _placed(text: str) -> RepeatedNameError | None:
    """The same with its place, in a text that is JSON."""
    open_: list[set[str]] = []
    for found in _TOKEN.finditer(text, 0, LOOKED_THROUGH):
        match found[0][0]:
            case "{" | "[":
                open_.append(set())
            case "}" | "]":
                open_.pop()
            case _ if found["key"] is not None:
                name = json.loads(found[0])
                if name in open_[-1]:
                    line = text.count("\n", 0, found.start()) + 1
                    return RepeatedNameError(name, line, found.start() - text.rfind("\n", 0, found.start()))
                open_[-1].add(name)
    return None
