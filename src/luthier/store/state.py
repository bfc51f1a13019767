"""State in a database: the facts of all processes that share it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from luthier.connect.state import read_value, value_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from luthier.store.database import Database


class SqlState:
    """A row for each value. Reading one row is short enough for a loop; writing belongs into a thread."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, kind: str, key: str) -> Any | None:
        rows = self._database.rows(
            "SELECT value FROM state WHERE kind = :kind AND name = :name", kind=kind, name=key
        )
        return read_value(rows[0][0]) if rows else None

    def list(self, kind: str) -> dict[str, Any]:
        rows = self._database.rows("SELECT name, value FROM state WHERE kind = :kind", kind=kind)
        return {name: read_value(text) for name, text in sorted(rows)}

    def put(self, kind: str, key: str, value: Any) -> None:
        self._change(kind, key, value_text(value), lambda _: True)

    def delete(self, kind: str, key: str) -> None:
        self._change(kind, key, None, lambda _: True)

    def swap(self, kind: str, key: str, expected: Any | None, value: Any | None) -> bool:
        wanted = value_text(expected)
        return self._change(kind, key, value_text(value), lambda there: there == wanted)

    def revision(self) -> int:
        rows = self._database.rows("SELECT number FROM revision")
        return int(rows[0][0]) if rows else 0

    def _change(self, kind: str, key: str, text: str | None, allowed: Callable[[str | None], bool]) -> bool:
        with self._database.writing() as connection:
            import sqlalchemy as sa

            from luthier.store.sql import STATE

            row = (STATE.c.kind == kind) & (STATE.c.name == key)
            there = connection.execute(sa.select(STATE.c.value).where(row)).scalar()
            if not allowed(there):
                return False
            if text == there:
                return True
            if text is None:
                connection.execute(sa.delete(STATE).where(row))
            elif there is None:
                connection.execute(sa.insert(STATE).values(kind=kind, name=key, value=text))
            else:
                connection.execute(sa.update(STATE).where(row).values(value=text))
            connection.commit()
            return True
