"""Where a spec was written: the bridge from a frozen value back to file, line and column."""

from __future__ import annotations

from typing import Any

Path = tuple[str | int, ...]
"""The way into a document: keys and indexes from the top."""


class Origin:
    """Answers `place` for the keys of one spec. No part of its identity: all origins are equal."""

    __slots__ = ("_document", "_moved", "_path")

    def __init__(self, document: Any = None, path: Path = (), moved: dict[str, Path] | None = None) -> None:
        self._document = document
        self._path = path
        self._moved = moved or {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Origin)

    def __hash__(self) -> int:
        return 0

    def __repr__(self) -> str:
        return "Origin()"


NOWHERE = Origin()
"""The origin of what was made in Python."""
