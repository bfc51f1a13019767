"""Reads JSON as hosts of MCP servers write it, with comments and trailing commas, into a Document."""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Any

from luthier.errors import Fault, SpecError
from luthier.spec.compose import MAX_DEPTH, MAX_VALUES
from luthier.spec.document import Document, Node, Text
from luthier.spec.words import quoted

if TYPE_CHECKING:
    from collections.abc import Callable

_BETWEEN = re.compile(r"(?:[ \t\r\n]+|//[^\r\n]*|/\*.*?\*/)*", re.DOTALL)
_TEXT = re.compile(r'"[^"\\\x00-\x1f]*(?:\\.[^"\\\x00-\x1f]*)*"')
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_WORD = re.compile(r"[A-Za-z_$][\w$]*")
_SURROGATE = re.compile("[\ud800-\udfff]")
_WORDS = {"true": True, "false": False, "null": None}
_LONGEST_NUMBER = 400


def parse_json(text: str, file: str) -> Document:
    """The document of a text. `file` is what faults call it. Raises SpecError."""
    return _Parser(text, file).document()


class _Parser:
    """Goes through the text once; a fault of form ends the reading, a key that stands twice does not."""

    def __init__(self, text: str, file: str) -> None:
        self._text = text
        self._lines = Text(text)
        self._file = file
        self._at = 0
        self._values = 0
        self._faults: list[Fault] = []

    def document(self) -> Document:
        self._skip()
        if self._at == len(self._text):
            raise self._fatal("the file is empty", 0)
        data, root = self._value(0)
        self._skip()
        if self._at < len(self._text):
            raise self._fatal("this stands behind the end of the JSON value", self._at)
        if self._faults:
            raise SpecError(self._faults)
        return Document(self._file, data, self._lines, root)

    def _value(self, depth: int) -> tuple[Any, Node]:
        start = self._at
        self._values += 1
        if self._values > MAX_VALUES:
            raise self._fatal(f"the file holds more than {MAX_VALUES} values", start)
        if depth > MAX_DEPTH:
            raise self._fatal(f"this is nested more than {MAX_DEPTH} levels deep", start)
        match self._text[start : start + 1]:
            case "{":
                return self._mapping(depth)
            case "[":
                return self._list(depth)
            case '"':
                return self._string(), Node(start, self._at)
            case _:
                return self._plain(), Node(start, self._at, plain=True)

    def _mapping(self, depth: int) -> tuple[dict[str, Any], Node]:
        data: dict[str, Any] = {}
        node = Node(self._at, self._at)

        def member() -> None:
            start = self._at
            if self._text[start : start + 1] != '"':
                raise self._fatal("a key must stand here, in double quotes", start)
            key = self._string()
            self._skip()
            self._take(":")
            self._skip()
            value, item = self._value(depth + 1)
            if key in data:
                first, _ = self._lines.at(node.items[key].key_start)
                message = f"the key {quoted(key)} stands here a second time"
                self._faults.append(self._fault(message, start, f"first in line {first}"))
            else:
                data[key] = value
                node.add(key, item.moved(start))

        self._members("}", member)
        node.end = self._at
        return data, node

    def _list(self, depth: int) -> tuple[list[Any], Node]:
        data: list[Any] = []
        node = Node(self._at, self._at)

        def item() -> None:
            value, where = self._value(depth + 1)
            node.add(len(data), where)
            data.append(value)

        self._members("]", item)
        node.end = self._at
        return data, node

    def _members(self, close: str, read: Callable[[], None]) -> None:
        """What stands between an opening and a closing bracket; a comma may stand behind the last."""
        opened = self._at
        self._at += 1
        self._skip()
        while not self._text.startswith(close, self._at):
            if self._at < len(self._text):
                read()
                self._skip()
            if self._text.startswith(",", self._at):
                self._at += 1
                self._skip()
            elif not self._text.startswith(close, self._at):
                raise self._unclosed(opened, close)
        self._at += 1

    def _unclosed(self, opened: int, close: str) -> SpecError:
        line, _ = self._lines.at(opened)
        message, at, suggestion = f"a `,` or `{close}` is missing", self._at, f"opened in line {line}"
        if at == len(self._text):
            message, at, suggestion = f"this is never closed by a `{close}`", opened, ""
        return self._fatal(message, at, suggestion)

    def _string(self) -> str:
        start = self._at
        found = _TEXT.match(self._text, start)
        if found is None:
            raise self._fatal("a text must end on its line and hold no control character", start)
        self._at = found.end()
        if "\\" not in found[0]:
            text = found[0][1:-1]
        else:
            try:
                text = json.loads(found[0])
            except ValueError as error:
                offset = getattr(error, "pos", 0)
                raise self._fatal("there is no such escape", start + offset, "write \\\\ for \\") from None
        if _SURROGATE.search(text):
            raise self._fatal("this text escapes half a character", start)
        return text

    def _plain(self) -> Any:
        """A number, true, false or null; a fault for anything else."""
        start = self._at
        if word := _WORD.match(self._text, start):
            self._at = word.end()
            if word[0] in _WORDS:
                return _WORDS[word[0]]
            raise self._fatal(f"{quoted(word[0])} is no JSON value", start, "text stands in double quotes")
        if number := _NUMBER.match(self._text, start):
            self._at = number.end()
            value = self._number(number[0])
            if value is None:
                raise self._fatal("this number is too large", start)
            return value
        if start == len(self._text):
            raise self._fatal("the file ends where a value must stand", start)
        if self._text.startswith("/*", start):
            raise self._fatal("a comment is never closed", start)
        help_ = "text stands in double quotes" if self._text[start] in "'`" else ""
        raise self._fatal("a JSON value must stand here", start, help_)

    def _number(self, written: str) -> int | float | None:
        if len(written) > _LONGEST_NUMBER:
            return None
        if written.lstrip("-").isdigit():
            return int(written)
        value = float(written)
        return value if math.isfinite(value) else None

    def _take(self, character: str) -> None:
        if not self._text.startswith(character, self._at):
            raise self._fatal(f"a `{character}` is missing", self._at)
        self._at += 1

    def _skip(self) -> None:
        found = _BETWEEN.match(self._text, self._at)
        self._at = found.end() if found else self._at

    def _fault(self, message: str, index: int, suggestion: str = "") -> Fault:
        line, column = self._lines.at(index)
        return Fault(message, self._file, line, column, suggestion=suggestion)

    def _fatal(self, message: str, index: int, suggestion: str = "") -> SpecError:
        return SpecError([*self._faults, self._fault(message, index, suggestion)])
