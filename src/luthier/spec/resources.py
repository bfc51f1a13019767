"""`serve.resources`: files of the project that clients may read, under addresses of their own.

An address with `{names}` in it is a template: each stands for one part of the address, and for the same part
of the file's path.
"""

from __future__ import annotations

import re
from functools import cached_property
from pathlib import PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import unquote

import msgspec

from luthier.spec.reader import Reader
from luthier.spec.words import listed, quoted

if TYPE_CHECKING:
    from luthier.spec.origin import KeyPath
    from luthier.spec.reader import Sink

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s\"<>\\^`|]+")
_HOLE = re.compile(r"\{([^{}]*)\}")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_VALUE = re.compile(r"[^./\\\0][^/\\\0]*")
"""What may stand in a hole: one part of a path, and none that is hidden."""


class Variable(msgspec.Struct, frozen=True, kw_only=True):
    """A hole of a template, or an argument of a prompt. `enum` None: any text."""

    description: str = ""
    enum: tuple[str, ...] | None = None

    def fits(self, value: str) -> bool:
        return self.enum is None or value in self.enum


class Resource(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A file, or where `uri` is a template, those that it leads to. `clients` None: every client."""

    uri: str
    file: str
    name: str = ""
    title: str = ""
    description: str = ""
    mime_type: str = ""
    variables: dict[str, Variable] = {}
    clients: tuple[str, ...] | None = None

    @property
    def is_template(self) -> bool:
        return bool(self.variables)

    def is_for(self, client: str) -> bool:
        return self.clients is None or client in self.clients

    def file_of(self, uri: str) -> str | None:
        """The file that an address leads to, relative to the project; None where this is not about it."""
        match = self._pattern.fullmatch(uri)
        if match is None:
            return None
        values = {name: unquote(value) for name, value in match.groupdict().items()}
        fits = all(
            _VALUE.fullmatch(value) and self.variables[name].fits(value) for name, value in values.items()
        )
        return _HOLE.sub(lambda hole: values[hole[1]], self.file) if fits else None

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        parts = _HOLE.split(self.uri)
        pieces = (f"(?P<{part}>[^/?#]+)" if at % 2 else re.escape(part) for at, part in enumerate(parts))
        return re.compile("".join(pieces))


def read_resources(reader: Reader) -> tuple[Resource, ...]:
    """A list of mappings."""
    found = reader.take("resources")
    if found is None:
        return ()
    if not isinstance(found.value, list):
        reader.sink.wrong("a list of resources", *found)
        return ()
    read: dict[str, Resource] = {}
    for index, value in enumerate(found.value):
        path: KeyPath = (*found.path, index)
        resource = _read(reader.sink, path, value)
        if resource is not None and resource.uri in read:
            reader.sink.add(f"{quoted(resource.uri)} is the address of another resource", path)
        elif resource is not None:
            read[resource.uri] = resource
    return tuple(read.values())


def _read(sink: Sink, path: KeyPath, value: object) -> Resource | None:
    reader = Reader.of(sink, path, value, "a resource")
    if reader is None:
        return None
    uri, file = reader.text("uri", required=True) or "", reader.text("file", required=True) or ""
    inner = reader.inner("variables")
    holes = _holes(reader, uri, file) if uri and file else {}
    said = {name: read_variable(inner, name) for name in inner.data} if inner else {}
    for name in said.keys() - holes.keys():
        sink.add(f"{quoted(name)} is no variable of `uri`", (*reader.places["variables"], name), key=True)
    resource = Resource(
        uri=uri,
        file=file,
        name=reader.text("name") or PurePosixPath(file).name,
        title=reader.text("title") or "",
        description=reader.text("description") or "",
        mime_type=reader.text("mime_type") or "",
        variables={name: said.get(name, Variable()) for name in holes},
        clients=reader.texts("clients"),
    )
    reader.done()
    return resource


def read_variable(reader: Reader, name: str) -> Variable:
    """What is said of one variable; null says nothing."""
    found = reader.take(name)
    inner = Reader.of(reader.sink, found.path, found.value, quoted(name)) if found else None
    if inner is None:
        return Variable()
    variable = Variable(description=inner.text("description") or "", enum=inner.texts("enum"))
    inner.done()
    return variable


def _holes(reader: Reader, uri: str, file: str) -> dict[str, None]:
    """The variables of the address, in order; tells what is wrong with it, and with the file for them."""
    sink, places = reader.sink, reader.places
    if not _URI.fullmatch(uri):
        sink.add(f"{quoted(uri)} is no address, such as docs://guide", places["uri"])
        return {}
    names, used = _HOLE.findall(uri), _HOLE.findall(file)
    for name in names:
        if not _NAME.fullmatch(name):
            sink.add(f"{quoted('{' + name + '}')} is no variable: letters, digits and `_`", places["uri"])
            return {}
    if len(set(names)) < len(names):
        sink.add("a variable stands twice in `uri`", places["uri"])
    if set(names) != set(used):
        wrong = listed(sorted(set(names) ^ set(used)))
        sink.add(
            f"`uri` and `file` must have the same variables; only one of them has {wrong}", places["file"]
        )
    parts = PurePosixPath(file).parts
    if PurePosixPath(file).is_absolute() or ".." in parts or "\0" in file or "\\" in file:
        sink.add("`file` is a path inside the project, with `/`", places["file"])
    elif names and _HOLE.search(parts[0]):
        message = "the files of a template lie in a folder of their own, not beside luthier.yaml"
        sink.add(message, places["file"])
    return dict.fromkeys(names)
