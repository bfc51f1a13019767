"""What was learned about servers and must outlive the process: the revision each one answered in, and how.

Lessons are kept in the state store. They save a probe and no more: a store that cannot be read or written is
reported, and costs that probe.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from luthier.errors import StoreError
from luthier.redaction import logger

if TYPE_CHECKING:
    from pathlib import Path

    from luthier.connect.state import StateStore

_log = logger("luthier.connect")

ERAS = "eras"
"""The kind of state that lessons are."""


class Lesson(msgspec.Struct, frozen=True):
    """What one server answered to: the revision and, where it is reached by URL, the kind of transport."""

    era: str
    transport: str = ""


class Learned(Protocol):
    """Memory for lessons. `key` is whatever identifies a server and its configuration."""

    def lesson(self, key: str) -> Lesson | None:
        """What was learned last time, or None."""

    def remember(self, key: str, lesson: Lesson) -> None:
        """Keep it. What cannot be kept is reported and costs a probe at the next start, no more."""

    def forget(self, key: str) -> None:
        """It no longer holds. What cannot be forgotten is reported."""


class MemoryLearned:
    """Remembers as long as it lives."""

    def __init__(self) -> None:
        self._lessons: dict[str, Lesson] = {}

    def lesson(self, key: str) -> Lesson | None:
        return self._lessons.get(key)

    def remember(self, key: str, lesson: Lesson) -> None:
        self._lessons[key] = lesson

    def forget(self, key: str) -> None:
        self._lessons.pop(key, None)


class StoredLearned:
    """Remembers in the state store. What is new is written by `save`, so that no connecting waits for it."""

    def __init__(self, state: StateStore) -> None:
        self._state = state
        self._new: dict[str, Lesson | None] = {}  # None: forgotten

    def lesson(self, key: str) -> Lesson | None:
        if key in self._new:
            return self._new[key]
        try:
            return _read(self._state.get(ERAS, key))
        except StoreError as error:
            _log.warning("What was learned of servers cannot be read: they are asked again. %s", error)
            return None

    def remember(self, key: str, lesson: Lesson) -> None:
        self._new[key] = lesson

    def forget(self, key: str) -> None:
        self._new[key] = None

    def save(self) -> None:
        """Write what is new. Belongs into a thread."""
        try:
            while self._new:
                key, lesson = next(iter(self._new.items()))
                if _read(self._state.get(ERAS, key)) != lesson:
                    self._state.put(ERAS, key, None if lesson is None else msgspec.to_builtins(lesson))
                del self._new[key]
        except StoreError as error:
            _log.warning("What was learned of servers cannot be kept: the next start asks again. %s", error)


def take_over(path: Path, state: StateStore) -> None:
    """Move the lessons of the file that versions before the store wrote into the store, once."""
    try:
        try:
            lessons = msgspec.json.decode(path.read_bytes(), type=_File).servers
        except (FileNotFoundError, NotADirectoryError):
            return
        except msgspec.DecodeError as error:
            aside = path.replace(path.with_suffix(".broken.json"))
            _log.warning("%s is broken (%s): it is put aside as %s", path, error, aside.name)
            return
        for key, lesson in lessons.items():
            state.swap(ERAS, key, None, msgspec.to_builtins(lesson))
        path.unlink(missing_ok=True)
        path.with_suffix(".lock").unlink(missing_ok=True)
    except (OSError, StoreError) as error:
        _log.warning("%s cannot be taken over into the store: %s", path, error)


class _File(msgspec.Struct):
    servers: dict[str, Lesson] = {}


def _read(value: Any) -> Lesson | None:
    try:
        return msgspec.convert(value, Lesson)
    except msgspec.ValidationError:
        return None
