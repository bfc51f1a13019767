"""The command line of bubblewrap, and whether it works here.

The options that keep a server from seeing and reaching anything are always given. `--die-with-parent` and
process numbers of its own end everything in it with it, whatever a server starts and however it hides that.
The environment is not cleared here: what bubblewrap gets is already only the server's, and on the command
line everybody could read it.
"""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from luthier.connect.sandbox.calls import call_filter
from luthier.connect.sandbox.limits import Limits, inside
from luthier.connect.sandbox.mounts import Mounts

if TYPE_CHECKING:
    from collections.abc import Sequence


NOBODY = "65534"
_PROBE = 10.0  # seconds that the trial may take on a machine under load

_ALWAYS = (
    *("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"),
    *("--uid", NOBODY, "--gid", NOBODY, "--disable-userns", "--cap-drop", "ALL", "--die-with-parent"),
)


class Works(msgspec.Struct, frozen=True):
    """Whether there is a sandbox here: the program, or why there is none and what to do."""

    program: str = ""
    by_descriptor: bool = False  # it can mount what is open already
    filters: bool = False  # it can keep system calls from being made
    why: str = ""
    fix: str = ""


class Box(msgspec.Struct, frozen=True):
    """One sandbox. `files`: descriptors of open files that are mounted where they belong, read-only.

    `calls`: the descriptor of a filter of system calls. `said` are variables that are set inside, `unsaid`
    those that are not there.
    """

    mounts: Mounts
    limits: Limits
    network: bool
    home: str
    cwd: str
    said: tuple[tuple[str, str], ...] = ()
    unsaid: tuple[str, ...] = ()
    files: tuple[tuple[int, Path], ...] = ()
    groups: tuple[Path, ...] = ()
    calls: int | None = None


@functools.cache
def working(name: str = "bwrap") -> Works:
    """Looked for and tried once in the life of a process."""
    program = shutil.which(name)
    if program is None:
        return Works(
            why="bubblewrap is not installed", fix="Install it, as root: apt-get install bubblewrap."
        )
    try:
        filters = bool(call_filter())
        done = _tried(program, filters=filters)
        if done.returncode and filters:  # a kernel that cannot filter
            filters, done = False, _tried(program, filters=False)
        help_ = subprocess.run([program, "--help"], capture_output=True, timeout=_PROBE, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired) as error:
        return Works(why=f"bubblewrap does not run: {error}", fix=_FIX)
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        return Works(why=f"bubblewrap does not work here: {said[-1] if said else done.returncode}", fix=_FIX)
    return Works(
        program=program, by_descriptor=b"--ro-bind-fd" in help_.stdout + help_.stderr, filters=filters
    )


def _tried(program: str, *, filters: bool) -> subprocess.CompletedProcess[bytes]:
    words = [program, *_ALWAYS, "--unshare-net", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev"]
    with contextlib.ExitStack() as stack:
        calls: tuple[int, ...] = ()
        if filters:
            calls = (filter_file(),)
            stack.callback(os.close, calls[0])
            words += ["--seccomp", str(calls[0])]
        return subprocess.run(  # noqa: S603  (our own words)
            [*words, "--", "/bin/sh", "-c", ":"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PROBE,
            check=False,
            pass_fds=calls,
        )


def filter_file() -> int:
    """The descriptor of a file in memory that holds the filter of system calls, for its caller to close."""
    descriptor = os.memfd_create("calls")
    os.write(descriptor, call_filter())
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


_FIX = (
    "Allow unprivileged user namespaces (sysctl kernel.unprivileged_userns_clone, user.max_user_namespaces; "
    "kernel.apparmor_restrict_unprivileged_userns), or run where they are allowed."
)


_JOIN = """
count=$1; shift
while [ "$count" -gt 0 ]; do echo 0 >"$1/cgroup.procs" || exit 1; shift; count=$((count - 1)); done
exec "$@"
"""


def command_line(works: Works, box: Box, argv: Sequence[str]) -> tuple[str, ...]:
    """The whole command that starts `argv` in that sandbox."""
    words = [works.program, *_ALWAYS]
    if not box.network:
        words.append("--unshare-net")
    words += ["--proc", "/proc", "--dev", "/dev"]
    for own in dict.fromkeys(("/tmp", box.home)):  # noqa: S108  (the server's, not ours)
        words += ["--size", str(box.limits.memory), "--tmpfs", own]
    for name, target in box.mounts.links:
        words += ["--symlink", target, name]
    for mount in box.mounts.binds:
        words += ["--bind" if mount.writable else "--ro-bind", str(mount.source), str(mount.target)]
    for folder in box.mounts.hidden:
        words += ["--tmpfs", str(folder)]
    for descriptor, file in box.files:
        words += ["--ro-bind-fd", str(descriptor), str(file)]
    if box.calls is not None:
        words += ["--seccomp", str(box.calls)]
    for name, value in box.said:
        words += ["--setenv", name, value]
    for name in box.unsaid:
        words += ["--unsetenv", name]
    words += ["--dir", box.cwd, "--remount-ro", "/", "--chdir", box.cwd, "--"]
    return (*_joining(box), *words, *(inside(box.limits) or ()), *argv)


def _joining(box: Box) -> tuple[str, ...]:
    """What puts a process into its control groups before it becomes bubblewrap. The words are our own."""
    if not box.groups:
        return ()
    return ("/bin/sh", "-c", _JOIN, "luthier", str(len(box.groups)), *map(str, box.groups))
