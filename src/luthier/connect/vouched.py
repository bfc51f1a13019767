"""Files that a launch profile runs: nobody but root and we may have written or exchanged them.

A path is walked link by link. Each folder on the way and the file itself must belong to root or to us, and
must not be writable by others (a sticky folder such as /tmp may be: nobody moves there what is not theirs).
The file is opened once; what is hashed and what is run is then that open file, not whatever the path leads to
by then.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from pathlib import Path

import msgspec

from luthier.errors import LuthierError

_LINKS = 40  # as many as the kernel follows
_BLOCK = 1024 * 1024

_digests: dict[tuple[int, ...], str] = {}
"""Digests by what changes when a file does, so that a large interpreter is read once."""


class UnfitFileError(LuthierError):
    """A file that may not be run; the message says why, without its path."""


class Vouched(msgspec.Struct, frozen=True):
    """An open file, to be closed by the caller, and where the path led in the end."""

    real: Path
    descriptor: int

    def close(self) -> None:
        with contextlib.suppress(OSError):
            os.close(self.descriptor)


def vouch(path: Path, *, sha256: str | None = None, executable: bool = False) -> Vouched:
    """The file, opened, if it is fit to be run. Raises UnfitFileError."""
    try:
        real = _walk(path)
        descriptor = os.open(real, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except (OSError, ValueError) as error:
        raise UnfitFileError(f"cannot be opened: {getattr(error, 'strerror', None) or error}") from error
    try:
        _check(descriptor, sha256, executable=executable)
    except BaseException:
        os.close(descriptor)
        raise
    return Vouched(real, descriptor)


def digest(descriptor: int) -> str:
    """SHA-256 of an open file."""
    seen = os.fstat(descriptor)
    key = (seen.st_dev, seen.st_ino, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns)
    if key not in _digests:
        found, offset = hashlib.sha256(), 0
        while block := os.pread(descriptor, _BLOCK, offset):
            found.update(block)
            offset += len(block)
        _digests[key] = found.hexdigest()
    return _digests[key]


def _walk(path: Path) -> Path:
    """Where the path leads, every folder and link on the way being fit. Raises OSError and UnfitFileError."""
    todo = list(reversed(path.parts[1:]))
    at, links = Path("/"), 0
    while todo:
        _check_folder(at)
        step = at / todo.pop()
        seen = step.lstat()
        if not stat.S_ISLNK(seen.st_mode):
            at = step.parent.parent if step.name == ".." else step
            continue
        if seen.st_uid not in _OURS():
            raise UnfitFileError(f"is reached by a link that belongs to somebody else: {step}")
        links += 1
        if links > _LINKS:
            raise UnfitFileError("is reached by too many links")
        target = step.readlink()
        if target.is_absolute():
            at = Path("/")
        todo += reversed(target.parts[1:] if target.is_absolute() else target.parts)
    return at


def _check_folder(folder: Path) -> None:
    seen = folder.stat()
    if seen.st_uid not in _OURS():
        raise UnfitFileError(f"lies in a folder of somebody else: {folder}")
    if seen.st_mode & 0o022 and not seen.st_mode & stat.S_ISVTX:
        raise UnfitFileError(f"lies in a folder that others may write to: {folder}")


def _check(descriptor: int, sha256: str | None, *, executable: bool) -> None:
    seen = os.fstat(descriptor)
    if not stat.S_ISREG(seen.st_mode):
        raise UnfitFileError("is not a regular file")
    if seen.st_uid not in _OURS():
        raise UnfitFileError("belongs to somebody else than root and us")
    if seen.st_mode & 0o022:
        raise UnfitFileError("may be written to by others")
    if executable and not seen.st_mode & 0o111:
        raise UnfitFileError("is not executable")
    if sha256 is not None and digest(descriptor) != sha256:
        raise UnfitFileError("is not the file that its profile means: the SHA-256 differs")


def _OURS() -> tuple[int, int]:  # noqa: N802  (a constant, but for who we are)
    return (0, os.geteuid())
