"""Requests that wait for their answers: found by id, each settled exactly once, all deadlines on one timer.

The timer is set for the earliest deadline known then, and looks again when it fires. So a call that is
answered in time, which is nearly every call, costs no timer of its own.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from luthier.errors import WireError
from luthier.wire.codec import Message

if TYPE_CHECKING:
    from luthier.clock import Clock, Timer
    from luthier.secrets import Secret

_LONGEST_ID = 19  # digits
_EARLY = 0.001  # seconds by which a timer may fire early and still count

OnProgress = Callable[[float, float | None, str], None]
"""Is told the progress so far, the total if known, and a message."""

Outcome = tuple[Message, tuple[str, ...]] | WireError
"""The answer and what was odd in it, or why there is none."""


class Request:
    """One request in flight. `idle` is the time without progress that is allowed, `hard` the last moment."""

    __slots__ = (
        "answer",
        "deadline",
        "doubt",
        "hard",
        "headers",
        "id",
        "idle",
        "on_progress",
        "phase",
        "standing",
        "started",
        "subject",
        "tool",
        "waited",
    )

    def __init__(self, id: int, subject: str, tool: str, phase: str) -> None:
        self.id = id
        self.subject = subject  # the method
        self.tool = tool
        self.phase = phase
        self.answer: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self.started = 0.0
        self.waited = 0.0  # known once its time is up
        self.idle: float | None = None
        self.hard: float | None = None
        self.deadline: float | None = None
        self.on_progress: OnProgress | None = None
        self.standing = False  # open for long or for ever: an answer without an id is never taken for its own
        self.headers: dict[str, Secret] | None = None  # that the caller gave
        self.doubt = ""  # something that may have been its answer and was lost

    @property
    def what(self) -> str:
        return f"{self.subject} {self.tool!r}" if self.tool else self.subject

    def settle(self, outcome: Outcome) -> None:
        if not self.answer.done():
            self.answer.set_result(outcome)


class Pending:
    """The table of one connection. `on_expired` is told of each request whose time is up."""

    def __init__(self, clock: Clock, on_expired: Callable[[Request], None]) -> None:
        self._clock = clock
        self._on_expired = on_expired
        self._table: dict[int, Request] = {}
        self._ids = itertools.count(1)
        self._timer: Timer | None = None
        self._due = 0.0

    def __len__(self) -> int:
        return len(self._table)

    def add(
        self,
        subject: str,
        tool: str,
        phase: str,
        idle: float | None,
        longest: float | None,
    ) -> Request:
        """A new request under a fresh id. `idle` and `longest` are seconds from now."""
        request = Request(next(self._ids), subject, tool, phase)
        self._table[request.id] = request
        if idle is not None or longest is not None:
            self._set_deadline(request, idle, longest)
        return request

    def find(self, id: Any) -> Request | None:
        """The request that an id in a message means: servers send numbers back as text and as floats."""
        known = as_id(id)
        return None if known is None else self._table.get(known)

    def take(self, id: Any) -> Request | None:
        """The same, and it leaves the table."""
        known = id if type(id) is int else as_id(id)
        return None if known is None else self._table.pop(known, None)

    def sole(self) -> Request | None:
        """The request in flight, where there is exactly one."""
        passing = [request for request in self._table.values() if not request.standing]
        return passing[0] if len(passing) == 1 else None

    def extend(self, request: Request) -> None:
        """There was progress: its idle time begins anew, up to its last moment."""
        if request.idle is None or request.hard is None:
            return
        request.deadline = min(self._clock.monotonic() + request.idle, request.hard)

    def doubt(self, reason: str) -> None:
        """An answer was lost and nobody knows whose: whoever times out now is told."""
        for request in self._table.values():
            request.doubt = reason

    def clear(self, outcome: Callable[[Request], WireError]) -> None:
        """Settle all of them, each with its own error."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        requests = list(self._table.values())
        self._table.clear()
        for request in requests:
            request.settle(outcome(request))

    def _set_deadline(self, request: Request, idle: float | None, longest: float | None) -> None:
        now = request.started = self._clock.monotonic()
        request.idle = idle
        request.hard = None if longest is None else now + longest
        first = idle if longest is None or (idle is not None and idle < longest) else longest
        if first is not None:
            request.deadline = now + first
            if self._timer is None or request.deadline < self._due - _EARLY:
                self._wake(first, request.deadline)

    def _wake(self, seconds: float, due: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._due = due
        self._timer = self._clock.call_later(seconds, self._look)

    def _look(self) -> None:
        self._timer = None
        now = self._clock.monotonic()
        limit = now + _EARLY
        for request in [
            one for one in self._table.values() if one.deadline is not None and one.deadline <= limit
        ]:
            del self._table[request.id]
            request.waited = now - request.started
            self._on_expired(request)
        deadlines = [one.deadline for one in self._table.values() if one.deadline is not None]
        if deadlines:
            due = min(deadlines)
            self._wake(due - now, due)


def as_id(id: Any) -> int | None:
    """An id as we gave it out, or None."""
    if isinstance(id, bool):
        return None
    if isinstance(id, int):
        return id
    if isinstance(id, float) and id.is_integer():
        return int(id)
    if isinstance(id, str) and id.isascii() and id.isdigit() and len(id) <= _LONGEST_ID:
        return int(id)
    return None
