"""Edits a YAML text at one place and leaves every other character as it is: comments, order, quotes, blanks.

A new value is written at the place that the reader's nodes tell, in the style of what stands around it. Then
the text is read again: if anything else has changed by it (an alias, a shape that is not foreseen), the edit
is given up, so a text is edited rightly or not at all.
"""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from luthier.errors import SpecError
from luthier.spec.document import dotted
from luthier.spec.emit import element, flow, member, members, scalar
from luthier.spec.load import load

if TYPE_CHECKING:
    from luthier.spec.document import Document, Node
    from luthier.spec.origin import KeyPath

_LINE_END = re.compile(r"\r\n|\r|\n")
_REST = re.compile(r"[ \t]*(?:[ \t]#[^\r\n]*)?(?:\r\n|\r|\n|$)")
_COMMENT = re.compile(r"(?P<indent>[ \t]*)#[^\r\n]*(?:\r\n|\r|\n|$)")
_KEY = re.compile(r"""(?:"[^"\r\n]*"|'[^'\r\n]*'|[^\s:#]+)[ \t]*:""")
_PROPERTIES = re.compile(r"(?:[&!]\S*\s+)+")
_QUOTED_KEY = re.compile(r'"[ \t]*:')
_COMMA_AFTER = re.compile(r"[ \t]*,[ \t]*(?:(?:\r\n|\r|\n)[ \t]*)?")
_COMMA_BEFORE = re.compile(r",\s*$")


def put(document: Document, path: KeyPath, value: Any) -> Document:
    """The document with the value there: a key of a mapping, or an index of a list, one past its end too.

    A collection around it that is absent or null is made. Raises SpecError where that cannot be written.
    """
    edit = _Edit(document)
    return _checked(document, path, edit.put(path, value), _wanted(document, path, value))


def remove(document: Document, path: KeyPath) -> Document:
    """The document without that key or item. Raises SpecError where that cannot be written."""
    wanted = _plain(document.data)
    holder = _at(wanted, path[:-1])
    holder.pop(path[-1])
    edit = _Edit(document)
    if not holder and len(path) > 1 and not edit.is_flow(path[:-1]):
        _at(wanted, path[:-2])[path[-2]] = None  # nothing is left of a block but its key
    return _checked(document, path, edit.remove(path), wanted)


def _checked(document: Document, path: KeyPath, text: str | None, wanted: Any) -> Document:
    found = None
    if text is not None:
        try:
            found = load(text, file=document.file)
        except SpecError:
            found = None
    if found is None or _plain(found.data) != wanted:
        message = f"{dotted(path)} cannot be edited here without touching what stands around it"
        raise SpecError([document.fault(message, path, suggestion="edit the file by hand")])
    return found


class _Edit:
    def __init__(self, document: Document) -> None:
        self._document = document
        self._text = document.text
        found = _LINE_END.search(self._text)
        self._newline = found.group() if found else "\n"

    def put(self, path: KeyPath, value: Any) -> str | None:
        *above, key = path
        node, parent = self._document.node(path), self._document.node(tuple(above))
        if parent is None or (above and not self._document.get(tuple(above))):
            inner = {key: value} if isinstance(key, str) else [value]
            return self.put(tuple(above), inner) if above else None
        if node is not None:
            return self._replace(parent, node, key, value)
        if self._is_flow(parent):
            return self._into_flow(parent, key, value)
        return self._into_block(parent, key, value)

    def remove(self, path: KeyPath) -> str | None:
        node, parent = self._document.node(path), self._document.node(path[:-1])
        if node is None or parent is None:
            return None
        if self._is_flow(parent):
            return self._out_of_flow(_start(node, path[-1]), self._tail(node))
        return self._out_of_block(parent, node, path[-1])

    def is_flow(self, path: KeyPath) -> bool:
        """Whether what stands there is written with braces or brackets."""
        node = self._document.node(path)
        return node is not None and self._is_flow(node)

    # Writing

    def _replace(self, parent: Node, node: Node, key: str | int, value: Any) -> str | None:
        start, end = _start(node, key), self._tail(node)
        if self._is_flow(parent):
            return self._text[:start] + self._item(parent, key, value) + self._text[end:]
        column = self._column(start)
        if isinstance(key, str):
            first, *others = member(key, value, column)
        else:
            first, *others = members(value, column) if isinstance(value, dict) and value else [flow(value)]
        # A comment behind the last line of the old value goes behind the first line of the new one.
        rest = _REST.match(self._text, end)
        if rest is None:
            return None
        lines = [first.lstrip(" ") + rest.group().rstrip("\r\n"), *others, ""]
        return self._text[:start] + self._newline.join(lines) + self._text[rest.end() :]

    def _into_block(self, parent: Node, key: str | int, value: Any) -> str | None:
        first = next(iter(parent.items.values()))
        if isinstance(key, str):
            column = self._column(first.key_start)
            lines = member(key, value, column)
        else:
            column = self._column(self._text.rfind("-", 0, first.start))
            lines = element(value, column)
        lines[0] = " " * column + lines[0]
        return self._with(self._tail(parent), column, lines)

    def _with(self, tail: int, column: int, lines: list[str]) -> str:
        """The text with lines behind the line that ends at `tail`, and behind comments that belong to it."""
        rest = _REST.match(self._text, tail)
        at = rest.end() if rest else len(self._text)
        while (comment := _COMMENT.match(self._text, at)) and len(comment["indent"]) > column:
            at = comment.end()
        before, after = self._text[:at], self._text[at:]
        if before and before[-1] not in "\r\n":
            before += self._newline
        return before + self._newline.join(lines) + self._newline + after

    def _into_flow(self, parent: Node, key: str | int, value: Any) -> str:
        shown = self._item(parent, key, value)
        if not parent.items:
            at = self._text.index(self._opening(parent), parent.start) + 1
            return self._text[:at] + shown + self._text[at:]
        last = list(parent.items.values())[-1]
        at, line = self._tail(last), self._line_start(last.key_start)
        # Where each stands in a line of its own, so does the new one.
        lead = self._text[line : last.key_start]
        between = ", " if lead.strip() or line < parent.start else f",{self._newline}{lead}"
        return self._text[:at] + between + shown + self._text[at:]

    def _item(self, parent: Node, key: str | int, value: Any) -> str:
        """A key and its value, or an item, in flow; in quotes where the others are."""
        quoted = (
            bool(_QUOTED_KEY.search(self._text, parent.start, parent.end)) or self._text.lstrip()[:1] == "{"
        )
        shown = flow(value, quoted=quoted)
        return f"{scalar(key, quoted=quoted)}: {shown}" if isinstance(key, str) else shown

    # Taking out

    def _out_of_flow(self, start: int, end: int) -> str:
        after = _COMMA_AFTER.match(self._text, end)
        if after is not None:
            return self._text[:start] + self._text[after.end() :]
        before = _COMMA_BEFORE.search(self._text[:start])
        return self._text[: before.start() if before else start] + self._text[end:]

    def _out_of_block(self, parent: Node, node: Node, key: str | int) -> str | None:
        start, rest = node.key_start, _REST.match(self._text, self._tail(node))
        if rest is None:
            return None
        if isinstance(key, int):
            start = self._text.rfind("-", 0, node.start)
        line = self._line_start(start)
        if not self._text[line:start].strip():
            return self._text[:line] + self._text[rest.end() :]
        # The first key of an item of a list: the next one takes its place behind the dash.
        later = [item.key_start for item in parent.items.values() if item.key_start > start]
        return self._text[:start] + self._text[min(later) :] if later else None

    # Looking

    def _is_flow(self, node: Node) -> bool:
        return self._opening(node) in ("{", "[")

    def _opening(self, node: Node) -> str:
        properties = _PROPERTIES.match(self._text, node.start)
        at = properties.end() if properties else node.start
        return self._text[at : at + 1]

    def _tail(self, node: Node) -> int:
        """Behind the last character of a value, comments and blanks after it left out."""
        if self._opening(node) in ("|", ">") and not node.items:
            return max(node.start, len(self._text[: node.end].rstrip()))
        if node.start == node.end and (key := _KEY.match(self._text, node.key_start)):
            return min(key.end(), node.end)  # nothing is written: its mark is where the next thing begins
        if not node.items or self._is_flow(node):
            return node.end
        own = [item for item in node.items.values() if item.key_start >= node.start]  # the others are merged
        return max(map(self._end_of_item, own), default=node.end)

    def _end_of_item(self, item: Node) -> int:
        if item.start < item.key_start:  # an alias: its value stands elsewhere
            found = _LINE_END.search(self._text, item.key_start)
            return found.start() if found else len(self._text)
        return self._tail(item)

    def _line_start(self, index: int) -> int:
        before = self._text[:index]
        return max(before.rfind("\n"), before.rfind("\r")) + 1

    def _column(self, index: int) -> int:
        return index - self._line_start(index)


def _start(node: Node, key: str | int) -> int:
    return node.key_start if isinstance(key, str) else node.start


def _wanted(document: Document, path: KeyPath, value: Any) -> Any:
    wanted = _plain(document.data)
    holder = wanted
    for step, following in pairwise(path):
        if isinstance(holder, dict) and holder.get(step) is None:
            holder[step] = {} if isinstance(following, str) else []
        holder = holder[step]
    last = path[-1]
    if isinstance(holder, list) and last == len(holder):
        holder.append(value)
    else:
        holder[last] = value
    return _plain(wanted)


def _at(data: Any, path: KeyPath) -> Any:
    for step in path:
        data = data[step]
    return data


def _plain(data: Any) -> Any:
    """A copy in which nothing is shared, as aliases make it."""
    return json.loads(json.dumps(data))
