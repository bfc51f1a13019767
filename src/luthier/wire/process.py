"""Server processes: each in a group of its own, ended step by step, and never left behind.

The ladder: stdin is closed; two seconds later the group gets SIGTERM; two seconds later SIGKILL. A server
that ends by itself may leave children in its group; they get the rest of the ladder. A group's number is not
given to somebody else while one process is in it, so it can be signalled after its leader is gone.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from luthier.clock import Deadline, sleep
from luthier.wire.watchdog import WATCHDOG, Watchdog

if TYPE_CHECKING:
    from collections.abc import Mapping

    from luthier.clock import Clock

STEP = 2.0
"""Seconds that a server is given on each step of the ladder."""

ORPHAN_GRACE = 0.25
"""Seconds that what a server left behind is given to notice that it is alone, before it is told to end."""

_POLL = 0.02  # seconds between looks at a group whose leader is gone: nothing tells us when it is empty
_PROC = Path("/proc")

ExitWatch = Callable[["subprocess.Popen[bytes]", Callable[[], None]], Callable[[], None]]
"""Calls back on the running loop, once, when that process has exited. It gives back what calls it off."""

_groups: set[int] = set()


def kill_all_groups() -> None:
    """SIGKILL to every live server group of this process. Synchronous: for the second Ctrl-C."""
    for group in tuple(_groups):
        _signal(group, signal.SIGKILL)


@atexit.register
def _leave_nothing() -> None:
    kill_all_groups()
    WATCHDOG.close()


os.register_at_fork(after_in_child=_groups.clear)


def _nothing() -> None:
    pass


class Armed(msgspec.Struct, frozen=True, kw_only=True):
    """What is executed, settled at the last moment. `descriptors` are open files that it is given.

    `started` is called when that has been tried, `gone` when nothing of it runs any more, or ever did.
    """

    argv: tuple[str, ...]
    executable: str | None = None  # in place of argv[0]
    cwd: str | None = None
    descriptors: tuple[int, ...] = ()
    umask: int = -1
    warning: str = ""
    started: Callable[[], None] = _nothing
    gone: Callable[[], None] = _nothing


class ServerProcess:
    """A running server. `stdin`, `stdout` and `stderr` are our ends of its pipes, for the caller to close.

    `on_exit` is called with its status when it has exited (negative: the number of the signal that ended it),
    `on_gone` when its group is empty. Making one raises OSError or ValueError when it cannot be started.
    """

    def __init__(
        self,
        armed: Armed,
        env: Mapping[str, str],
        *,
        clock: Clock,
        on_exit: Callable[[int], None],
        on_gone: Callable[[], None],
        watch_exit: ExitWatch | None = None,
        watchdog: Watchdog = WATCHDOG,
    ) -> None:
        self._clock = clock
        self._watchdog = watchdog
        self._on_exit = on_exit
        self._on_gone = on_gone
        self._exited = asyncio.Event()
        self._ladder: asyncio.Task[None] | None = None
        self._popen, (self.stdin, self.stdout, self.stderr) = _spawn(armed, env)
        self.group = self._popen.pid
        _groups.add(self.group)
        self.warning = watchdog.watch(self.group)
        self._call_off = (watch_exit or choose_watch)(self._popen, self._has_exited)

    async def end(self) -> None:
        """Climb down the ladder; close its stdin before. If cancelled, the group is killed at once."""
        try:
            await asyncio.shield(self._begin_ladder())
        except asyncio.CancelledError:
            self.kill()
            raise

    def kill(self) -> None:
        _signal(self.group, signal.SIGKILL)

    def begin_end(self) -> None:
        """The same without waiting for it."""
        self._begin_ladder()

    def _has_exited(self) -> None:
        self._exited.set()
        self._on_exit(self._popen.wait())
        self._begin_ladder()

    def _begin_ladder(self) -> asyncio.Task[None]:
        if self._ladder is None:
            self._ladder = asyncio.get_running_loop().create_task(self._descend())
        return self._ladder

    async def _descend(self) -> None:
        try:
            for step in (None, signal.SIGTERM, signal.SIGKILL):
                if step is not None:
                    _signal(self.group, step)
                if await self._gone(STEP if step else ORPHAN_GRACE):
                    break
        except asyncio.CancelledError:  # the loop is being taken down
            self.kill()
            self._call_off()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._popen.wait(STEP)
            raise
        finally:
            _groups.discard(self.group)
            self._watchdog.release(self.group)
            self._on_gone()

    async def _gone(self, grace: float) -> bool:
        """Whether leader and group are gone within a step; `grace` is for the group without its leader."""
        deadline = self._clock.monotonic() + STEP
        try:
            async with Deadline(self._clock, STEP):
                await self._exited.wait()
        except TimeoutError:
            return False
        deadline = min(deadline, self._clock.monotonic() + grace)
        while group_lives(self.group):
            if self._clock.monotonic() >= deadline:
                return False
            await sleep(self._clock, _POLL)
        return True


def _spawn(armed: Armed, env: Mapping[str, str]) -> tuple[subprocess.Popen[bytes], tuple[int, int, int]]:
    """The process and our ends of its stdin, stdout and stderr."""
    if not armed.argv:
        raise ValueError("no command is given")
    pipes: list[int] = []
    try:
        for _ in range(3):
            pipes += os.pipe()
        stdin, ours_in, ours_out, stdout, ours_err, stderr = pipes
        popen = subprocess.Popen(  # noqa: S603  (the operator's own argv, no shell)
            list(armed.argv),
            executable=armed.executable,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            env=dict(env),
            cwd=armed.cwd,
            umask=armed.umask,
            pass_fds=armed.descriptors,
            start_new_session=True,
        )
    except BaseException:
        for descriptor in pipes:
            os.close(descriptor)
        raise
    for descriptor in (stdin, stdout, stderr):
        os.close(descriptor)
    return popen, (ours_in, ours_out, ours_err)


def group_lives(group: int) -> bool:
    """Whether a process of that group still runs; those that are dead and not collected do not count."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return not _PROC.is_dir() or any(
        _runs_in(group, entry) for entry in _PROC.iterdir() if entry.name.isdigit()
    )


def _runs_in(group: int, entry: Path) -> bool:
    try:
        fields = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:  # it has just ended
        return False
    return int(fields[2]) == group and fields[0] not in ("Z", "X")


def _signal(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def choose_watch(popen: subprocess.Popen[bytes], callback: Callable[[], None]) -> Callable[[], None]:
    try:
        return watch_by_descriptor(popen, callback)
    except (AttributeError, OSError):  # not Linux, or too old, or not allowed here
        return watch_by_thread(popen, callback)


def watch_by_descriptor(popen: subprocess.Popen[bytes], callback: Callable[[], None]) -> Callable[[], None]:
    loop = asyncio.get_running_loop()
    descriptor = os.pidfd_open(popen.pid)

    def call_off() -> None:
        nonlocal descriptor
        if descriptor >= 0:
            loop.remove_reader(descriptor)
            os.close(descriptor)
            descriptor = -1

    def ready() -> None:
        call_off()
        callback()

    loop.add_reader(descriptor, ready)
    return call_off


def watch_by_thread(popen: subprocess.Popen[bytes], callback: Callable[[], None]) -> Callable[[], None]:
    loop = asyncio.get_running_loop()
    wanted = True

    def call_off() -> None:
        nonlocal wanted
        wanted = False

    def ready() -> None:
        if wanted:
            callback()

    def wait() -> None:
        popen.wait()
        with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile
            loop.call_soon_threadsafe(ready)

    threading.Thread(target=wait, daemon=True, name=f"luthier-wait-{popen.pid}").start()
    return call_off
