"""A file that several processes edit: locked while it is read and written, and replaced in one move.

The lock is on the file itself. As a replaced file is another file, a lock counts only if the file that it is
on is still the one of that name. Readers need no lock: they see the old text or the new one.
"""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import contextmanager, suppress
from stat import S_IMODE
from typing import TYPE_CHECKING

from luthier.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PATIENCE = 10.0
"""Seconds to wait for the lock: it is held for the time of one small edit."""

_POLL = 0.02


@contextmanager
def locked(path: Path, patience: float = PATIENCE) -> Iterator[None]:
    """Hold the lock of an existing file. Raises StoreError when another process keeps it for too long."""
    handle = _taken(path, patience)
    try:
        yield
    finally:
        os.close(handle)  # and with it the lock


def _taken(path: Path, patience: float) -> int:
    last = time.monotonic() + patience
    while True:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        taken = False
        try:
            taken = _takes(handle, path)
            if taken:
                return handle
        finally:
            if not taken:
                os.close(handle)
        if time.monotonic() >= last:
            hint = "Try again when it has ended."
            raise StoreError(f"{path} is being edited by another process.", hint=hint)
        time.sleep(_POLL)


def _takes(handle: int, path: Path) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return os.path.samestat(os.fstat(handle), path.stat())


def replace(path: Path, data: bytes) -> None:
    """Put new content in place of a locked file's, in one move; mode and, where possible, owner stay."""
    path = path.resolve()  # a link stays a link
    old = path.stat()
    fresh = path.with_name(f".{path.name}.new")
    fresh.unlink(missing_ok=True)  # of a process that was killed
    handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "wb") as file:
        os.fchmod(handle, S_IMODE(old.st_mode))
        with suppress(PermissionError):
            os.fchown(handle, old.st_uid, old.st_gid)
        file.write(data)
        file.flush()
        os.fsync(handle)
    fresh.replace(path)
