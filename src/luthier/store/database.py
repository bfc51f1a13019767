"""A database as the stores use it: rows are read, and a transaction at a time writes.

It is opened when it is first used, made when it is first written, and brought up to date on the way. SQLite
is read without SQLAlchemy, so that a command that only looks things up starts fast.
"""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from luthier.store.address import DEFAULT, Address
from luthier.store.schema import is_current
from luthier.store.sqlite_reader import SqliteReader, unusable
from luthier.store.sqlite_writer import SqliteWriter

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from sqlalchemy import Connection

    from luthier.store.sql import Appender, SqlEngine

__all__ = ["DEFAULT", "Database"]


class Reader(Protocol):
    """What rows are read with."""

    def rows(self, sql: str, parameters: Mapping[str, Any]) -> list[tuple[Any, ...]]: ...

    def version(self) -> str | None: ...

    def close(self) -> None: ...


class Transaction(Protocol):
    """What is written inside of a transaction: a statement with named parameters, rows of a table."""

    def do(self, sql: str, parameters: Mapping[str, Any], /) -> int: ...

    def insert(self, table: str, columns: tuple[str, ...], rows: Iterable[tuple[Any, ...]], /) -> None: ...


class Database:
    """One database for all threads. Raises StoreError for one that cannot be used."""

    def __init__(self, url: str = DEFAULT, root: Path | None = None) -> None:
        self.address = Address.of(url, root or Path.cwd())
        self._lock = threading.RLock()
        self._reader: Reader | None = None
        self._engine: SqlEngine | None = None
        self._writer: SqliteWriter | None = None

    def rows(self, sql: str, **parameters: Any) -> list[tuple[Any, ...]]:
        """The rows of a query; none where nothing was ever written."""
        reader = self._reader or self._opened()
        return [] if reader is None else reader.rows(sql, parameters)

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction alone with the store, in which the revision has been counted up.

        What is not committed is undone.
        """
        if self._reader is None:
            self._made()
        with self._sql().writing() as connection:
            yield connection

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """A transaction that nobody watches for: the revision is not counted up. Raises TakenError."""
        if self._reader is None:
            self._made()
        if self.address.file is None:
            with self._sql().transaction() as transaction:
                yield transaction
            return
        with self._lock:
            if self._writer is None:
                self._writer = SqliteWriter(self.address, self.address.file)
            writer = self._writer
        with writer.transaction() as quick:
            yield quick

    def appending(self, *, fsync: bool = False) -> Appender:
        """What writes the lines of the audit log, over a connection of its own."""
        if self._reader is None:
            self._made()
        return self._sql().appending(fsync=fsync)

    def exists(self) -> bool:
        """Whether there is one to read: a file, or what a URL names."""
        return self.address.file is None or _exists(self.address.file)

    def standing(self) -> Literal["new", "current", "older"]:
        """How it stands, without a change to it. Raises StoreError for one that cannot be used."""
        file = self.address.file
        if not self.exists():
            return "new"
        reader: Reader = self._sql() if file is None else SqliteReader(self.address, file)
        try:
            version = reader.version()
        finally:
            reader.close()
        if version is None:
            return "new"
        return "current" if is_current(version, self.address) else "older"

    def close(self) -> None:
        """Give up all connections; the next use opens others."""
        with self._lock:
            for part in (self._reader, self._writer, self._engine):
                if part is not None:
                    part.close()
            self._reader = self._writer = self._engine = None

    def _sql(self) -> SqlEngine:
        with self._lock:
            if self._engine is None:
                from luthier.store.sql import SqlEngine

                self._engine = SqlEngine(self.address)
            return self._engine

    def _opened(self) -> Reader | None:
        """The reader of a database with current tables; None where there is no database yet."""
        file = self.address.file
        with self._lock:
            if self._reader is None and self.exists():
                reader = self._sql() if file is None else SqliteReader(self.address, file)
                if not is_current(reader.version(), self.address):
                    self._sql().migrate()
                self._reader = reader
            return self._reader

    def _made(self) -> None:
        """Make what is missing: the folder, and the file for its owner only."""
        file = self.address.file
        if file is not None:
            try:
                file.parent.mkdir(parents=True, exist_ok=True)
                with suppress(FileExistsError):
                    os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
            except OSError as error:
                raise unusable(self.address, OSError(error.strerror)) from error
        self._opened()


def _exists(file: Path) -> bool:
    try:
        return file.stat() is not None
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True  # who opens it is told why that fails
