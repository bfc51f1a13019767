"""Reads a SQLite file without SQLAlchemy: a program that only looks things up need not load it."""

from __future__ import annotations

import sqlite3
import threading
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from luthier.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from luthier.store.address import Address

PATIENCE = 10.0
"""Seconds that SQLite waits for another process to end its write."""

_VERSION = "SELECT version_num FROM alembic_version"
_TABLE = "SELECT 1 FROM sqlite_master WHERE name = 'alembic_version'"


class SqliteReader:
    """One connection for all threads: a read of one row takes some microseconds."""

    def __init__(self, address: Address, file: Path) -> None:
        self._address = address
        self._lock = threading.Lock()
        try:
            # Writable, as the reader of a log may have to take part in keeping it; nothing is written here.
            self._connection = sqlite3.connect(
                f"file:{quote(str(file))}?mode=rw",
                uri=True,
                timeout=PATIENCE,
                isolation_level=None,
                check_same_thread=False,
            )
        except sqlite3.Error as error:
            raise unusable(address, error) from error

    def rows(self, sql: str, parameters: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        try:
            with self._lock:
                return self._connection.execute(sql, parameters).fetchall()
        except sqlite3.Error as error:
            raise unusable(self._address, error) from error

    def version(self) -> str | None:
        """The version of the schema; None where there is none yet."""
        versions = self.rows(_VERSION, {}) if self.rows(_TABLE, {}) else []
        return str(versions[0][0]) if versions else None

    def close(self) -> None:
        with self._lock:
            self._connection.close()


def unusable(address: Address, error: BaseException, hint: str = "") -> StoreError:
    """The error for a store that cannot be used: what the database said of it, and no statement or value."""
    lines = str(error).strip().splitlines()
    reason = lines[0].removesuffix(".") if lines else type(error).__name__
    where = address.shown
    return StoreError(f"{where[0].upper()}{where[1:]} cannot be used: {reason}.", hint=hint or _hint(address))


def _hint(address: Address) -> str:
    if address.file is not None:
        return "See that the file and its folder can be written, or name another under `store`."
    return "See that the server runs and lets you in; `store` in luthier.yaml says where it is."
