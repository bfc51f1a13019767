"""Tokens in a file that only its owner can read and that several processes share: `.luthier/tokens.json`.

With keys they are encrypted; what was written without is read still. What does not open needs a new login.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from luthier.clock import Clock, Deadline, SystemClock, sleep
from luthier.errors import SecretError
from luthier.redaction import logger
from luthier.secrets import Secret
from luthier.secrets.cipher import Sealed
from luthier.wire.auth.pool import Pool
from luthier.wire.auth.tokens import Grant

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from luthier.secrets.keys import Keys

_log = logger("luthier.wire.auth")

_VERSION = 1
_POLL = 0.05  # seconds between tries for a lock that another process holds
_PATIENCE = 90.0  # seconds: longer than any renewal takes


class _File(msgspec.Struct):
    version: int = _VERSION
    grants: dict[str, msgspec.Raw] = {}


class FileTokens:
    """Every look reads the file anew; every change replaces it in one move, under a lock."""

    def __init__(self, path: Path | str, clock: Clock | None = None, keys: Keys | None = None) -> None:
        self.pool = Pool()
        self._path = Path(path)
        self._clock = clock or SystemClock()
        self._keys = keys

    async def load(self, key: str) -> Grant | None:
        raw = self._read().grants.get(key)
        if raw is None:
            return None
        try:
            return msgspec.json.decode(self._opened(key, raw), type=Grant, dec_hook=_hidden)
        except (msgspec.DecodeError, SecretError) as error:
            _log.warning("%s: an entry cannot be read and is left out (%s)", self._path, error)
            return None

    async def save(self, key: str, grant: Grant) -> None:
        encoded = msgspec.Raw(self._sealed(key, msgspec.json.encode(grant, enc_hook=_revealed)))
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with _locked(self._lock("")):
            file = self._read(aside=True)
            file.grants[key] = encoded
            self._replace(file)

    def _sealed(self, key: str, text: bytes) -> bytes:
        if self._keys is None:
            return text
        try:
            with self._keys.writing() as ring:
                return msgspec.json.encode(ring.seal(text.decode(), "tokens", key, "grant"))
        except SecretError as error:
            raise OSError(str(error)) from None  # what a store raises that cannot keep a grant

    def _opened(self, key: str, raw: msgspec.Raw) -> bytes:
        if self._keys is None:
            return bytes(raw)
        try:
            sealed = msgspec.json.decode(raw, type=Sealed)
        except msgspec.ValidationError:
            return bytes(raw)  # it was written before there were keys
        return self._keys.ring().open(sealed, "tokens", key, "grant").encode()

    @asynccontextmanager
    async def hold(self, key: str) -> AsyncIterator[None]:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        path = self._lock(f"-{key}")
        async with Deadline(self._clock, _PATIENCE):
            handle = await self._taken(path)
        try:
            yield
        finally:
            os.close(handle)  # and with it the lock

    async def _taken(self, path: Path) -> int:
        while True:
            handle = _opened(path)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(handle)
            else:
                return handle
            await sleep(self._clock, _POLL)

    def _lock(self, name: str) -> Path:
        return self._path.with_name(f"{self._path.stem}{name}.lock")

    def _read(self, *, aside: bool = False) -> _File:
        try:
            file = msgspec.json.decode(self._path.read_bytes(), type=_File)
        except FileNotFoundError:
            return _File()
        except msgspec.DecodeError:
            file = None
        if file is not None and file.version == _VERSION:
            return file
        _log.warning("%s cannot be read: a new login is needed", self._path)
        if aside:
            self._path.replace(self._path.with_suffix(".broken.json"))
        return _File()

    def _replace(self, file: _File) -> None:
        fresh = self._path.with_name(f"{self._path.name}.new")
        fresh.unlink(missing_ok=True)  # of a process that was killed
        handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "wb") as writer:
            writer.write(msgspec.json.encode(file) + b"\n")
            writer.flush()
            os.fsync(handle)  # a rotated token is given once
        fresh.replace(self._path)


def _opened(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    handle = _opened(path)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)  # waited for: it is held for the time of one small write
        yield
    finally:
        os.close(handle)


def _revealed(value: Any) -> Any:
    if isinstance(value, Secret):
        return value.reveal()
    raise TypeError(type(value).__name__)


def _hidden(kind: type, value: Any) -> Any:
    if kind is Secret and isinstance(value, str):
        return Secret(value)
    raise TypeError(kind.__name__)
