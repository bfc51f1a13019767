"""Where the keys of stored secrets are: in the environment, or in a file of the user's own folder."""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from luthier.errors import SecretError
from luthier.secrets.cipher import Key, KeyRing, read_keys
from luthier.secrets.files import read_small

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from contextlib import AbstractContextManager

VARIABLE = "LUTHIER_SECRET_KEY"


class Keys(Protocol):
    """The keys of one store of secrets."""

    def ring(self) -> KeyRing:
        """The keys that there are, none perhaps. Raises SecretError."""
        ...

    def writing(self) -> AbstractContextManager[KeyRing]:
        """Keys to encrypt with, made if there are none; nobody rotates them meanwhile."""
        ...

    def rotating(self) -> AbstractContextManager[KeyRing]:
        """Keys of which the newest is to encrypt everything; the others are dropped when that is done."""
        ...


class EnvironmentKeys:
    """Keys in the variable: who sets it rotates them, by writing a new one before the old."""

    def __init__(self, text: str) -> None:
        self._ring = read_keys(text, where=VARIABLE)

    def ring(self) -> KeyRing:
        return self._ring

    @contextmanager
    def writing(self) -> Iterator[KeyRing]:
        if not self._ring.keys:
            raise SecretError(f"{VARIABLE} holds no key", hint="Make one with: openssl rand -base64 32")
        yield self._ring

    @contextmanager
    def rotating(self) -> Iterator[KeyRing]:
        if len(self._ring.keys) < 2:  # noqa: PLR2004  (the new one and an old one)
            raise SecretError(
                f"{VARIABLE} holds no second key to rotate from",
                hint=f"Set {VARIABLE}=NEW,OLD, rotate, then drop OLD. A new one: openssl rand -base64 32",
            )
        yield self._ring


class FileKeys:
    """Keys in a file that only its owner can read: a line each, the newest first."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def ring(self) -> KeyRing:
        return read_keys(self._text(), where=str(self.path))

    @contextmanager
    def writing(self) -> Iterator[KeyRing]:
        with self._locked():
            ring = self.ring()
            yield ring if ring.keys else self._written((Key.fresh(),))

    @contextmanager
    def rotating(self) -> Iterator[KeyRing]:
        with self._locked():
            # Interrupted from here on, all keys are in the file and every secret opens.
            ring = self._written((Key.fresh(), *self.ring().keys))
            yield ring
            self._written((ring.newest,))

    def _text(self) -> str:
        try:
            data, others = read_small(self.path)
        except FileNotFoundError:
            return ""
        except OSError as error:
            raise self._unusable(error) from None
        if others:
            raise SecretError(f"the key file {self.path} {others}", hint=f"Run: chmod 600 {self.path}")
        return data.decode("ascii", "replace")

    def _written(self, keys: tuple[Key, ...]) -> KeyRing:
        fresh = self.path.with_name(f"{self.path.name}.new")
        try:
            fresh.unlink(missing_ok=True)  # of a process that was killed
            handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(handle, "wb") as file:
                file.write("".join(f"{key.text}\n" for key in keys).encode())
                file.flush()
                os.fsync(handle)  # before anything is encrypted with it
            fresh.replace(self.path)
        except OSError as error:
            raise self._unusable(error) from None
        return KeyRing(keys, where=str(self.path))

    @contextmanager
    def _locked(self) -> Iterator[None]:
        lock = self.path.with_name(f"{self.path.name}.lock")
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise self._unusable(error) from None
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)  # waited for: it is held as long as a few rows are written
            yield
        finally:
            os.close(handle)

    def _unusable(self, error: OSError) -> SecretError:
        hint = f"Give this user a folder for it, or set {VARIABLE}."
        return SecretError(f"the key file {self.path} cannot be used: {error.strerror}", hint=hint)


def find_keys(environ: Mapping[str, str], store: str, *, project: Path) -> Keys:
    """The keys of the store of that id: of the variable if it is set, else of the user's file for it."""
    if text := environ.get(VARIABLE):
        return EnvironmentKeys(text)
    return FileKeys(_folder(environ, project) / f"{store}.key")


def is_beside(keys: Keys, project: Path) -> bool:
    """Whether they lie in the project, as the store mostly does: who copies one has the other."""
    return isinstance(keys, FileKeys) and keys.path.resolve().is_relative_to(project.resolve())


def _folder(environ: Mapping[str, str], project: Path) -> Path:
    """The user's folder for state (XDG Base Directory); a user without a home has only the project's."""
    if state := environ.get("XDG_STATE_HOME"):
        return Path(state) / "luthier" / "secrets"
    if home := environ.get("HOME"):
        return Path(home) / ".local" / "state" / "luthier" / "secrets"
    return project / ".luthier" / "secrets"
