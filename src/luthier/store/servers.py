"""Server entries in a database: each a row that holds what luthier.yaml would say of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from luthier.connect.stores import Servers, already, checked, still
from luthier.errors import Fault, NotFoundError, SpecError
from luthier.spec import read_entry, written
from luthier.text import near

if TYPE_CHECKING:
    from luthier.spec import ServerEntry
    from luthier.store.database import Database

_ENCODER = msgspec.json.Encoder(order="deterministic")


class SqlServers:
    """A row is checked whenever it is read, as a project file is: one that is faulty costs only itself."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def load(self) -> Servers:
        entries: dict[str, ServerEntry] = {}
        broken: dict[str, SpecError] = {}
        for id, text in self._database.rows("SELECT id, entry FROM mcp_servers ORDER BY added"):
            try:
                entries[id] = self._entry(id, text)
            except SpecError as error:
                broken[id] = error
        return Servers(entries, broken)

    def get(self, server: str) -> ServerEntry:
        rows = self._database.rows("SELECT entry FROM mcp_servers WHERE id = :id", id=server)
        return self._entry(server, rows[0][0]) if rows else self.load().get(server)

    def add(self, entry: ServerEntry) -> None:
        text = _text(entry)
        with self._database.writing() as connection:
            import sqlalchemy as sa

            from luthier.store.sql import REVISION, SERVERS

            if connection.execute(sa.select(SERVERS.c.id).where(SERVERS.c.id == entry.id)).first():
                raise already(entry.id, self._database.address.shown)
            added = sa.select(REVISION.c.number).scalar_subquery()
            connection.execute(sa.insert(SERVERS).values(id=entry.id, entry=text, added=added))
            connection.commit()

    def replace(self, entry: ServerEntry, *, was: ServerEntry | None = None) -> None:
        text = _text(entry)
        with self._database.writing() as connection:
            import sqlalchemy as sa

            from luthier.store.sql import SERVERS

            row = SERVERS.c.id == entry.id
            there = connection.execute(sa.select(SERVERS.c.entry).where(row)).scalar()
            if there is None:
                raise self._absent(entry.id)
            if was is not None:
                still(self._entry(entry.id, there), was)
            connection.execute(sa.update(SERVERS).where(row).values(entry=text))
            connection.commit()

    def remove(self, server: str) -> None:
        with self._database.writing() as connection:
            import sqlalchemy as sa

            from luthier.store.sql import SERVERS

            if not connection.execute(sa.delete(SERVERS).where(SERVERS.c.id == server)).rowcount:
                raise self._absent(server)
            connection.commit()

    def _entry(self, id: str, text: str) -> ServerEntry:
        row = f"row {id!r} of mcp_servers in {self._database.address.shown}"
        try:
            mapping = msgspec.json.decode(text)
        except msgspec.DecodeError as error:
            raise SpecError([Fault(f"this is not JSON: {error}", row)]) from error
        return read_entry(id, mapping, file=row)

    def _absent(self, server: str) -> NotFoundError:
        ids = [id for (id,) in self._database.rows("SELECT id FROM mcp_servers")]
        return NotFoundError("server", server, near=near(server, ids))


def _text(entry: ServerEntry) -> str:
    return _ENCODER.encode(written(checked(entry))).decode()
