"""SQLAlchemy's part of the store: the tables, the engine, transactions, and the schema brought up to date.

The only module that loads SQLAlchemy when it is imported; it is imported when something is to be written, or
read from PostgreSQL.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy import event

from luthier.store.schema import VERSIONS, is_current
from luthier.store.sqlite_reader import PATIENCE, unusable
from luthier.store.sqlite_writer import TakenError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from luthier.store.address import Address

TABLES = sa.MetaData()

STATE = sa.Table(
    "state",
    TABLES,
    sa.Column("kind", sa.Text, primary_key=True),
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("value", sa.Text, nullable=False),  # JSON
)
SERVERS = sa.Table(
    "mcp_servers",
    TABLES,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("entry", sa.Text, nullable=False),  # JSON: the mapping that luthier.yaml would hold
    sa.Column("added", sa.BigInteger, nullable=False),  # the revision that added it
)
AUDIT = sa.Table(
    "audit",
    TABLES,
    sa.Column("segment", sa.Text, primary_key=True),
    sa.Column("number", sa.BigInteger, primary_key=True),
    sa.Column("line", sa.Text, nullable=False),  # JSON, as in the files of the log
)
RUNS = sa.Table(
    "runs",
    TABLES,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("ensemble", sa.Text, nullable=False),
    sa.Column("status", sa.Text, nullable=False),
    sa.Column("principal", sa.Text, nullable=False),
    sa.Column("started_at", sa.Double, nullable=False),  # Unix seconds, as all times here
    sa.Column("ended_at", sa.Double),
    sa.Column("parent", sa.Text, nullable=False),
    sa.Column("root", sa.Text, nullable=False),
    sa.Column("durable", sa.Boolean, nullable=False),
    sa.Column("waiting", sa.Text, nullable=False),  # JSON
    sa.Column("owner", sa.Text, nullable=False),
    sa.Column("beat_at", sa.Double, nullable=False),
    sa.Column("file", sa.Text, nullable=False),
    sa.Column("stop", sa.Boolean, nullable=False),  # somebody asks its owner to end it
    sa.Index("runs_by_age", "started_at", "id"),
    sa.Index("runs_by_root", "root"),
)
ENTRIES = sa.Table(
    "run_entries",
    TABLES,
    sa.Column("run", sa.Text, primary_key=True),
    sa.Column("seq", sa.BigInteger, primary_key=True),
    sa.Column("entry", sa.Text, nullable=False),  # JSON, as `workflows/record.py` writes it
)
REVISION = sa.Table(
    "revision",
    TABLES,
    sa.Column("number", sa.BigInteger, nullable=False),  # one row, counted up by each transaction that writes
)

# Alembic's own, made by us where all tables are new: alembic need not be loaded for that.
_VERSION = sa.Table(
    "alembic_version", sa.MetaData(), sa.Column("version_num", sa.String(32), primary_key=True)
)

MIGRATIONS = Path(__file__).parent / "migrations"
_LOCK = 0x6C757468  # of PostgreSQL, held while the schema is brought up to date
_CONNECTING = 5  # seconds for PostgreSQL to let us in
_TURN = 0.005  # seconds between two tries to have a new file of SQLite for ourselves
_SILENCE = 10_000  # milliseconds for its end of a connection to answer


class SqlEngine:
    """Transactions that write, one at a time, and reads for databases that SQLite's reader cannot read."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._busy = 0  # connections in use
        self._closed = False
        self._idle = threading.Condition()
        try:
            self._engine = _engine(address)
        except ModuleNotFoundError as error:
            hint = "Run: pip install 'luthier[postgres]'"
            raise unusable(address, error, hint) from error
        except (sa.exc.ArgumentError, ValueError):
            raise unusable(address, ValueError("its URL cannot be read")) from None  # it may hold a password

    def rows(self, sql: str, parameters: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        with self._connected() as connection:
            alone = connection.execution_options(isolation_level="AUTOCOMMIT")
            return [tuple(row) for row in alone.execute(sa.text(sql), dict(parameters))]

    @contextmanager
    def writing(self) -> Iterator[sa.Connection]:
        """A transaction alone with the store. What is not committed is undone."""
        with self._connected() as connection:
            # Counted first: in PostgreSQL the row is the lock that all writers take.
            connection.execute(sa.update(REVISION).values(number=REVISION.c.number + 1))
            yield connection

    @contextmanager
    def transaction(self) -> Iterator[SqlTransaction]:
        """A transaction beside those that take turns: the revision is not counted up. Raises TakenError."""
        with self._connected() as connection:
            try:
                yield SqlTransaction(connection)
                connection.commit()
            except sa.exc.IntegrityError as error:
                raise TakenError from error

    def appending(self, *, fsync: bool) -> Appender:
        """A connection of its own for the lines of the audit log."""
        with self._told():
            return Appender(self._engine.connect(), self._told, fsync=fsync)

    def version(self) -> str | None:
        with self._connected() as connection:
            return _version(connection)

    def migrate(self) -> None:
        """Bring the tables up to date, or make them; of several processes one does it."""
        with self._connected() as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))
            if is_current(_version(connection), self._address):
                return
            if sa.inspect(connection).has_table(_VERSION.name):
                upgrade(connection)
            else:
                make(connection)
            connection.commit()

    def close(self) -> None:
        """Give up all connections, those in use once they are done: a pool that is gone closes none."""
        with self._idle:
            self._closed = True
            self._idle.wait_for(lambda: not self._busy, timeout=PATIENCE)
        self._engine.dispose()

    @contextmanager
    def _connected(self) -> Iterator[sa.Connection]:
        with self._idle:
            if self._closed:
                raise unusable(self._address, ValueError("it is closed"))
            self._busy += 1
        try:
            with self._told(), self._engine.connect() as connection:
                yield connection
        finally:
            with self._idle:
                self._busy -= 1
                self._idle.notify_all()

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except sa.exc.DBAPIError as error:
            raise unusable(self._address, error.orig or error) from error
        except sa.exc.SQLAlchemyError as error:
            raise unusable(self._address, error) from error


class SqlTransaction:
    """Statements with named parameters."""

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection

    def do(self, sql: str, parameters: Mapping[str, Any]) -> int:
        """How many rows it changed."""
        return self._connection.execute(sa.text(sql), dict(parameters)).rowcount

    def insert(self, table: str, columns: tuple[str, ...], rows: Iterable[tuple[Any, ...]]) -> None:
        """Rows of a table."""
        named = [dict(zip(columns, row, strict=True)) for row in rows]
        self._connection.execute(sa.insert(TABLES.tables[table]), named)


class Appender:
    """Writes the lines of the audit log. Nobody watches for them, so the revision is not counted up."""

    def __init__(
        self, connection: sa.Connection, told: Callable[[], AbstractContextManager[None]], *, fsync: bool
    ) -> None:
        self._connection = connection
        self._told = told
        dialect = connection.dialect
        if dialect.name == "sqlite" and not fsync:
            # A line then outlives the process at once, and the machine a moment later.
            driver = connection.connection.driver_connection
            if driver is not None:
                driver.execute("PRAGMA synchronous=NORMAL")
        self._insert = str(AUDIT.insert().compile(dialect=dialect))
        self._named = dialect.positional is False

    def add(self, segment: str, number: int, lines: Sequence[str]) -> None:
        """In one transaction; `number` is that of the first."""
        rows: list[Any] = [(segment, number + further, line) for further, line in enumerate(lines)]
        if self._named:
            rows = [dict(zip(AUDIT.c.keys(), row, strict=True)) for row in rows]
        with self._told():
            self._connection.exec_driver_sql(self._insert, rows)
            self._connection.commit()

    def close(self) -> None:
        self._connection.invalidate()  # its settings are its own
        self._connection.close()


def _engine(address: Address) -> sa.Engine:
    if address.file is None:
        engine = sa.create_engine(
            address.url,
            pool_pre_ping=True,
            hide_parameters=True,
            connect_args={"connect_timeout": _CONNECTING, "tcp_user_timeout": _SILENCE},
        )
        event.listen(engine, "connect", _bounded)
        return engine
    engine = sa.create_engine(
        sa.URL.create("sqlite", database=str(address.file)),
        hide_parameters=True,
        connect_args={"timeout": PATIENCE},
    )
    event.listen(engine, "connect", _connected)
    event.listen(engine, "begin", _begun)
    return engine


def _bounded(connection: Any, _record: object) -> None:
    """Nobody waits for long: not for a writer that stands still, nor the others for us if we do."""
    connection.execute(f"SET lock_timeout = '{PATIENCE:g}s'")
    connection.execute(f"SET idle_in_transaction_session_timeout = '{3 * PATIENCE:g}s'")
    connection.commit()


def _connected(connection: Any, _record: object) -> None:
    connection.isolation_level = None  # transactions are begun below, not by the driver
    until = time.monotonic() + PATIENCE
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            # SQLite waits for others everywhere but here, where a new file is changed to this mode.
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() >= until:
                raise
            time.sleep(_TURN)
        else:
            return


def _begun(connection: sa.Connection) -> None:
    # Only writers come here; one that had begun to read could not become one behind another's back.
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def _version(connection: sa.Connection) -> str | None:
    if not sa.inspect(connection).has_table(_VERSION.name):
        return None
    version = connection.execute(sa.select(_VERSION.c.version_num)).scalar()
    return None if version is None else str(version)


def make(connection: sa.Connection) -> None:
    """Make all tables as they are now, in a database without any."""
    for metadata in (TABLES, _VERSION.metadata):
        metadata.create_all(connection, checkfirst=False)
    connection.execute(sa.insert(REVISION).values(number=0))
    connection.execute(sa.insert(_VERSION).values(version_num=VERSIONS[-1]))


def upgrade(connection: sa.Connection) -> None:
    """Run the scripts that the tables have not seen yet."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
