"""The stdio transport: a server as a child process, one JSON message a line."""

from __future__ import annotations

import errno
import signal
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from luthier.errors import ConnectError, ConnectionLostError
from luthier.text import one_line
from luthier.wire.faults import last_words
from luthier.wire.frame import LineSplitter
from luthier.wire.pipes import PipeReader, PipeWriter
from luthier.wire.process import Armed, ServerProcess
from luthier.wire.watchdog import WATCHDOG, Watchdog

if TYPE_CHECKING:
    from luthier.clock import Clock, Timer
    from luthier.wire.transport import Outgoing, Receiver

STDERR_TAIL = 8 * 1024
"""Bytes of stderr that are kept."""

EXIT_GRACE = 0.5
"""Seconds that the end of a pipe waits for the exit that explains it."""

_PASSING = frozenset({errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.ETXTBSY})


class StdioLaunch(msgspec.Struct, frozen=True, kw_only=True):
    """How to start a server. `argv[0]` is resolved already, `env` is complete, `cwd` None means ours.

    `arm` is called just before each start and says what is executed in place of `argv`; it raises
    ConnectError where that may no longer be started.
    """

    server: str
    argv: tuple[str, ...]
    env: dict[str, str]
    cwd: str | None = None
    max_message_bytes: int = 10 * 1024 * 1024
    arm: Callable[[], Armed] | None = None
    isolation: tuple[str, ...] = ()  # what it is kept to, for people; empty where it runs freely

    def __repr__(self) -> str:
        return f"StdioLaunch({self.server!r})"  # its variables hold secrets


class StdioTransport:
    """A transport that is a process. `on_noise` is told what is odd about the process itself."""

    def __init__(
        self,
        launch: StdioLaunch,
        clock: Clock,
        on_noise: Callable[[str], None] | None = None,
        *,
        watchdog: Watchdog = WATCHDOG,
    ) -> None:
        self._launch = launch
        self._watchdog = watchdog
        self._clock = clock
        self._on_noise = on_noise
        self._splitter = LineSplitter(launch.max_message_bytes)
        self._tail = bytearray()
        self._over = False
        self._grace: Timer | None = None
        self._process: ServerProcess | None = None
        self._armed: Armed
        self._receiver: Receiver
        self._stdin: PipeWriter
        self._stdout: PipeReader
        self._stderr: PipeReader

    @property
    def stderr_tail(self) -> str:
        return self._tail.decode(errors="replace").strip()

    async def start(self, receiver: Receiver) -> None:
        launch = self._launch
        armed = Armed(argv=launch.argv, cwd=launch.cwd) if launch.arm is None else launch.arm()
        try:
            process = ServerProcess(
                armed,
                launch.env,
                clock=self._clock,
                on_exit=self._exited,
                on_gone=self._gone,
                watchdog=self._watchdog,
            )
        except (OSError, ValueError) as error:
            armed.gone()
            raise _spawn_error(launch, error) from error
        finally:
            armed.started()
        self._process = process
        self._armed = armed
        self._receiver = receiver
        self._stdin = PipeWriter(process.stdin, lambda: self._expect_exit("no longer reads its input"))
        self._stdout = PipeReader(
            process.stdout, self._take, lambda: self._expect_exit("has closed its output")
        )
        self._stderr = PipeReader(process.stderr, self._complain, lambda: None)
        for warning in (armed.warning, process.warning):
            if warning and self._on_noise is not None:
                self._on_noise(warning)

    def send(self, message: Outgoing) -> None:
        self._stdin.write(message.data)

    def cancel(self, _id: int, notice: Outgoing, /) -> None:
        self._stdin.write(notice.data)

    @property
    def congested(self) -> bool:
        return self._stdin.congested

    async def drain(self) -> None:
        await self._stdin.drain()

    async def close(self) -> None:
        if self._process is None:
            return
        self._end(None)
        self._stdin.close()
        await self._process.end()

    def _take(self, data: bytes) -> None:
        self._stdin.eager = True
        for frame in self._splitter.feed(data):
            if self._over:
                return  # read all the same, so that the server can come to its end
            if isinstance(frame, bytes):
                self._receiver.message(frame)
            else:
                self._receiver.oversized(frame.head, frame.tail, frame.size)

    def _complain(self, data: bytes) -> None:
        self._tail += data
        del self._tail[:-STDERR_TAIL]

    def _exited(self, status: int) -> None:
        """What it wrote before it exited is still in the pipes; an answer may lack its newline."""
        self._stdout.read_rest()
        self._stderr.read_rest()
        rest = self._splitter.end()
        if isinstance(rest, bytes) and not self._over:
            self._receiver.message(rest)
        self._lose(_how_it_ended(status), status)

    def _expect_exit(self, otherwise: str) -> None:
        """A pipe has ended; most likely its process too, which says more."""
        if self._grace is None and not self._over:
            self._grace = self._clock.call_later(EXIT_GRACE, lambda: self._lose(otherwise, None))

    def _lose(self, what: str, status: int | None) -> None:
        tail = self.stderr_tail
        self._end(
            ConnectionLostError(
                f"Server {self._launch.server!r} {what}{last_words(tail)}.",
                server=self._launch.server,
                exit_status=status,
                stderr_tail=tail,
            )
        )
        self._stdin.close()
        if self._process is not None:
            self._process.begin_end()

    def _end(self, error: ConnectionLostError | None) -> None:
        if self._grace is not None:
            self._grace.cancel()
            self._grace = None
        if not self._over:
            self._over = True
            self._receiver.ended(error)

    def _gone(self) -> None:
        self._stdin.close()
        self._stdout.close()
        self._stderr.close()
        self._armed.gone()


def _how_it_ended(status: int) -> str:
    if status >= 0:
        return f"exited with status {status}"
    try:
        return f"was ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"was ended by signal {-status}"


def _spawn_error(launch: StdioLaunch, error: OSError | ValueError) -> ConnectError:
    command = launch.argv[0] if launch.argv else ""
    hint = "Check `command` of that server."
    reason = str(error)
    if isinstance(error, OSError):
        reason = error.strerror or reason
        if launch.cwd is not None and not Path(launch.cwd).is_dir():
            command, hint = launch.cwd, "Check `cwd` of that server."
    return ConnectError(
        f"Server {launch.server!r} cannot be started: {one_line(command)}: {reason}.",
        server=launch.server,
        phase="spawn",
        retryable=isinstance(error, OSError) and error.errno in _PASSING,
        hint=hint,
    )
