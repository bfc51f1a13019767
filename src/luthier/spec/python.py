"""A document made of Python data: the same shapes as in a file, without places."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from luthier.errors import Fault, SpecError
from luthier.spec.compose import MAX_DEPTH
from luthier.spec.document import Document, dotted
from luthier.spec.values import json_fault

if TYPE_CHECKING:
    from luthier.spec.origin import KeyPath


def document_of(data: Mapping[str, Any], *, file: str = "") -> Document:
    """The mapping as a document; tuples become lists. Raises SpecError for what is no JSON value."""
    faults: list[Fault] = []
    plain = _plain(data, (), faults, file)
    if faults:
        raise SpecError(faults)
    return Document(file, plain)


def _plain(value: Any, path: KeyPath, faults: list[Fault], file: str) -> Any:
    if len(path) > MAX_DEPTH:
        faults.append(Fault(f"{dotted(path[:3])}…: this is nested more than {MAX_DEPTH} levels deep", file))
        return None
    match value:
        case Mapping():
            strangers = [key for key in value if not isinstance(key, str)]
            place = dotted(path) or "the mapping"
            faults += [Fault(f"{place}: the key {key!r} must be text", file) for key in strangers]
            texts = {key: item for key, item in value.items() if isinstance(key, str)}
            return {key: _plain(item, (*path, key), faults, file) for key, item in texts.items()}
        case list() | tuple():
            return [_plain(item, (*path, index), faults, file) for index, item in enumerate(value)]
        case _:
            if fault := json_fault(value):
                faults.append(Fault(f"{dotted(path)}: this {fault}", file))
            return value
