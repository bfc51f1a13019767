"""Server entries as the mappings that luthier.yaml holds: what is read from one is the same entry again."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import msgspec

from luthier.errors import Fault, SpecError
from luthier.spec.project import Breaker, ServerEntry
from luthier.spec.python import document_of
from luthier.spec.reader import Found, Sink
from luthier.spec.servers import read_servers
from luthier.spec.words import quoted
from luthier.taint import UNTRUSTED, Label

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_MILLISECONDS = ("timeout", "tool_timeout", "tool_timeout_max", "cache_ttl", "cooldown")
_NOT_WRITTEN = ("id", "origin")


def server_mapping(entry: ServerEntry) -> dict[str, Any]:
    """All that an entry says beyond its id, in the canonical spelling; what is as usual is left out."""
    told = _told(entry, ServerEntry(id=entry.id, name=entry.name and entry.id))
    usual = "stdio" if entry.url is None else "auto"
    if entry.transport == usual:
        told.pop("transport", None)
    else:
        told["transport"] = entry.transport
    return told


def written(entry: ServerEntry) -> dict[str, Any]:
    """The mapping of an entry, which can be read back. Raises SpecError for one that cannot."""
    if entry.trust.sources:
        message = f"the server {quoted(entry.id)}: `trust` cannot name sources: they are added to each result"
        raise SpecError([Fault(message)])
    mapping = server_mapping(entry)
    read_entry(entry.id, mapping)
    return mapping


def read_entry(id: str, mapping: Mapping[str, Any], *, file: str = "") -> ServerEntry:
    """The entry of a mapping; `file` is what faults call it. Raises SpecError with every fault."""
    sink = Sink(document_of({"servers": {id: mapping}}, file=file))
    entries = read_servers(sink, Found(("servers",), sink.document.data["servers"])) or {}
    if any(not fault.warning for fault in sink.faults):
        raise SpecError(sink.faults)
    return entries[id]


def _told(value: Any, usual: Any) -> dict[str, Any]:
    """The fields that differ from the usual ones, by the names that files give them."""
    told: dict[str, Any] = {}
    for name in value.__struct_fields__:
        own = getattr(value, name)
        if name in _NOT_WRITTEN or own == getattr(usual, name):
            continue
        if name in _MILLISECONDS:
            told[f"{name}_ms"] = _milliseconds(own)
        else:
            told[name] = _WRITERS.get(type(own), _plain)(own)
    return told


def _plain(value: Any) -> Any:
    if isinstance(value, msgspec.Struct):
        told = _told(value, type(value)())
        # The type comes first and is always there: no auth can be read without it.
        return {"type": value.type, **told} if hasattr(value, "type") else told
    return list(value) if isinstance(value, tuple) else value


def _breaker(breaker: Breaker) -> Any:
    return "off" if breaker == Breaker(enabled=False) else _plain(breaker)


def _trust(label: Label) -> Any:
    if label.confidentiality is UNTRUSTED.confidentiality:
        return label.integrity.name
    return {"integrity": label.integrity.name, "confidentiality": label.confidentiality.name}


_WRITERS: dict[type, Callable[[Any], Any]] = {Breaker: _breaker, Label: _trust}


def _milliseconds(seconds: float | None) -> float | None:
    """The number that is read as these seconds; a whole one where that is possible."""
    if seconds is None:
        return None
    near = seconds * 1000
    tries = (round(near), near, math.nextafter(near, 0), math.nextafter(near, math.inf))
    return next((number for number in tries if number / 1000 == seconds), near)
