"""A file that was read: its plain data, and for every place in it line and column, faults and their excerpts.

Lines and columns count from 1; a column is a character. A document made of Python data has no text, no marks.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import TYPE_CHECKING, Any

from luthier.errors import Fault
from luthier.text import escape

if TYPE_CHECKING:
    from collections.abc import Mapping

    from luthier.errors import ExpressionError
    from luthier.spec.origin import KeyPath

_LINE_END = re.compile(r"\r\n|\r|\n")
_EXCERPT_WIDTH = 100


class Node:
    """Where one value stands in the text: indexes of its first character and behind its last."""

    __slots__ = ("end", "height", "items", "key_start", "plain", "size", "start")

    def __init__(self, start: int, end: int, *, plain: bool = False) -> None:
        self.start = start
        self.end = end
        self.plain = plain
        self.key_start = start  # of its key, for a member of a mapping
        self.items: dict[str | int, Node] = {}
        self.size = 1  # values in it, itself included, aliases counted as often as they are used
        self.height = 0

    def add(self, key: str | int, item: Node) -> None:
        self.items[key] = item
        self.size += item.size
        self.height = max(self.height, item.height + 1)

    def moved(self, key_start: int) -> Node:
        """The same value under another key."""
        other = Node(self.start, self.end, plain=self.plain)
        other.key_start, other.items, other.size, other.height = key_start, self.items, self.size, self.height
        return other


class Text:
    """The text of a file with its lines counted."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._starts = [0, *(found.end() for found in _LINE_END.finditer(text))]

    def at(self, index: int) -> tuple[int, int]:
        """Line and column of a character; of the last place in the text for anything behind it."""
        index = max(0, min(index, len(self.text)))
        line = bisect_right(self._starts, index)
        return line, index - self._starts[line - 1] + 1

    def line(self, number: int) -> str:
        start = self._starts[number - 1]
        found = _LINE_END.search(self.text, start)
        return self.text[start : found.start() if found else None]

    def excerpt(self, line: int, column: int) -> str:
        """The line, cut to a readable width, with a caret below the column."""
        text = self.line(line)
        start = max(0, column - 1 - _EXCERPT_WIDTH // 2) if len(text) > _EXCERPT_WIDTH else 0
        before, after = text[start : column - 1], text[column - 1 : start + _EXCERPT_WIDTH]
        before = ("…" if start else "") + escape(before)
        pad = "".join(character if character == "\t" else " " for character in before)
        end = "…" if len(text) > start + _EXCERPT_WIDTH else ""
        return f"{before}{escape(after)}{end}\n{pad}^"


class Document:
    """Data with the places it came from. `file` is what faults call it."""

    def __init__(self, file: str, data: Any, text: Text | None = None, root: Node | None = None) -> None:
        self.file = file
        self.data = data
        self._text = text
        self._root = root or Node(0, 0)

    @property
    def text(self) -> str:
        """What was read; empty for what was made in Python."""
        return self._text.text if self._text is not None else ""

    def node(self, path: KeyPath) -> Node | None:
        """Where a value stands in the text; None where it does not."""
        node, complete = self._node(path)
        return node if complete and self._text is not None else None

    def mark(self, path: KeyPath, *, key: bool = False) -> tuple[int, int]:
        """Line and column of a value, or of its key; of the nearest thing around it where it is not there."""
        if self._text is None:
            return 0, 0
        node, complete = self._node(path)
        return self._text.at(node.key_start if key and complete else node.start)

    def fault(
        self,
        message: str,
        path: KeyPath,
        *,
        key: bool = False,
        offset: int = 0,
        suggestion: str = "",
        warning: bool = False,
    ) -> Fault:
        """A fault at a value, its key, or one character of it. Without a text, the message tells the path."""
        line, column = self.mark(path, key=key)
        if line and offset and self._text:
            line, column = self._text.at(self._index(path, offset))
        if not line and path:
            message = f"{dotted(path)}: {message}"
        return Fault(message, self.file, line, column, suggestion=suggestion, warning=warning)

    def fault_within(
        self, message: str, path: KeyPath, offset: int, *, suggestion: str = "", warning: bool = False
    ) -> Fault:
        """A fault at one character of a string, with the line and a caret below it."""
        if self._text is None:
            return self.fault(message, path, suggestion=suggestion, warning=warning)
        line, column = self._text.at(self._index(path, offset))
        excerpt = self._text.excerpt(line, column)
        return Fault(
            message, self.file, line, column, suggestion=suggestion, excerpt=excerpt, warning=warning
        )

    def expression_fault(self, path: KeyPath, error: ExpressionError) -> Fault:
        """The fault of an expression that cannot be parsed, at its own character."""
        message, hint = _as_clause(error.message), _as_clause(error.hint)
        if self._text is not None:
            return self.fault_within(message, path, max(0, error.offset), suggestion=hint)
        fault = self.fault(message, path, suggestion=hint)
        return Fault(fault.message, fault.file, suggestion=hint, excerpt=escape(error.caret))

    def get(self, path: KeyPath) -> Any:
        """The value at a path. Raises KeyError or IndexError where there is none."""
        value = self.data
        for step in path:
            value = value[step]
        return value

    def holds(self, path: KeyPath) -> bool:
        """Whether there is a value at a path."""
        try:
            self.get(path)
        except (KeyError, IndexError, TypeError):
            return False
        return True

    def rearranged(self, data: Any, places: Mapping[KeyPath, KeyPath]) -> Document:
        """Other data made of what is written here; `places` leads from its paths, outer first, to ours."""
        root = Node(self._root.start, self._root.end)
        for path, at in places.items():
            found, _ = self._node(at)
            node = root
            for step in path[:-1]:
                node = node.items.get(step, node)
            copy = found.moved(found.key_start)
            copy.items = dict(found.items)
            node.items[path[-1]] = copy
        return Document(self.file, data, self._text, root)

    def _node(self, path: KeyPath) -> tuple[Node, bool]:
        node = self._root
        for step in path:
            if step not in node.items:
                return node, False
            node = node.items[step]
        return node, True

    def _index(self, path: KeyPath, offset: int) -> int:
        """The index in the text of one character of a string value."""
        node, complete = self._node(path)
        if not complete or self._text is None:
            return node.start
        return locate(self._text.text[node.start : node.end], self.get(path), offset) + node.start


def _as_clause(sentence: str) -> str:
    """A sentence as faults are worded: small at its beginning, without its full stop."""
    small = sentence[:1].lower() + sentence[1:] if sentence[1:2].islower() else sentence
    return small.removesuffix(".")


def dotted(path: KeyPath) -> str:
    """A path as people write it: `agents[0].config.tool`."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


_PROPERTIES = re.compile(r"(?:[&!]\S*\s+)+")
_ESCAPE = re.compile(r"\\(?:x..|u.{4}|U.{8}|.)", re.DOTALL)
_CONTINUED = re.compile(r"\\(?:\r\n|\r|\n)[ \t]*")


def locate(written: str, value: str, offset: int) -> int:
    """The index in a scalar as written of the character that stands at `offset` in its value.

    Both are walked side by side. They differ by quotes, escapes, and the blanks of folding and indentation.
    """
    properties = _PROPERTIES.match(written)
    position = properties.end() if properties else 0
    style = written[position : position + 1]
    if style in ("|", ">"):
        position = written.find("\n", position) + 1
    elif style in ("'", '"'):
        position += 1
    for index, character in enumerate(value):
        position = _skip(written, position, character, style)
        if index == offset:
            break
        position += _width(written, position, character, style)
    return min(position, max(0, len(written) - 1))


def _skip(written: str, position: int, character: str, style: str) -> int:
    """Behind what is written but stands for nothing: blanks and line ends, and escaped line ends."""
    while position < len(written):
        if style == '"' and (found := _CONTINUED.match(written, position)):
            position = found.end()
        elif written[position] != character and written[position].isspace():
            position += 1
        else:
            break
    return position


def _width(written: str, position: int, character: str, style: str) -> int:
    """How many written characters stand for one of the value."""
    if style == '"' and (found := _ESCAPE.match(written, position)):
        return found.end() - position
    if style == "'" and written.startswith("''", position):
        return 2
    return 1 if written[position : position + 1] == character else 0
