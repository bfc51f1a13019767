"""A folder that no path leads out of: each part is opened from the one before it, never through a link.

    with Jail(root) as jail:
        jail.write("a/b.txt", b"…")

What is checked is what is opened, so nobody can put a link in place between the two. A file is replaced as a
whole: who reads sees the old one or the new one.
"""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import stat
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Self

from luthier.errors import StepError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import TracebackType

DEEPEST = 32
LONGEST = 1024
MOST = 100_000
"""Files that a list looks at before it gives up."""

_LONGEST_PART = 255
_PARTIAL = ".luthier-"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_LINKS = (errno.ELOOP, errno.ENOTDIR, errno.EMLINK)


def parts_of(path: str) -> tuple[str, ...]:
    """The parts of a path within a jail. Raises StepError for what is none."""
    parts = tuple(path.split("/"))
    fault = ""
    if not path or path.startswith("/"):
        fault = "begins with /" if path else "is empty"
    elif any(part in ("", ".", "..") for part in parts):
        fault = "has a part that is empty, . or .."
    elif "\0" in path or "\\" in path or not path.isprintable():
        fault = "holds a backslash or a character that cannot be printed"
    elif len(path) > LONGEST or len(parts) > DEEPEST or max(map(_size, parts)) > _LONGEST_PART:
        fault = "is too long or too deep"
    elif any(part.startswith(_PARTIAL) for part in parts):
        fault = f"has a part that begins with {_PARTIAL}, as files do that are being written"
    if fault:
        raise StepError("arguments", f"{path[:200]!r} is no path of a stored file: it {fault}.")
    return parts


def _size(part: str) -> int:
    return len(part.encode())


class Jail:
    """One folder, open. It is made with the first use."""

    def __init__(self, root: Path) -> None:
        root.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._root = os.open(root, _FOLDER)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._root)

    def lock(self) -> None:
        """Be the only one that changes files, until the jail is left; other processes wait."""
        fcntl.flock(self._root, fcntl.LOCK_EX)

    def read(self, path: str, limit: int) -> bytes | None:
        """What a file holds, None where there is none. Raises StepError for what is no plain file."""
        with self._within(path) as (folder, name):
            if folder is None:
                return None
            try:
                file = os.open(name, _READ, dir_fd=folder)
            except FileNotFoundError:
                return None
            with os.fdopen(file, "rb") as stream:
                _judge(path, os.fstat(file))
                found = stream.read(limit + 1)
        if len(found) > limit:
            raise StepError("arguments", f"{path!r} has more than {limit:,} bytes, too many to be read.")
        return found

    def write(self, path: str, data: bytes) -> None:
        """Put a file there, in the place of the one that may be."""
        with self._within(path, make=True) as (folder, name):
            if folder is None:
                raise StepError("code", f"The folder of {path!r} was deleted while it was made.")
            with suppress(FileNotFoundError):
                _judge(path, os.stat(name, dir_fd=folder, follow_symlinks=False))
            partial = f"{_PARTIAL}{secrets.token_hex(8)}"
            try:
                with os.fdopen(os.open(partial, _NEW, 0o600, dir_fd=folder), "wb") as stream:
                    stream.write(data)
                    stream.flush()
                    os.fsync(stream.fileno())
                os.rename(partial, name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                with suppress(OSError):
                    os.unlink(partial, dir_fd=folder)
                raise

    def delete(self, path: str) -> bool:
        """Whether there was one."""
        with self._within(path) as (folder, name):
            if folder is None:
                return False
            try:
                _judge(path, os.stat(name, dir_fd=folder, follow_symlinks=False))
                os.unlink(name, dir_fd=folder)
            except FileNotFoundError:
                return False
        return True

    def files(self, prefix: str = "") -> Iterator[tuple[str, int]]:
        """Paths and sizes of the plain files whose paths begin so."""
        for seen, (path, facts) in enumerate(_walked(self._root, "", prefix, DEEPEST)):
            if seen >= MOST:
                raise StepError("arguments", f"There are more than {MOST:,} files.", hint="Give a `prefix`.")
            yield path, facts.st_size

    @contextmanager
    def _within(self, path: str, *, make: bool = False) -> Iterator[tuple[int | None, str]]:
        """The open folder of a file, None where there is none, and the file's name in it."""
        *folders, name = parts_of(path)
        folder: int | None = os.dup(self._root)
        try:
            for part in folders:
                if folder is None:
                    break
                if make:
                    with suppress(FileExistsError):
                        os.mkdir(part, 0o700, dir_fd=folder)
                above, folder = folder, None  # closed whatever comes
                try:
                    with suppress(FileNotFoundError):
                        folder = os.open(part, _FOLDER, dir_fd=above)
                finally:
                    os.close(above)
            yield folder, name
        except OSError as error:
            if error.errno in _LINKS:
                raise _no_plain_file(path) from None
            raise StepError("code", f"{path!r} cannot be used: {error.strerror or error}.") from None
        finally:
            if folder is not None:
                os.close(folder)


def _walked(folder: int, above: str, prefix: str, depth: int) -> Iterator[tuple[str, os.stat_result]]:
    with os.scandir(folder) as entries:
        names = sorted(entry.name for entry in entries)
    for name in names:
        path = f"{above}{name}"
        if name.startswith(_PARTIAL) or not (path.startswith(prefix) or prefix.startswith(f"{path}/")):
            continue
        try:
            facts = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if stat.S_ISREG(facts.st_mode) and path.startswith(prefix):
                yield path, facts
            enters = stat.S_ISDIR(facts.st_mode) and depth > 1
            inner = os.open(name, _FOLDER, dir_fd=folder) if enters else None
        except OSError:
            continue  # it went away, or may not be looked at
        if inner is not None:
            try:
                yield from _walked(inner, f"{path}/", prefix, depth - 1)
            finally:
                os.close(inner)


def _judge(path: str, facts: os.stat_result) -> None:
    """A second name of a file could stand anywhere, so such a file is as good as a link."""
    if not stat.S_ISREG(facts.st_mode) or facts.st_nlink > 1:
        raise _no_plain_file(path)


def _no_plain_file(path: str) -> StepError:
    return StepError("denied", f"{path!r} is no plain file of the folder, or leads through a link.")
