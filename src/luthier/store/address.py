"""Where a store is: `sqlite:///PATH`, relative to the project, or `postgresql://…`."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from luthier.errors import StoreError
from luthier.spec.places import located
from luthier.spec.project import STORE

DEFAULT = STORE

_SQLITE = "sqlite:///"
_POSTGRES = ("postgresql", "postgres", "postgresql+psycopg")


class Address(msgspec.Struct, frozen=True):
    """A file for SQLite, or a URL for PostgreSQL. `shown` names it to people, without its password."""

    shown: str
    file: Path | None = None
    url: str = ""

    @classmethod
    def of(cls, url: str, root: Path) -> Address:
        """Read a URL; paths are relative to `root`. Raises StoreError."""
        if url.startswith(_SQLITE) and not url.startswith("sqlite:///:") and not {"?", "\0"} & set(url):
            file = located(root, url.removeprefix(_SQLITE))
            return cls(f"the store {file}", file)
        scheme, colon, rest = url.partition("://")
        if colon and scheme in _POSTGRES:
            return cls(_shown(f"postgresql://{rest}"), url=f"postgresql+psycopg://{rest}")
        hint = f"Write `store: {DEFAULT}` or `store: postgresql://USER@HOST/DATABASE`."
        raise StoreError("`store` is neither the path of a SQLite file nor the URL of PostgreSQL.", hint=hint)


def _shown(url: str) -> str:
    """The URL as host and database only: what is left out may be a secret."""
    try:
        parts = urlsplit(url)
        return f"the store postgresql://{parts.hostname or ''}{parts.path}"
    except ValueError:
        return "the store in PostgreSQL"
