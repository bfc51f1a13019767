"""Small facts that outlast a process: JSON values by kind and key, and the store of them in memory."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_ENCODER = msgspec.json.Encoder(order="sorted")


class StateStore(Protocol):
    """JSON values by kind and key, shared by threads and, where it is stored, by processes.

    None is no value: it stands for absence everywhere. What is handed out is the caller's own. Every method
    is short; one that cannot read or write raises StoreError.
    """

    def get(self, kind: str, key: str) -> Any | None: ...

    def list(self, kind: str) -> dict[str, Any]:
        """All values of a kind, in the order of their keys."""

    def put(self, kind: str, key: str, value: Any) -> None: ...

    def delete(self, kind: str, key: str) -> None:
        """It need not be there."""

    def swap(self, kind: str, key: str, expected: Any | None, value: Any | None) -> bool:
        """Put the value, or delete for None, if what is there is what is expected: all in one move."""

    def revision(self) -> int:
        """A number that grows whenever anything was changed, by any process."""


class MemoryState:
    """Keeps as long as it lives."""

    def __init__(self) -> None:
        self._values: dict[str, dict[str, str]] = {}
        self._revision = 0
        self._lock = threading.Lock()

    def get(self, kind: str, key: str) -> Any | None:
        with self._lock:
            return read_value(self._values.get(kind, {}).get(key))

    def list(self, kind: str) -> dict[str, Any]:
        with self._lock:
            return {key: read_value(text) for key, text in sorted(self._values.get(kind, {}).items())}

    def put(self, kind: str, key: str, value: Any) -> None:
        self._change(kind, key, value_text(value), lambda _: True)

    def delete(self, kind: str, key: str) -> None:
        self._change(kind, key, None, lambda _: True)

    def swap(self, kind: str, key: str, expected: Any | None, value: Any | None) -> bool:
        wanted = value_text(expected)
        return self._change(kind, key, value_text(value), lambda there: there == wanted)

    def revision(self) -> int:
        with self._lock:
            return self._revision

    def _change(self, kind: str, key: str, text: str | None, allowed: Callable[[str | None], bool]) -> bool:
        with self._lock:
            values = self._values.setdefault(kind, {})
            there = values.get(key)
            if not allowed(there):
                return False
            if text == there:
                return True
            self._revision += 1
            if text is None:
                del values[key]
            else:
                values[key] = text
            return True


class AsideState:
    """A store over another one: what is kept of these servers stays in memory and is read from there only."""

    _OF_SERVERS = frozenset({"eras", "pins", "shown"})

    def __init__(self, store: StateStore, servers: Iterable[str]) -> None:
        self._store = store
        self._servers = frozenset(servers)
        self._aside = MemoryState()

    def get(self, kind: str, key: str) -> Any | None:
        return self._of(kind, key).get(kind, key)

    def list(self, kind: str) -> dict[str, Any]:
        there = {key: value for key, value in self._store.list(kind).items() if not self._is_aside(kind, key)}
        return dict(sorted({**there, **self._aside.list(kind)}.items()))

    def put(self, kind: str, key: str, value: Any) -> None:
        self._of(kind, key).put(kind, key, value)

    def delete(self, kind: str, key: str) -> None:
        self._of(kind, key).delete(kind, key)

    def swap(self, kind: str, key: str, expected: Any | None, value: Any | None) -> bool:
        return self._of(kind, key).swap(kind, key, expected, value)

    def revision(self) -> int:
        return self._store.revision() + self._aside.revision()

    def _of(self, kind: str, key: str) -> StateStore:
        return self._aside if self._is_aside(kind, key) else self._store

    def _is_aside(self, kind: str, key: str) -> bool:
        return kind in self._OF_SERVERS and key.partition(":")[0] in self._servers  # eras: `server:hash`


class OwnState:
    """A store that several projects share, as one of them sees it: the pins in it are its own.

    Pins of the time before each project had its own are read where there is nothing newer.
    """

    _OWN = frozenset({"pins", "shown"})

    def __init__(self, store: StateStore, project: str) -> None:
        self._store = store
        self._prefix = f"{project}/"

    def get(self, kind: str, key: str) -> Any | None:
        value = self._store.get(kind, self._key(kind, key))
        return self._store.get(kind, key) if value is None and kind == "pins" else value

    def list(self, kind: str) -> dict[str, Any]:
        there = self._store.list(kind)
        if kind not in self._OWN:
            return there
        cut = len(self._prefix)
        own = {key[cut:]: value for key, value in there.items() if key.startswith(self._prefix)}
        before = there if kind == "pins" else {}
        found = {key: value for key, value in {**before, **own}.items() if "/" not in key}
        return dict(sorted(found.items()))

    def put(self, kind: str, key: str, value: Any) -> None:
        self._store.put(kind, self._key(kind, key), value)

    def delete(self, kind: str, key: str) -> None:
        self._store.delete(kind, self._key(kind, key))

    def swap(self, kind: str, key: str, expected: Any | None, value: Any | None) -> bool:
        own = self._key(kind, key)
        if kind == "pins" and expected is not None and self._store.get(kind, own) is None:
            before = value_text(self._store.get(kind, key))
            return before == value_text(expected) and self._store.swap(kind, own, None, value)
        return self._store.swap(kind, own, expected, value)

    def revision(self) -> int:
        return self._store.revision()

    def _key(self, kind: str, key: str) -> str:
        return self._prefix + key if kind in self._OWN else key


def value_text(value: Any | None) -> str | None:
    """A value as it is kept: JSON with sorted keys, so that equal values are equal texts."""
    return None if value is None else _ENCODER.encode(value).decode()


def read_value(text: str | None) -> Any | None:
    """The value of a text that `value_text` made."""
    return None if text is None else msgspec.json.decode(text)
