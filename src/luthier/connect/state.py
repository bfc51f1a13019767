"""Small facts that outlast a process: JSON values by kind and key, and the store of them in memory."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable

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


def value_text(value: Any | None) -> str | None:
    """A value as it is kept: JSON with sorted keys, so that equal values are equal texts."""
    return None if value is None else _ENCODER.encode(value).decode()


def read_value(text: str | None) -> Any | None:
    """The value of a text that `value_text` made."""
    return None if text is None else msgspec.json.decode(text)
