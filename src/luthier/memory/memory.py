"""Keyed memory: what was last written under each key, with its label."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from luthier.clock import SystemClock
from luthier.errors import NotFoundError
from luthier.taint import entries_of, gathered
from luthier.text import near

if TYPE_CHECKING:
    from luthier.clock import Clock
    from luthier.taint import Labelled


class Memory:
    """Values by key. Held by one run; not for sharing between threads."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._values: dict[str, Labelled[Any]] = {}
        self._written: dict[str, tuple[float, str]] = {}  # when, and by whom

    def read(self, key: str) -> Labelled[Any]:
        """What was last written there. Raises NotFoundError with near keys."""
        try:
            return self._values[key]
        except KeyError:
            raise NotFoundError("memory key", key, near=near(key, self._values)) from None

    def write(self, key: str, value: Labelled[Any], *, by: str = "") -> None:
        """Keep a value under a key, as it is now; `by` is who wrote it."""
        self._values[key] = gathered(value)
        self._written[key] = self._clock.now(), by

    @property
    def _taint_registry(self) -> dict[str, list[dict[str, str]]]:
        """Each key whose value is not trusted, with the entries of what it came from; for reading only.

        It is made from the labels: there is no second book that could say something else.
        """
        found = {}
        for key, value in self._values.items():
            at, by = self._written[key]
            if entries := entries_of(value.whole, agent=by, at=at):
                found[key] = [entry.to_json() for entry in entries]
        return found

    def keys(self) -> tuple[str, ...]:
        """All keys, in the order of their first writing."""
        return tuple(self._values)
