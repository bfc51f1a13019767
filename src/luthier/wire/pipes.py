"""Both ends of pipes on the loop, without tasks: the loop calls when one can be read or written.

The first line of a turn is written at once, so that a lone call costs no further turn; those that follow it
go out together in one write.
"""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

HIGH_WATER = 256 * 1024
"""Bytes waiting to be written above which a pipe is congested."""

LOW_WATER = 64 * 1024
"""Bytes waiting to be written at which those who wait for it are let go."""

_READ = 64 * 1024  # what a pipe holds; a larger buffer would only be allocated for nothing
_LAST_READS = 256  # 16 MiB; who inherited the pipe may go on writing for ever


class PipeReader:
    """Hands over chunks as they come, then tells the end once. Owns the descriptor."""

    def __init__(self, descriptor: int, on_data: Callable[[bytes], None], on_end: Callable[[], None]) -> None:
        self._descriptor = descriptor
        self._on_data = on_data
        self._on_end = on_end
        self._loop = asyncio.get_running_loop()
        os.set_blocking(descriptor, False)
        self._loop.add_reader(descriptor, self._ready)

    def read_rest(self) -> None:
        """Hand over what is in the pipe now, without waiting for its end."""
        for _ in range(_LAST_READS):
            if self._descriptor < 0 or not self._ready():
                break

    def close(self) -> None:
        if self._descriptor >= 0:
            self._loop.remove_reader(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = -1

    def _ready(self) -> bool:
        try:
            data = os.read(self._descriptor, _READ)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        if data:
            self._on_data(data)
            return True
        self.close()
        self._on_end()
        return False


class PipeWriter:
    """Takes lines. Owns the descriptor.

    Once the other side has closed the pipe, `on_broken` is called and lines are dropped.
    """

    def __init__(self, descriptor: int, on_broken: Callable[[], None]) -> None:
        self._descriptor = descriptor
        self._on_broken = on_broken
        self._loop = asyncio.get_running_loop()
        self._waiting = bytearray()
        self._flushing = False  # the loop will call _flush this turn
        self._watching = False  # or when the pipe takes more
        self._drained: list[asyncio.Future[None]] = []
        self.eager = True  # the next line may be written at once; set again by who knows that a turn is over
        os.set_blocking(descriptor, False)

    @property
    def congested(self) -> bool:
        return len(self._waiting) > HIGH_WATER

    def write(self, line: bytes) -> None:
        """Write a line; the newline is added here."""
        if self._descriptor < 0:
            return
        if self.eager and not self._waiting:
            self.eager = False
            data = line + b"\n"
            written = self._write(data)
            if written < len(data):
                self._waiting += data[written:]
                self._watch()
            return
        self._waiting += line
        self._waiting += b"\n"
        if not self._flushing and not self._watching:
            self._flushing = True
            self._loop.call_soon(self._flush)

    async def drain(self) -> None:
        """Return once no longer congested, or closed."""
        while self.congested:
            drained = self._loop.create_future()
            self._drained.append(drained)
            await drained

    def close(self) -> None:
        """Close it now; what still waits is dropped."""
        if self._descriptor < 0:
            return
        self._loop.remove_writer(self._descriptor)
        os.close(self._descriptor)
        self._descriptor = -1
        self._waiting.clear()
        self._let_go()

    def _write(self, data: bytes | bytearray) -> int:
        try:
            return os.write(self._descriptor, data)
        except BlockingIOError:
            return 0
        except OSError:
            self.close()
            self._on_broken()
            return len(data)

    def _flush(self) -> None:
        self._flushing = False
        self.eager = True
        if self._waiting:
            written = self._write(self._waiting)
            del self._waiting[:written]
        if len(self._waiting) <= LOW_WATER:
            self._let_go()
        self._watch()

    def _watch(self) -> None:
        """Be called when the pipe takes more, for as long as something waits."""
        if bool(self._waiting) == self._watching or self._descriptor < 0:
            return
        self._watching = not self._watching
        if self._watching:
            self._loop.add_writer(self._descriptor, self._flush)
        else:
            self._loop.remove_writer(self._descriptor)

    def _let_go(self) -> None:
        waiting, self._drained = self._drained, []
        for drained in waiting:
            if not drained.done():
                drained.set_result(None)
