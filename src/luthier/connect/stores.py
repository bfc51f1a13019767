"""Where server entries are kept: in memory, or in a project file that is edited in place.

The third store, in a database, is in the room `store`. All three keep one contract: what is added can be read
back field by field, an entry that is faulty costs only itself, and two writers lose nothing of each other's.
"""

from __future__ import annotations

import codecs
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import msgspec

from luthier.connect.locked_file import locked, replace
from luthier.errors import Fault, NotFoundError, SpecError, StoreError
from luthier.spec import ServerEntry, load, server_mapping, written
from luthier.spec.edit import put, remove
from luthier.spec.reader import Found, Reader, Sink
from luthier.spec.servers import each_server
from luthier.text import near

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from luthier.spec import Document
    from luthier.spec.origin import KeyPath

_BOMS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
_KEYS: tuple[KeyPath, ...] = (("mcpServers",), ("mcp_servers",), ("servers",), ("mcp", "servers"))


class Servers(msgspec.Struct, frozen=True):
    """What a store holds, in its order: entries by id, and why others cannot be used, by id or place."""

    entries: dict[str, ServerEntry] = {}
    broken: dict[str, SpecError] = {}

    def get(self, server: str) -> ServerEntry:
        """The entry of that id. Raises NotFoundError with near ids, and SpecError for a faulty one."""
        if server in self.broken:
            raise self.broken[server]
        if server not in self.entries:
            raise NotFoundError("server", server, near=near(server, self.entries))
        return self.entries[server]


class ServerStore(Protocol):
    """Entries by id. A store that cannot be read or written raises StoreError, or SpecError for a file."""

    def load(self) -> Servers:
        """All entries, each checked as a project file's are."""

    def get(self, server: str) -> ServerEntry:
        """The entry of that id. Raises NotFoundError, and SpecError for a faulty one."""

    def add(self, entry: ServerEntry) -> None:
        """Keep a new entry. Raises SpecError where its id is taken, and if it could not be read back."""

    def replace(self, entry: ServerEntry, *, was: ServerEntry | None = None) -> None:
        """Put the entry in the place of the one of its id, or only if that still is what it `was`.

        Raises NotFoundError, SpecError as `add`, and StoreError where it is another one by now.
        """

    def remove(self, server: str) -> None:
        """Drop the entry of that id, faulty or not. Raises NotFoundError."""


class MemoryServers:
    """Keeps as long as it lives."""

    def __init__(self, entries: Iterable[ServerEntry] = ()) -> None:
        self._entries: dict[str, ServerEntry] = {}
        self._lock = threading.Lock()
        for entry in entries:
            self.add(entry)

    def load(self) -> Servers:
        with self._lock:
            return Servers(dict(self._entries))

    def get(self, server: str) -> ServerEntry:
        return self.load().get(server)

    def add(self, entry: ServerEntry) -> None:
        entry = checked(entry)
        with self._lock:
            if entry.id in self._entries:
                raise already(entry.id)
            self._entries[entry.id] = entry

    def replace(self, entry: ServerEntry, *, was: ServerEntry | None = None) -> None:
        entry = checked(entry)
        with self._lock:
            still(Servers(self._entries).get(entry.id), was)
            self._entries[entry.id] = entry

    def remove(self, server: str) -> None:
        with self._lock:
            Servers(self._entries).get(server)
            del self._entries[server]


class YamlServers:
    """The servers of a project file. Its comments, its order and all that is not edited stay as they are.

    Faults elsewhere in the file do not matter, as long as it is YAML.
    """

    def __init__(self, path: Path | str) -> None:
        self._path = Path(path)

    def load(self) -> Servers:
        return _read(load(self._path))

    def get(self, server: str) -> ServerEntry:
        return self.load().get(server)

    def add(self, entry: ServerEntry) -> None:
        entry = checked(entry)
        mapping = written(entry)

        def added(document: Document) -> Document:
            if any(there.id == entry.id for _, there in _each(document)):
                raise already(entry.id, document.file)
            path = next((path for path in _KEYS if document.holds(path)), _KEYS[0])
            there = document.get(path) if document.holds(path) else None
            if isinstance(there, list):
                return put(document, (*path, len(there)), {"id": entry.id, **mapping})
            return put(document, (*path, entry.id), mapping)

        self._edit(added)

    def replace(self, entry: ServerEntry, *, was: ServerEntry | None = None) -> None:
        entry = checked(entry)

        def replaced(document: Document) -> Document:
            if was is not None:
                still(_read(document).get(entry.id), was)
            return _replaced(document, entry)

        self._edit(replaced)

    def remove(self, server: str) -> None:
        self._edit(lambda document: remove(document, _place(document, server)))

    def _edit(self, edit: Callable[[Document], Document]) -> None:
        load(self._path)  # says best why there is nothing to edit
        try:
            with locked(self._path):
                document = load(self._path)
                bom, encoding = _encoding(self._path)
                replace(self._path, bom + edit(document).text.encode(encoding))
        except OSError as error:
            reason = error.strerror or type(error).__name__
            hint = "See who may write the file and its folder."
            raise StoreError(f"{self._path} cannot be written: {reason}.", hint=hint) from error


def checked(entry: ServerEntry) -> ServerEntry:
    """The entry as it will be read back: its name is its id where it has none. Raises SpecError."""
    written(entry)
    return entry if entry.name else msgspec.structs.replace(entry, name=entry.id)


def still(entry: ServerEntry, was: ServerEntry | None) -> None:
    """Raises StoreError where the entry is not what it was, for who must know what is replaced."""
    if was is not None and entry != was:
        hint = f"See what it is now: luthier servers show {entry.id}"
        raise StoreError(f"Server {entry.id!r} was changed meanwhile: nothing is written.", hint=hint)


def already(server: str, file: str = "") -> SpecError:
    """The error for a second entry of one id."""
    return SpecError(
        [Fault(f"there is a server {server!r} already", file, suggestion="remove it, or choose another id")]
    )


def _read(document: Document) -> Servers:
    entries: dict[str, ServerEntry] = {}
    broken: dict[str, SpecError] = {}
    for found in _found(document):
        for path, entry, faults in each_server(Sink(document), found):
            name = (entry and entry.id) or ".".join(map(str, path))
            if any(not fault.warning for fault in faults) or name in entries:
                broken[name] = SpecError(faults) if faults else already(name, document.file)
            elif entry is not None:
                entries[name] = entry
    return Servers({id: entry for id, entry in entries.items() if id not in broken}, broken)


def _found(document: Document) -> Iterator[Found]:
    """Where servers are written. Raises SpecError where something else stands there."""
    Reader.of(sink := Sink(document), (), document.data, "a project")
    if sink.faults:
        raise SpecError(sink.faults)
    for path in _KEYS:
        value = document.get(path) if document.holds(path) else None
        if value is None:
            continue
        if not isinstance(value, dict | list):
            sink.wrong("a mapping or a list of servers", path, value)
            raise SpecError(sink.faults)
        yield Found(path, value)


def _each(document: Document) -> Iterator[tuple[KeyPath, ServerEntry]]:
    for found in _found(document):
        for path, entry, _ in each_server(Sink(document), found):
            if entry is not None:
                yield path, entry


def _place(document: Document, server: str) -> KeyPath:
    for path, entry in _each(document):
        if server in (entry.id, path[-1]):  # the key also of one whose key is no id
            return path
    raise NotFoundError("server", server, near=near(server, [entry.id for _, entry in _each(document)]))


def _replaced(document: Document, entry: ServerEntry) -> Document:
    """Only the keys that say something else are edited, so that the comments of the others stay."""
    path = _place(document, entry.id)
    old = _read(document).entries.get(entry.id)
    if old is not None:
        try:
            edited = _keys_replaced(document, old, entry)
            if _read(edited).entries.get(entry.id) == entry:
                return edited
        except SpecError:
            pass  # a spelling that cannot be edited key by key
    mapping = written(entry)
    return put(document, path, mapping if isinstance(path[-1], str) else {"id": entry.id, **mapping})


def _keys_replaced(document: Document, old: ServerEntry, entry: ServerEntry) -> Document:
    before, after = server_mapping(old), server_mapping(entry)
    for key in before.keys() - after.keys():
        document = remove(document, old.origin.path(key))
    for key in after:
        if before.get(key) != after[key]:
            document = put(document, old.origin.path(key), after[key])
    return document


def _encoding(path: Path) -> tuple[bytes, str]:
    with path.open("rb") as file:
        head = file.read(3)
    return next(((bom, name) for bom, name in _BOMS.items() if head.startswith(bom)), (b"", "utf-8"))
