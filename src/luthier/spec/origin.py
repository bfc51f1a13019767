"""Where a spec was written: the bridge from a frozen value back to file, line and column."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from luthier.errors import Fault
    from luthier.spec.document import Document

KeyPath = tuple[str | int, ...]
"""The way into a document: keys and indexes from the top."""


class Origin:
    """A path in a document. No part of a value's identity: all origins are equal.

    `moved` tells where a field was written whose key is not its own name, or that lies elsewhere.
    """

    __slots__ = ("_document", "_moved", "_path")

    def __init__(
        self, document: Document | None = None, path: KeyPath = (), moved: Mapping[str, KeyPath] | None = None
    ) -> None:
        self._document = document
        self._path = path
        self._moved = moved or {}

    def path(self, *keys: str | int) -> KeyPath:
        """The full path of a field, or of something in it."""
        if keys and isinstance(keys[0], str) and keys[0] in self._moved:
            return self._moved[keys[0]] + keys[1:]
        return self._path + keys

    def has(self, *keys: str | int) -> bool:
        """Whether something is written there."""
        return self._document is not None and self._document.holds(self.path(*keys))

    def place(self, *keys: str | int) -> str:
        """`luthier.yaml:12:5 (mcpServers.git.env.TOKEN)`, as far as known."""
        from luthier.spec.document import dotted

        name = dotted(self.path(*keys))
        if self._document is None:
            return name
        line, column = self._document.mark(self.path(*keys))
        where = f"{self._document.file}:{line}:{column}" if line else self._document.file
        return f"{where} ({name})" if where and name else where or name

    def fault(
        self, message: str, *keys: str | int, offset: int = 0, suggestion: str = "", warning: bool = False
    ) -> Fault:
        """A fault at a field, or at one character of it. The line is not shown: it may hold a secret."""
        from luthier.spec.document import Document

        document = self._document or Document("", None)
        return document.fault(
            message, self.path(*keys), offset=offset, suggestion=suggestion, warning=warning
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Origin)

    def __hash__(self) -> int:
        return hash(Origin)

    def __repr__(self) -> str:
        return "Origin()"


NOWHERE = Origin()
"""The origin of what was made in Python."""
