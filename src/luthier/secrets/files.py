"""Reads small files that hold secrets: regular ones only, without waiting for anybody."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

LARGEST = 64 * 1024  # bytes
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_ROOT = 0


def read_small(path: Path) -> tuple[bytes, str]:
    """What is in the file, and who else may read or write it; empty where only its owner can.

    Raises OSError, also for what is no regular file or too large.
    """
    # Without blocking: a pipe of that name would be waited for without end.
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        facts = os.fstat(handle)
        if not stat.S_ISREG(facts.st_mode):
            raise OSError(0, "it is not a regular file")
        data = os.read(handle, LARGEST + 1)
    finally:
        os.close(handle)
    if len(data) > LARGEST:
        raise OSError(0, f"it is larger than {LARGEST // 1024} KiB")
    return data, _others(facts)


def _others(facts: os.stat_result) -> str:
    if facts.st_mode & _OTHERS:
        return f"can be read by others (mode {stat.S_IMODE(facts.st_mode):04o})"
    return "" if facts.st_uid in (os.geteuid(), _ROOT) else "belongs to another user"
