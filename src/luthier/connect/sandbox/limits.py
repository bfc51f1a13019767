"""How much a server in a sandbox may use: memory and processes.

Each process is limited by the kernel's resource limits, set inside by `prlimit`; the number of processes too,
counted in the sandbox alone. That number does not bind root, so where we are root the sandbox is put into a
control group of its own, which bounds memory and processes of all of it together. Where that cannot be had,
what was asked for is not kept, and the sandbox says so.
"""

from __future__ import annotations

import atexit
import contextlib
import itertools
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from luthier.spec import Sandbox

MEMORY_MB = 2048
"""For each process, unless the entry says how much."""

PROCESSES = 256
"""Processes and threads, unless the entry says how many."""

_OWN = (
    3  # processes of the sandbox itself: bubblewrap outside and inside, and the one that becomes the server
)
_numbers = itertools.count()
_busy: set[Path] = set()


class Limits(msgspec.Struct, frozen=True):
    """`asked`: the entry itself says how much, so that it must be kept to."""

    memory: int  # bytes
    processes: int
    asked: bool = False


def limits_of(sandbox: Sandbox) -> Limits:
    """What the entry says, or what is usual."""
    memory = sandbox.memory_mb or MEMORY_MB
    processes = sandbox.max_processes or PROCESSES
    return Limits(memory * 1024 * 1024, processes, bool(sandbox.memory_mb or sandbox.max_processes))


def inside(limits: Limits) -> tuple[str, ...] | None:
    """The words that set the limits before what follows; None where there is nothing to set them with."""
    prlimit = shutil.which("prlimit", path="/usr/bin:/bin:/usr/sbin")
    if prlimit is None:
        return None
    # Not the address space: V8 and others reserve far more of it than they use.
    return (prlimit, f"--data={limits.memory}", f"--nproc={limits.processes + _OWN}", "--core=0", "--")


def shortfall(*, set_inside: bool, root: bool, grouped: bool) -> str:
    """What is not kept of the limits; empty if all of it is."""
    if not set_inside and not grouped:
        return "memory and processes are not limited: there is no prlimit"
    if root and not grouped:
        return "the number of processes is not limited: for root that needs a control group"
    return ""


def cgroup(limits: Limits, groups: Mapping[str, Path] | None = None) -> tuple[Path, ...]:
    """New control groups that bound processes and, where it can be, memory; none where that cannot be had."""
    there = controllers() if groups is None else groups
    if "pids" not in there:
        return ()
    _sweep(there)
    name = f"luthier-{os.getpid()}-{next(_numbers)}"
    made: dict[Path, None] = {}
    try:
        for controller, value in (("pids", limits.processes + _OWN), ("memory", limits.memory)):
            # To join a group costs a start about ten milliseconds, so the usual memory is left to prlimit.
            if controller in there and (limits.asked or controller == "pids"):
                folder = there[controller] / name
                folder.mkdir(exist_ok=folder in made)
                made[folder] = None
                _set(folder, controller, value)
    except OSError:
        remove(made)
        return ()
    return tuple(made)


def remove(folders: Iterable[Path]) -> None:
    """Control groups are removed when nothing runs in them any more; one that is busy waits for the next."""
    for folder in folders:
        try:
            folder.rmdir()
        except OSError:
            _busy.add(folder)
        else:
            _busy.discard(folder)


@atexit.register
def _leave_none() -> None:
    remove(tuple(_busy))


def _sweep(there: Mapping[str, Path]) -> None:
    """Groups that were busy when we were done with them, and those of processes that are no more."""
    remove(tuple(_busy))
    for parent in set(there.values()):
        for folder in parent.glob("luthier-*-*"):
            if not Path("/proc", folder.name.split("-")[1]).exists():
                with contextlib.suppress(OSError):
                    folder.rmdir()


def _set(folder: Path, controller: str, value: int) -> None:
    files = {"pids": ("pids.max",), "memory": ("memory.max", "memory.limit_in_bytes")}[controller]
    file = next((folder / file for file in files if (folder / file).exists()), None)
    if file is None:
        raise FileNotFoundError(folder)
    file.write_text(f"{value}\n")


def controllers(
    base: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")
) -> dict[str, Path]:
    """The groups below which new ones can be made, by what they control.

    Version 1 has a tree for each controller, and ours is the group that we are in. Version 2 has one tree;
    a group with processes cannot pass a controller on, so there it is most likely the one above ours.
    """
    found: dict[str, Path] = {}
    try:
        lines = own.read_text().splitlines()
    except OSError:
        return found
    for line in lines:
        number, names, path = ([*line.split(":", 2), "", "", ""])[:3]
        if number == "0":
            folder = base / path.lstrip("/")
            for group in (folder, folder.parent):
                if group.is_relative_to(base):
                    found |= {name: group for name in _passed_on(group) if name not in found}
        for name in names.split(","):
            folder = base / name / path.lstrip("/")
            if name in ("pids", "memory") and folder.is_dir():
                found[name] = folder
    return found


def _passed_on(group: Path) -> list[str]:
    try:
        return (group / "cgroup.subtree_control").read_text().split()
    except OSError:
        return []
