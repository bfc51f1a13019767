"""Patterns for tools as they are written: what can fit no tool at all is a mistake, not a rule."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from luthier.spec.words import quoted
from luthier.uri import SCHEMES, SERVER_ID, ToolUri

if TYPE_CHECKING:
    from luthier.spec.reader import Reader, Sink

_HEADS = tuple(f"{scheme}://" for scheme in SCHEMES)
_WILD = re.compile(r"[*?\[]")


def check_address(sink: Sink, path: tuple[str | int, ...], text: str) -> None:
    """Tell of a pattern for addresses that no address fits, with what may have been meant."""
    head = _WILD.split(text, maxsplit=1)[0]
    if head == text:
        try:
            ToolUri.parse(text)
        except ValueError:
            pass
        else:
            return
    elif any(scheme.startswith(head) or head.startswith(scheme) for scheme in _HEADS):
        server, slash, _ = head.partition("://")[2].partition("/")
        if not (head.startswith("mcp://") and slash) or SERVER_ID.fullmatch(server):
            return
    sink.add(f"{quoted(text)} fits no tool's address", path, suggestion=_meant(text))


def tool_names(reader: Reader, *keys: str) -> dict[str, tuple[str, ...] | None]:
    """Lists of patterns for the names of one server's tools, by their keys."""
    found = {key: reader.stated(key) for key in keys}
    return {key: names_in(reader.sink, *one) if one else None for key, one in found.items()}


def names_in(sink: Sink, path: tuple[str | int, ...], value: object) -> tuple[str, ...] | None:
    """The patterns of a list, and a fault for each that is an address."""
    texts = sink.texts(path, value)
    for index, text in enumerate(texts or ()):
        if text.startswith(_HEADS):
            name = text.partition("://")[2].partition("/")[2]
            hint = f"did you mean {name}?" if name else ""
            message = f"{quoted(text)} is an address, not the name of a tool"
            sink.add(message, (*path, index), suggestion=hint)
    return texts


def _meant(text: str) -> str:
    scheme, separator, rest = text.partition("://")
    if not separator:
        return f"did you mean mcp://{text}?" if "/" in text else f"did you mean mcp://*/{text}?"
    if scheme == "mcp" and rest and "/" not in rest:
        return f"did you mean mcp://{rest}/*?"
    if scheme.lower() in SCHEMES and scheme != scheme.lower():
        return f"did you mean {scheme.lower()}://{rest}?"
    return "write mcp://SERVER/TOOL, builtin://NAME or custom://NAME"
