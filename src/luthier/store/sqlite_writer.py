"""Writes to a SQLite file without SQLAlchemy: what every run does has to be quick."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from luthier.store.sqlite_reader import PATIENCE, unusable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from luthier.store.address import Address


class TakenError(Exception):
    """A row of that key is there already."""


class SqliteWriter:
    """One connection for all threads, a transaction at a time.

    What is committed outlives the process at once, and the machine a moment later.
    """

    def __init__(self, address: Address, file: Path) -> None:
        self._address = address
        self._lock = threading.Lock()
        try:
            self._connection = sqlite3.connect(
                file, timeout=PATIENCE, isolation_level=None, check_same_thread=False
            )
            self._connection.execute("PRAGMA synchronous=NORMAL")
        except sqlite3.Error as error:
            raise unusable(address, error) from error

    @contextmanager
    def transaction(self) -> Iterator[SqliteTransaction]:
        """What is done inside is committed together. Raises TakenError and StoreError, and undoes it then."""
        with self._lock:
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                try:
                    yield SqliteTransaction(self._connection)
                    self._connection.execute("COMMIT")
                except BaseException:
                    if self._connection.in_transaction:
                        self._connection.execute("ROLLBACK")
                    raise
            except sqlite3.IntegrityError as error:
                raise TakenError from error
            except sqlite3.Error as error:
                raise unusable(self._address, error) from error

    def close(self) -> None:
        with self._lock:
            self._connection.close()


class SqliteTransaction:
    """Statements with named parameters."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def do(self, sql: str, parameters: Mapping[str, Any]) -> int:
        """How many rows it changed."""
        return self._connection.execute(sql, parameters).rowcount

    def insert(self, table: str, columns: tuple[str, ...], rows: Iterable[tuple[Any, ...]]) -> None:
        """Rows of a table; these names come from nobody outside."""
        places = ", ".join("?" * len(columns))  # SQLite takes longer to find parameters by their names
        sql = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({places})"  # noqa: S608  (as said)
        self._connection.executemany(sql, rows)
