"""Composes JSON-like data and its nodes out of YAML's events, everything bounded, every fault at its place.

Of YAML it keeps what JSON values need: the core schema, anchors, aliases and merge keys. It refuses several
documents in one file, a key that stands twice or is not text, and a number that JSON lacks.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from ruamel.yaml import YAML
from ruamel.yaml import events as ev
from ruamel.yaml.error import YAMLError
from ruamel.yaml.reader import ReaderError

from luthier.errors import Fault, SpecError
from luthier.spec.document import Document, Node, Text
from luthier.spec.scalars import CORE, resolve, tag_of
from luthier.spec.scanner import ExpressionScanner
from luthier.spec.syntax import explain
from luthier.spec.words import quoted
from luthier.text import escape

if TYPE_CHECKING:
    from collections.abc import Iterator

_SURROGATE = re.compile("[\ud800-\udfff]")

MAX_DEPTH = 64
MAX_VALUES = 100_000
"""Counted with aliases followed, so that a few nested ones cannot stand for billions."""


class Composer:
    """Builds data and nodes out of the parser's events, and gathers faults that do not end the reading."""

    def __init__(self, file: str, text: str) -> None:
        self._file = file
        self._text = Text(text)
        self._faults: list[Fault] = []
        self._anchors: dict[str, tuple[Any, Node] | None] = {}  # None: still being read
        self._values = 0

    def document(self) -> Document:
        try:
            data, root = self._compose()
        except ReaderError as error:
            line, column = self._text.at(error.position)
            shown = escape(chr(error.character))
            fault = Fault(f"the character {shown} is not allowed in YAML", self._file, line, column)
            raise SpecError([fault]) from error
        except YAMLError as error:
            raise SpecError([*self._faults, explain(error, self._file, self._text)]) from error
        if self._faults:
            raise SpecError(self._faults)
        return Document(self._file, data, self._text, root)

    def _compose(self) -> tuple[Any, Node]:
        yaml = YAML(typ="safe", pure=True)
        yaml.Scanner = ExpressionScanner
        events = yaml.parse(self._text.text)
        result: tuple[Any, Node] | None = None
        for event in events:
            if isinstance(event, ev.DocumentStartEvent):
                if event.version and tuple(event.version) != (1, 2):
                    line, column = self._text.at(self._text.text.rfind("%YAML", 0, event.end_mark.index))
                    fault = Fault(
                        "only YAML 1.2 is read", self._file, line, column, suggestion="remove this line"
                    )
                    raise SpecError([fault])
                if result is not None:
                    raise self._fatal(
                        "a second document begins here", event, "put each document into a file of its own"
                    )
                result = self._value(next(events), events, 0)
        if result is None or result[0] is None:
            raise SpecError([*self._faults, Fault("the file is empty", self._file, 1, 1)])
        return result

    def _value(self, event: Any, events: Iterator[Any], depth: int) -> tuple[Any, Node]:
        self._values += 1
        if self._values > MAX_VALUES:
            raise self._fatal(f"the file holds more than {MAX_VALUES} values", event)
        if isinstance(event, ev.AliasEvent):
            return self._alias(event, depth)
        if depth > MAX_DEPTH:
            raise self._fatal(f"this is nested more than {MAX_DEPTH} levels deep", event)
        if event.anchor:
            self._anchors[event.anchor] = None
        value: tuple[Any, Node]
        match event:
            case ev.MappingStartEvent():
                value = self._mapping(event, events, depth)
            case ev.SequenceStartEvent():
                value = self._sequence(event, events, depth)
            case _:
                value = self._scalar(event)
        if event.anchor:
            self._anchors[event.anchor] = value
        return value

    def _alias(self, event: Any, depth: int) -> tuple[Any, Node]:
        if event.anchor not in self._anchors:
            raise self._fatal(f"there is no anchor &{event.anchor} before this alias", event)
        found = self._anchors[event.anchor]
        if found is None:
            raise self._fatal(f"*{event.anchor} stands inside the value that it names", event)
        self._values += found[1].size - 1
        if self._values > MAX_VALUES or depth + found[1].height > MAX_DEPTH:
            raise self._fatal(f"*{event.anchor} makes the file too large or too deep", event)
        return found

    def _sequence(self, start: Any, events: Iterator[Any], depth: int) -> tuple[list[Any], Node]:
        self._check_tag(start, "seq")
        node = self._node(start)
        data: list[Any] = []
        while not isinstance(event := next(events), ev.SequenceEndEvent):
            value, item = self._value(event, events, depth + 1)
            node.add(len(data), item)
            data.append(value)
        node.end = event.end_mark.index
        return data, node

    def _mapping(self, start: Any, events: Iterator[Any], depth: int) -> tuple[dict[str, Any], Node]:
        self._check_tag(start, "map")
        node = self._node(start)
        data: dict[str, Any] = {}
        merged: list[tuple[Any, Node]] = []
        while not isinstance(event := next(events), ev.MappingEndEvent):
            is_merge = isinstance(event, ev.ScalarEvent) and event.value == "<<" and not event.style
            key = self._key(event, events, depth)
            value, item = self._value(next(events), events, depth + 1)
            if is_merge:
                merged += self._merged(value, item)
            elif key in data:
                first, _ = self._text.at(node.items[key].key_start)
                self._faults.append(
                    self._fault(
                        f"the key {quoted(key)} stands here a second time", event, f"first in line {first}"
                    )
                )
            elif key is not None:
                data[key] = value
                node.add(key, item.moved(event.start_mark.index))
        for value, item in merged:
            for key in value:
                if key not in data:
                    data[key] = value[key]
                    node.add(key, item.items[key])
        node.end = event.end_mark.index
        return data, node

    def _key(self, event: Any, events: Iterator[Any], depth: int) -> str | None:
        """The text of a key; None, and a fault, for any other."""
        value, _ = self._value(event, events, depth + 1)
        if isinstance(value, str):
            return value
        if isinstance(event, ev.ScalarEvent):
            shown = event.value
            self._faults.append(self._fault("a key must be text", event, f'write "{shown}"' if shown else ""))
        else:
            self._faults.append(self._fault("a key must be text, not a list or a mapping", event))
        return None

    def _merged(self, value: Any, node: Node) -> list[tuple[Any, Node]]:
        """The mappings that `<<` brings in, in order of precedence."""
        if isinstance(value, dict):
            return [(value, node)]
        if isinstance(value, list) and all(isinstance(item, dict) for item in value):
            return [(item, node.items[index]) for index, item in enumerate(value)]
        line, column = self._text.at(node.start)
        self._faults.append(Fault("`<<` takes a mapping or a list of mappings", self._file, line, column))
        return []

    def _scalar(self, event: Any) -> tuple[Any, Node]:
        node = self._node(event, plain=not event.style)
        text: str = event.value
        if event.tag in ("!", CORE + "str") or (event.tag is None and event.style):
            return self._joined(text, event), node
        try:
            value = resolve(text)
        except ValueError as error:
            self._faults.append(self._fault(str(error), event, "quote it if it is text"))
            return text, node
        if event.tag is not None and event.tag != tag_of(value):
            self._faults.append(
                self._fault(f"the tag {_shown(event.tag)} does not fit {quoted(text)}", event, "remove it")
            )
        return value, node

    def _joined(self, text: str, event: Any) -> str:
        """The text with pairs of escaped surrogates made one character, as in JSON."""
        if not _SURROGATE.search(text):
            return text
        try:
            return text.encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError:
            self._faults.append(self._fault("this text escapes half a character", event))
            return ""

    def _check_tag(self, event: Any, expected: str) -> None:
        if event.tag not in (None, "!", CORE + expected):
            self._faults.append(
                self._fault(f"the tag {_shown(event.tag)} does not fit this value", event, "remove it")
            )

    def _node(self, event: Any, *, plain: bool = False) -> Node:
        return Node(event.start_mark.index, event.end_mark.index, plain=plain)

    def _fault(self, message: str, event: Any, suggestion: str = "") -> Fault:
        line, column = self._text.at(event.start_mark.index)
        return Fault(message, self._file, line, column, suggestion=suggestion)

    def _fatal(self, message: str, event: Any, suggestion: str = "") -> SpecError:
        return SpecError([*self._faults, self._fault(message, event, suggestion)])


def _shown(tag: str) -> str:
    return "!!" + tag.removeprefix(CORE) if tag.startswith(CORE) else tag
