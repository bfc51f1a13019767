"""The names under which tools go to a model: `server__tool`, and the table that leads back.

A name is plain where nothing is lost by it. Else it ends in a hash of the address: where a character is not
allowed, where it is too long, and where the double underscore could be read in another place (`a__b` + `c`,
`a` + `b__c`). So a tool has the same name whatever other tools stand beside it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from hashlib import sha256
from typing import TYPE_CHECKING

from luthier.errors import NotFoundError
from luthier.text import near

if TYPE_CHECKING:
    from collections.abc import Iterable

    from luthier.uri import ToolUri

MAX_LENGTH = 64
SEPARATOR = "__"

_ALLOWED = re.compile(r"[A-Za-z0-9_-]{1,64}")
_FORBIDDEN = re.compile(r"[^A-Za-z0-9_-]")
_HASH_LENGTH = 8


def model_name(uri: ToolUri) -> str:
    """At most 64 characters of `[A-Za-z0-9_-]`; the same for the same tool, always."""
    plain = _plain(uri)
    return plain if _ALLOWED.fullmatch(plain) and _unmistakable(uri, plain) else _hashed(uri, _HASH_LENGTH)


class NameTable:
    """The names of one set of tools. A name is looked up here, never taken apart."""

    def __init__(self, uris: Iterable[ToolUri]) -> None:
        self._names = dict(sorted(_distinct(set(uris)).items()))
        self._uris = {name: uri for uri, name in self._names.items()}

    @property
    def names(self) -> tuple[str, ...]:
        """All names, in the order of their addresses."""
        return tuple(self._uris)

    def name_of(self, uri: ToolUri) -> str:
        """The name of one tool of the set. Raises NotFoundError."""
        try:
            return self._names[uri]
        except KeyError:
            addresses = map(str, self._names)
            raise NotFoundError("tool", str(uri), near=near(str(uri), addresses)) from None

    def uri_of(self, name: str) -> ToolUri:
        """The tool behind a name. Raises NotFoundError with the nearest names."""
        try:
            return self._uris[name]
        except KeyError:
            raise NotFoundError("tool", name, near=near(name, self._uris)) from None


def _plain(uri: ToolUri) -> str:
    return f"{uri.server}{SEPARATOR}{uri.name}" if uri.scheme == "mcp" else uri.name


def _unmistakable(uri: ToolUri, plain: str) -> bool:
    server, separator, _ = plain.partition(SEPARATOR)
    return server == uri.server if uri.scheme == "mcp" else not separator


def _hashed(uri: ToolUri, length: int) -> str:
    digest = sha256(str(uri).encode()).hexdigest()[:length]
    readable = _FORBIDDEN.sub("_", _plain(uri))[: MAX_LENGTH - length - 1]
    return f"{readable}_{digest}"


def _distinct(uris: set[ToolUri]) -> dict[ToolUri, str]:
    """Two tools of one name (a built-in and a custom one, or by a chance of the hash) get longer hashes."""
    names = {uri: model_name(uri) for uri in uris}
    length = _HASH_LENGTH
    while True:
        sharing: dict[str, list[ToolUri]] = defaultdict(list)
        for uri, name in names.items():
            sharing[name].append(uri)
        clashing = [uri for group in sharing.values() if len(group) > 1 for uri in group]
        if not clashing:
            return names
        length += _HASH_LENGTH
        names |= {uri: _hashed(uri, length) for uri in clashing}
