"""Keyed memory: what was last written under each key, with its label."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from luthier.errors import NotFoundError
from luthier.text import near

if TYPE_CHECKING:
    from luthier.taint import Labelled


class Memory:
    """Values by key. Held by one run; not for sharing between threads."""

    def __init__(self) -> None:
        self._values: dict[str, Labelled[Any]] = {}

    def read(self, key: str) -> Labelled[Any]:
        """What was last written there. Raises NotFoundError with near keys."""
        try:
            return self._values[key]
        except KeyError:
            raise NotFoundError("memory key", key, near=near(key, self._values)) from None

    def write(self, key: str, value: Labelled[Any]) -> None:
        self._values[key] = value

    def keys(self) -> tuple[str, ...]:
        """All keys, in the order of their first writing."""
        return tuple(self._values)
