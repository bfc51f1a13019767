"""Which process drives a run: a name for it that nobody else gets, and whether it is still there.

On the same machine a process that is gone is known at once, by its number and the time it began. Of another
machine it is known by its last sign of life.
"""

from __future__ import annotations

import functools
import os
import socket
import threading
from contextlib import suppress
from pathlib import Path

SILENCE = 60.0
"""Seconds without a sign of life after which a process on another machine counts as gone."""

BEAT = 15.0
"""Seconds between two signs of life."""

_driven: set[str] = set()  # the runs that this process drives
_lock = threading.Lock()


def claim(run: str) -> bool:
    """Drive a run from now on; False where this process does already."""
    with _lock:
        free = run not in _driven
        _driven.add(run)
        return free


def release(run: str) -> None:
    """Drive it no more."""
    _driven.discard(run)


@functools.cache
def me() -> str:
    """The name of this process: machine, number, and when it began."""
    return f"{_machine()}:{os.getpid()}:{_began(os.getpid())}"


os.register_at_fork(after_in_child=me.cache_clear)


def is_gone(run: str, owner: str, beat_at: float, now: float) -> bool:
    """Whether nobody drives the run any more."""
    if not owner:
        return True
    if owner == me():
        return run not in _driven
    where, _, since = owner.rpartition(":")
    machine, _, number = where.rpartition(":")
    if machine != _machine():
        return now - beat_at > SILENCE
    return _began(int(number)) != since


@functools.cache
def _machine() -> str:
    """Where numbers of processes mean the same: a machine since it was started, or a container on it."""
    parts = [socket.gethostname()]
    with suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()[:8])
        parts.append(Path("/proc/self/ns/pid").readlink().name.strip("pid:[]"))
    return "/".join(parts).replace(":", "_")


def _began(pid: int) -> str:
    """When the process began, as far as the system tells; empty where there is none, or a dead one."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    except OSError:
        with suppress(OSError):
            if not Path("/proc/self/stat").exists():
                os.kill(pid, 0)
                return "?"
        return ""
    return "" if fields[0] in "ZX" else fields[19]
