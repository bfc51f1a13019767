"""What was learned about servers and must outlive the process: the revision each one answered in, and how.

It lives in `.luthier/state.json` (a section of its own; the other sections are kept as they are), is
written under a lock and put in place in one move. A file that cannot be read is put aside, reported, and
begun afresh.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from luthier.redaction import logger

if TYPE_CHECKING:
    from collections.abc import Iterator

_log = logger("luthier.connect")
_SERVERS = "servers"


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


class FileLearned:
    """Remembers in a JSON file that several processes may share."""

    def __init__(self, path: Path | str) -> None:
        self._path = Path(path)

    def lesson(self, key: str) -> Lesson | None:
        found = _section(self._read()).get(key)
        try:
            return msgspec.convert(found, Lesson)
        except msgspec.ValidationError:
            return None

    def remember(self, key: str, lesson: Lesson) -> None:
        self._change(key, msgspec.to_builtins(lesson))

    def forget(self, key: str) -> None:
        if key in _section(self._read()):
            self._change(key, None)

    def _change(self, key: str, lesson: dict[str, Any] | None) -> None:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with _locked(self._path.with_suffix(".lock")):
                state = self._read()
                lessons = {**_section(state), key: lesson}
                if lesson is None:
                    del lessons[key]
                self._replace({**state, _SERVERS: lessons})
        except OSError as error:
            _log.warning("%s cannot be written (%s): the next start will probe again", self._path, error)

    def _read(self) -> dict[str, Any]:
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=dict[str, Any])
        except FileNotFoundError:
            return {}
        except OSError as error:
            _log.warning("%s cannot be read: %s", self._path, error)
            return {}
        except msgspec.DecodeError as error:
            aside = self._path.with_suffix(".broken.json")
            _log.warning("%s is broken (%s): it is put aside as %s", self._path, error, aside.name)
            self._put_aside(aside)
            return {}

    def _put_aside(self, aside: Path) -> None:
        try:
            self._path.replace(aside)
        except OSError as error:
            _log.warning("%s cannot be put aside: %s", self._path, error)

    def _replace(self, state: dict[str, Any]) -> None:
        handle, name = tempfile.mkstemp(dir=self._path.parent, prefix=f"{self._path.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(msgspec.json.format(msgspec.json.encode(state)) + b"\n")
            Path(name).replace(self._path)
        except OSError:
            Path(name).unlink(missing_ok=True)
            raise


def _section(state: dict[str, Any]) -> dict[str, Any]:
    section = state.get(_SERVERS)
    return section if isinstance(section, dict) else {}


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("ab") as file:
        # Not waited for: this runs on the loop, and what is not remembered now will be at the next start.
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
