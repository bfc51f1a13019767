"""Runs in a database: a row for each run, and a row for each entry of its record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from luthier.errors import RecordError, RunLostError, SecretError
from luthier.secrets.cipher import Sealed
from luthier.store.sqlite_writer import TakenError
from luthier.workflows.record import decode, encode, withholds
from luthier.workflows.runs import RunRow, Waiting

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from luthier.secrets.cipher import KeyRing
    from luthier.secrets.keys import Keys
    from luthier.store.database import Database
    from luthier.workflows.record import Entry
    from luthier.workflows.runs import Wanted

_FIELDS = RunRow.__struct_fields__
_COLUMNS = ", ".join(_FIELDS)
_VALUES = ", ".join(f":{name}" for name in _FIELDS)
_SELECT = f"SELECT {_COLUMNS} FROM runs"  # noqa: S608  (names of our own, as below)
_CREATE = f"INSERT INTO runs ({_COLUMNS}, stop) VALUES ({_VALUES}, :stop)"  # noqa: S608
_REPLACE = f"UPDATE runs SET ({_COLUMNS}) = ({_VALUES}) WHERE id = :id"  # noqa: S608
_ENTRIES = "run_entries"
_PLACES = ("run", "seq", "entry")
_BEAT = "UPDATE runs SET beat_at = :now WHERE owner = :owner AND status = 'running'"
_OVER = "NOT EXISTS (SELECT 1 FROM runs WHERE root = :root AND ended_at IS NULL)"
_FORGET = f"DELETE FROM run_entries WHERE run IN (SELECT id FROM runs WHERE root = :root) AND {_OVER}"  # noqa: S608
_PRUNE = f"DELETE FROM runs WHERE root = :root AND {_OVER}"  # noqa: S608
_WANTED = {
    "status": "status = :status",
    "ensemble": "ensemble = :ensemble",
    "principal": "principal = :principal",
    "ended_before": "ended_at < :ended_before",
}


class SqlRuns:
    """Writes are transactions of their own; nobody watches for them, so the revision is not counted up.

    With `keys`, entries of durable runs that hold something labelled secret are kept whole too, encrypted.
    """

    def __init__(self, database: Database, keys: Keys | None = None) -> None:
        self._database = database
        self._seals = None if keys is None else Seals(keys)

    def create(self, row: RunRow, entries: Sequence[Entry] = ()) -> None:
        try:
            with self._database.transaction() as transaction:
                transaction.do(_CREATE, {**_written(row), "stop": False})
                if entries:
                    seals = self._seals if row.durable else None
                    transaction.insert(_ENTRIES, _PLACES, _lines(row.id, entries, seals))
        except TakenError:
            raise RunLostError(row.id) from None

    def append(self, run: str, entries: Sequence[Entry], *, row: RunRow | None = None) -> None:
        try:
            with self._database.transaction() as transaction:
                if entries:
                    transaction.insert(_ENTRIES, _PLACES, _lines(run, entries, self._seals))
                if row is not None:
                    transaction.do(_REPLACE, _written(row))
        except TakenError:
            raise RunLostError(run) from None

    def row(self, run: str) -> RunRow | None:
        rows = self._rows("WHERE id = :id", id=run)
        return rows[0] if rows else None

    def read(self, run: str) -> tuple[Entry, ...]:
        rows = self._database.rows("SELECT entry FROM run_entries WHERE run = :run ORDER BY seq", run=run)
        seals = self._seals
        unseal = None if seals is None else lambda sealed, seq: seals.open(sealed, run, seq)
        return decode("\n".join(text for (text,) in rows).encode(), unseal)

    def list(self, wanted: Wanted) -> tuple[RunRow, ...]:
        asked = {name: value for name in _WANTED if (value := getattr(wanted, name)) is not None}
        conditions = [_WANTED[name] for name in asked]
        if not wanted.nested:
            conditions.append("root = id")
        first = self.row(wanted.before) if wanted.before is not None else None
        if first is not None:
            conditions.append("(started_at < :at OR (started_at = :at AND id < :before))")
            asked |= {"at": first.started_at, "before": first.id}
        which = " AND ".join(conditions) or "1 = 1"
        return self._rows(f"WHERE {which} ORDER BY started_at DESC, id DESC LIMIT {wanted.limit:d}", **asked)

    def below(self, root: str) -> tuple[RunRow, ...]:
        return self._rows("WHERE root = :root AND id <> :root", root=root)

    def stop(self, run: str) -> None:
        with self._database.transaction() as transaction:
            transaction.do("UPDATE runs SET stop = :stop WHERE id = :id", {"stop": True, "id": run})

    def stopped(self, runs: Iterable[str]) -> frozenset[str]:
        asked = self._database.rows("SELECT id FROM runs WHERE stop AND status = 'running'")
        return frozenset(runs).intersection(run for (run,) in asked)

    def beat(self, owner: str, now: float) -> None:
        with self._database.transaction() as transaction:
            transaction.do(_BEAT, {"owner": owner, "now": now})

    def prune(self, root: str) -> int:
        with self._database.transaction() as transaction:
            transaction.do(_FORGET, {"root": root})
            return transaction.do(_PRUNE, {"root": root})

    def _rows(self, which: str, **parameters: Any) -> tuple[RunRow, ...]:
        found = self._database.rows(f"{_SELECT} {which}", **parameters)
        return tuple(_read(dict(zip(_FIELDS, values, strict=True))) for values in found)


class Seals:
    """Whole entries, encrypted and bound to their places. Raises SecretError, and RecordError to open one."""

    def __init__(self, keys: Keys) -> None:
        self._keys = keys
        self._ring: KeyRing | None = None

    def closed(self, run: str, entry: Entry) -> str:
        """The entry without what it withholds, and beside it the whole one, sealed."""
        if self._ring is None or not self._ring.keys:
            with self._keys.writing() as ring:
                self._ring = ring
        sealed = self._ring.seal(encode(entry, whole=True).decode(), "run_entries", run, str(entry.seq))
        return encode(entry, sealed=msgspec.to_builtins(sealed))[:-1].decode()

    def open(self, sealed: Any, run: str, seq: int) -> bytes:
        """The whole entry."""
        try:
            if self._ring is None:
                self._ring = self._keys.ring()
            found = msgspec.convert(sealed, Sealed)
            return self._ring.open(found, "run_entries", run, str(seq)).encode()
        except SecretError as error:
            message = f"what is secret in the record of the run {run} cannot be read: {error.message}"
            raise RecordError(message, hint="Bring the key back that it was encrypted with.") from None


def _written(row: RunRow) -> dict[str, Any]:
    return {**msgspec.structs.asdict(row), "waiting": msgspec.json.encode(row.waiting).decode()}


def _read(values: dict[str, Any]) -> RunRow:
    try:
        waiting = msgspec.json.decode(values["waiting"], type=tuple[Waiting, ...])
    except msgspec.MsgspecError as error:
        raise RecordError(f"the row of the run {values['id']} cannot be read: {error}") from error
    return RunRow(**{**values, "waiting": waiting, "durable": bool(values["durable"])})


def _lines(run: str, entries: Sequence[Entry], seals: Seals | None) -> Iterator[tuple[Any, ...]]:
    for entry in entries:
        if seals is not None and withholds(entry):
            yield run, entry.seq, seals.closed(run, entry)
        else:
            yield run, entry.seq, encode(entry)[:-1].decode()
