"""Registries of servers by the names that people bring from elsewhere, each on one of our stores.

Entries are given as mappings in any spelling that luthier.yaml takes, or as `ServerEntry`.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from luthier.connect.stores import MemoryServers
from luthier.errors import NotFoundError, SpecError
from luthier.runtime.sandbox_config import SandboxConfig
from luthier.spec import ServerEntry, read_entry
from luthier.store import Database, SqlServers

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from luthier.connect import Servers, ServerStore


def MCPServerEntry(**fields: Any) -> ServerEntry:  # noqa: N802  (made like a value of a class of that name)
    """The entry of a server, its fields spelled as in luthier.yaml; `name` is its id where there is none.

    Raises SpecError with every fault.
    """
    id = fields.get("id") or fields.get("name") or ""
    if isinstance(fields.get("sandbox"), SandboxConfig):
        fields["sandbox"] = fields["sandbox"].to_entry()
    return read_entry(id, {key: value for key, value in fields.items() if key != "id"})


MCPServerConfig = MCPServerEntry


class Registry:
    """What both are: `register` and the words of a store, those that may wait as coroutines."""

    def __init__(self, store: ServerStore) -> None:
        self._store = store

    def register(self, entry: ServerEntry | Mapping[str, Any], /) -> None:
        """Add an entry, or put it in the place of the one of its id. Raises SpecError."""
        entry = entry if isinstance(entry, ServerEntry) else MCPServerEntry(**entry)
        try:
            self._store.replace(entry)
        except NotFoundError:
            try:
                self._store.add(entry)
            except SpecError:
                self._store.replace(entry)  # another process has added it meanwhile, or it cannot be kept

    def load(self) -> Servers:
        """All entries, and why others cannot be used: what a Runtime asks for."""
        return self._store.load()

    async def save_server(self, entry: ServerEntry | Mapping[str, Any], /) -> None:
        """As `register`."""
        await asyncio.to_thread(self.register, entry)

    async def load_server(self, server: str) -> ServerEntry | None:
        """The entry of that id, or None. Raises SpecError for a faulty one."""
        try:
            return await asyncio.to_thread(self._store.get, server)
        except NotFoundError:
            return None

    async def list_servers(self) -> list[ServerEntry]:
        """All entries, each checked. Raises SpecError with the faults of those that are none."""
        found = await asyncio.to_thread(self._store.load)
        return [found.get(server) for server in (*found.broken, *found.entries)]

    async def delete_server(self, server: str) -> bool:
        """Whether there was one of that id."""
        try:
            await asyncio.to_thread(self._store.remove, server)
        except NotFoundError:
            return False
        return True


class InMemoryMCPServerRegistry(Registry):
    """Keeps entries as long as it lives."""

    def __init__(self) -> None:
        super().__init__(MemoryServers())

    def clear(self) -> None:
        """Forget all entries."""
        self._store = MemoryServers()


class SQLMCPServerRegistry(Registry):
    """Keeps entries in a database: `sqlite:///PATH` or `postgresql://…`. Paths are relative to `root`."""

    def __init__(self, url: str, *, root: Path | None = None) -> None:
        self._database = Database(url, root)
        super().__init__(SqlServers(self._database))

    def close(self) -> None:
        """Give up its connections; the next use opens others."""
        self._database.close()
