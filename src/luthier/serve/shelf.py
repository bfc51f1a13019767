"""The files of a project that clients may read as resources, each read anew and never from outside of it."""

from __future__ import annotations

import asyncio
import base64
import mimetypes
from typing import TYPE_CHECKING, Any

from luthier.errors import LuthierError, NotFoundError
from luthier.runtime.library import stamp
from luthier.serve.answer import LABEL
from luthier.serve.offers import OWN
from luthier.spec.places import real
from luthier.taint import TRUSTED

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from luthier.spec import Project, Resource

MAX_BYTES = 10 * 1024 * 1024
"""The largest file that is given out."""

_TEXTS = ("json", "xml", "yaml", "x-yaml", "toml", "javascript", "sql", "x-sh", "x-python")


class Shelf:
    """What `serve.resources` offers."""

    def __init__(self, project: Project) -> None:
        self._root = project.root.resolve()
        self._resources = project.serve.resources

    def listed(self, client: str, *, templates: bool) -> list[dict[str, Any]]:
        """The definitions of resources, or of templates of them, as the protocol has them."""
        return [_defined(one) for one in self._for(client) if one.is_template is templates]

    async def read(self, client: str, uri: str) -> dict[str, Any]:
        """The contents at an address. Raises NotFoundError, LuthierError where they cannot be given out."""
        resource, path = self.found(client, uri)
        data = await asyncio.to_thread(_data, path, uri)
        return contents(uri, data, resource.mime_type or mime_of(path, data))

    def found(self, client: str, uri: str) -> tuple[Resource, Path]:
        """The resource that an address belongs to, and its file. Raises NotFoundError."""
        for resource in self._for(client):
            if (file := resource.file_of(uri)) is None:
                continue
            if (path := inside(self._root, file)) is not None:
                return resource, path
        raise NotFoundError("resource", uri)

    def stamp(self, client: str, uri: str) -> object:
        """What changes when the file at an address does. Raises NotFoundError."""
        return stamp(self.found(client, uri)[1])

    def template(self, client: str, uri: str) -> Resource | None:
        """The template that is written so, or the resource at that address."""
        return next((one for one in self._for(client) if one.uri == uri), None)

    def _for(self, client: str) -> Iterator[Resource]:
        """A token of a trigger's own opens its ensemble and nothing else."""
        own = client.startswith(OWN)
        return (one for one in self._resources if not own and one.is_for(client))


def inside(root: Path, file: str) -> Path | None:
    """The file, if there is one in the project; links that lead out, or into its state, lead nowhere."""
    path = real(root / file)
    state = root / ".luthier"
    fits = path.is_relative_to(root) and not path.is_relative_to(state) and path.is_file()
    return path if fits else None


def contents(uri: str, data: bytes, mime: str) -> dict[str, Any]:
    """A file as the protocol has it: text where it is one, else base64."""
    found: dict[str, Any] = {"uri": uri, "mimeType": mime, "_meta": {LABEL: TRUSTED.to_json()}}
    if is_text(mime):
        try:
            return {**found, "text": data.decode("utf-8")}
        except UnicodeDecodeError:
            pass
    return {**found, "blob": base64.b64encode(data).decode()}


def mime_of(path: Path, data: bytes) -> str:
    """The type of a file by its name, else by whether it is text."""
    if known := mimetypes.guess_type(path.name)[0]:
        return known
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return "application/octet-stream"
    return "text/plain"


def is_text(mime: str) -> bool:
    """Whether files of that type are read as text."""
    kind, _, name = mime.partition(";")[0].strip().partition("/")
    return kind == "text" or name in _TEXTS or name.endswith(("+json", "+xml"))


def _data(path: Path, uri: str) -> bytes:
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise NotFoundError("resource", uri) from error
    if len(data) > MAX_BYTES:
        raise LuthierError(f"{uri} is larger than {MAX_BYTES // 1024 // 1024} MiB.")
    return data


def _defined(resource: Resource) -> dict[str, Any]:
    address = "uriTemplate" if resource.is_template else "uri"
    found = {
        address: resource.uri,
        "name": resource.name,
        "title": resource.title,
        "description": resource.description,
        "mimeType": resource.mime_type or (mimetypes.guess_type(resource.file)[0] or ""),
    }
    return {key: value for key, value in found.items() if value}
