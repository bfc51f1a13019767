"""The audit log in the store: the same lines as in files, a row each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from luthier.errors import StoreError
from luthier.govern.audit import ChainedAudit, segment_names

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from luthier.clock import Clock
    from luthier.govern import AuditKey, CheckpointFile
    from luthier.store.database import Database
    from luthier.store.sql import Appender


class SqlSegments:
    """The segments of all processes that share the store."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def names(self) -> list[str]:
        rows = self._rows("SELECT DISTINCT segment FROM audit")
        return sorted((name for (name,) in rows), key=lambda name: name.removesuffix(".jsonl"))

    def read(self, name: str) -> bytes:
        rows = self._rows("SELECT line FROM audit WHERE segment = :name ORDER BY number", name=name)
        return "".join(line + "\n" for (line,) in rows).encode()

    def ends(self, name: str) -> tuple[bytes, bytes]:
        query = "SELECT line FROM audit WHERE segment = :name ORDER BY number"
        first, last = (self._rows(f"{query} {way} LIMIT 1", name=name) for way in ("ASC", "DESC"))
        return (first[0][0].encode(), last[0][0].encode()) if first and last else (b"", b"")

    def place(self, name: str) -> str:
        return f"{self._database.address.shown}, table audit, segment {name}"

    def _rows(self, sql: str, **parameters: object) -> list[tuple[str, ...]]:
        try:
            return self._database.rows(sql, **parameters)
        except StoreError as error:
            raise OSError(error.message) from error


class SqlSink:
    """One segment: what is written at once is one transaction, over one connection."""

    def __init__(self, database: Database, *, fsync: bool = False) -> None:
        self._database = database
        self._segments = SqlSegments(database)
        self._fsync = fsync
        self._name = ""
        self._number = 0
        self._lines: Appender | None = None

    def begin(self, now: float) -> str:
        there = set(self._segments.names())
        self._name = next((name for name in segment_names(now) if name not in there), "")
        if not self._name:
            raise OSError(f"too many segments of the name {segment_names(now)[0]}")
        try:
            self._lines = self._database.appending(fsync=self._fsync)
        except StoreError as error:
            raise OSError(error.message) from error
        return self._name

    def append(self, lines: Sequence[bytes]) -> None:
        if self._lines is None:
            raise OSError("it is closed")
        try:
            self._lines.add(self._name, self._number, [line[:-1].decode() for line in lines])
        except StoreError as error:
            raise OSError(error.message) from error
        self._number += len(lines)

    def end(self) -> None:
        lines, self._lines = self._lines, None
        if lines is not None:
            lines.close()


class SqlAudit(ChainedAudit):
    """The log in a database: one segment of it, begun with the first record."""

    waits = True

    def __init__(
        self,
        database: Database,
        *,
        key: Callable[[], AuditKey],
        checkpoints: CheckpointFile | None = None,
        clock: Clock | None = None,
        fsync: bool = False,
        policies: str = "",
    ) -> None:
        super().__init__(
            SqlSink(database, fsync=fsync),
            SqlSegments(database),
            key=key,
            checkpoints=checkpoints,
            clock=clock,
            where=database.address.shown,
            policies=policies,
        )
