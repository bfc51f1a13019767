"""The clock port: every wait in the package goes through it, so that tests own the time.

`call_later` is the one primitive; sleeping and deadlines are built on it, the same for every clock.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType


class Timer(Protocol):
    """A callback that has been asked for."""

    def cancel(self) -> None:
        """Forget it. Harmless when it already ran."""


class Clock(Protocol):
    """What the house asks of time. Seconds everywhere."""

    def now(self) -> float:
        """Unix time: for records, never for measuring."""

    def monotonic(self) -> float:
        """A steady time whose differences are durations."""

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Timer:
        """Call back once, on the running loop, after that time."""


class SystemClock:
    """The machine's own time."""

    now = staticmethod(time.time)  # a call through the gate asks twenty times
    monotonic = staticmethod(time.monotonic)

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Timer:
        return asyncio.get_running_loop().call_later(seconds, callback)


class FakeClock:
    """Time that stands still until a test moves it; starts at Unix time 1,000,000,000."""

    def __init__(self, start: float = 1_000_000_000.0) -> None:
        self._start = start
        self._elapsed = 0.0
        self._timers: list[tuple[float, int, _FakeTimer]] = []
        self._order = itertools.count()

    def now(self) -> float:
        return self._start + self._elapsed

    def monotonic(self) -> float:
        return self._elapsed

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Timer:
        timer = _FakeTimer(callback)
        if seconds > 0:
            heapq.heappush(self._timers, (self._elapsed + seconds, next(self._order), timer))
        else:  # due already, so it waits for no test
            asyncio.get_running_loop().call_soon(timer.fire)
        return timer

    @property
    def waiting(self) -> int:
        """How many timers have neither run nor been cancelled."""
        return sum(1 for _, _, timer in self._timers if timer.callback is not None)

    def next_due(self) -> float | None:
        """Seconds until the next timer; None when nobody waits."""
        due = [at for at, _, timer in self._timers if timer.callback is not None]
        return max(min(due) - self._elapsed, 0.0) if due else None

    async def advance(self, seconds: float) -> None:
        """Move time on, running what falls due in order and letting the loop settle in between."""
        if seconds < 0:
            raise ValueError("time does not go back")
        await settle()
        target = self._elapsed + seconds
        while self._timers and self._timers[0][0] <= target:
            at, _, timer = heapq.heappop(self._timers)
            self._elapsed = max(self._elapsed, at)
            if timer.fire():
                await settle()
        self._elapsed = target
        await settle()


class _FakeTimer:
    __slots__ = ("callback",)

    def __init__(self, callback: Callable[[], object]) -> None:
        self.callback: Callable[[], object] | None = callback

    def cancel(self) -> None:
        self.callback = None

    def fire(self) -> bool:
        """Whether there was still something to call."""
        callback, self.callback = self.callback, None
        if callback is not None:
            callback()
        return callback is not None


async def settle(turns: int = 20) -> None:
    """Let every task that can run do so, for a bounded number of turns of the loop."""
    for _ in range(turns):
        await asyncio.sleep(0)


async def sleep(clock: Clock, seconds: float) -> None:
    """Wait for that long by that clock."""
    done = asyncio.get_running_loop().create_future()

    def wake() -> None:
        if not done.done():
            done.set_result(None)

    timer = clock.call_later(seconds, wake)
    try:
        await done
    finally:
        timer.cancel()


class Deadline:
    """`async with Deadline(clock, seconds):` cancels the body when time is up and raises TimeoutError.

    None is no limit. `expired` tells afterwards whether it fired. A cancellation from outside stays one.
    For one use, inside a task.
    """

    def __init__(self, clock: Clock, seconds: float | None) -> None:
        self._clock = clock
        self._seconds = seconds
        self._timer: Timer | None = None
        self._task: asyncio.Task[object] | None = None
        self._cancelling = 0
        self._due = 0.0
        self._pauses = 0
        self._over = False
        self.expired = False

    async def __aenter__(self) -> Self:
        if self._task is not None:
            raise RuntimeError("a Deadline can be entered once")
        task = self._task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a Deadline works inside a task only")
        self._cancelling = task.cancelling()
        self._start(self._seconds)
        return self

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Let the time stand still while the body lasts. Several may hold it at once."""
        self._pauses += 1
        if self._pauses == 1 and self._timer is not None:
            self._timer.cancel()
            self._seconds = self._due - self._clock.monotonic()
        try:
            yield
        finally:
            self._pauses -= 1
            if not self._pauses and not self._over:
                self._start(self._seconds)

    def _start(self, seconds: float | None) -> None:
        if seconds is not None:
            self._due = self._clock.monotonic() + seconds
            self._timer = self._clock.call_later(seconds, self._expire)

    def _expire(self) -> None:
        self.expired = True
        if self._task is not None:
            self._task.cancel()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over = True
        if self._timer is not None:
            self._timer.cancel()
        ours = self.expired and self._task is not None and self._task.uncancel() <= self._cancelling
        if ours and kind is not None and issubclass(kind, asyncio.CancelledError):
            raise TimeoutError from error
