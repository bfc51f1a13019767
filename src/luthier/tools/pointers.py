"""JSON Pointers into documents: written from a path, and followed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from luthier.taint import escape_pointer

if TYPE_CHECKING:
    from collections.abc import Iterable

MISSING = object()
"""What `follow` gives where a pointer leads nowhere; None is a value."""


def pointer(path: Iterable[str | int]) -> str:
    """`/a/0/b~1c`; empty for the whole document."""
    return "".join("/" + escape_pointer(str(token)) for token in path)


def follow(document: Any, text: str) -> Any:
    """What a pointer leads to, or MISSING."""
    if not text:
        return document
    if not text.startswith("/"):
        return MISSING
    for token in text.split("/")[1:]:
        key = token.replace("~1", "/").replace("~0", "~")
        if isinstance(document, dict) and key in document:
            document = document[key]
        elif isinstance(document, list | tuple) and key.isdecimal() and int(key) < len(document):
            document = document[int(key)]
        else:
            return MISSING
    return document
