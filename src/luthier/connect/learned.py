"""What was learned about servers and must outlive the process: the revision that each one answered in.

It lives in `.luthier/state.json` (a section of its own; the other sections are kept as they are), is
written under a lock and put in place in one move. A file that cannot be read is put aside, reported, and
begun afresh.
"""

from __future__ import annotations

import fcntl
import logging
import os
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator

_log = logging.getLogger("luthier.connect")
_ERAS = "eras"


class Learned(Protocol):
    """Memory for eras. `key` is whatever identifies a server and its configuration."""

    def era(self, key: str) -> str | None:
        """The revision that was answered last time, or None."""

    def remember(self, key: str, era: str) -> None:
        """Keep it. What cannot be kept is reported and costs a probe at the next start, no more."""


class MemoryLearned:
    """Remembers as long as it lives."""

    def __init__(self) -> None:
        self._eras: dict[str, str] = {}

    def era(self, key: str) -> str | None:
        return self._eras.get(key)

    def remember(self, key: str, era: str) -> None:
        self._eras[key] = era


class FileLearned:
    """Remembers in a JSON file that several processes may share."""

    def __init__(self, path: Path | str) -> None:
        self._path = Path(path)

    def era(self, key: str) -> str | None:
        found = _section(self._read()).get(key)
        return found if isinstance(found, str) else None

    def remember(self, key: str, era: str) -> None:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with _locked(self._path.with_suffix(".lock")):
                state = self._read()
                self._replace({**state, _ERAS: {**_section(state), key: era}})
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
    section = state.get(_ERAS)
    return section if isinstance(section, dict) else {}


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("ab") as file:
        # Not waited for: this runs on the loop, and what is not remembered now will be at the next start.
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
