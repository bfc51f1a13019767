"""A subscription to changes, in the modern era: asked for, and asked for again when it ends.

A subscription that ended may have missed a change, so whoever listens is told of one when the next stands.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from luthier.errors import ProtocolError, WireError
from luthier.wire.faults import METHOD_NOT_FOUND

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from luthier.clock import Clock, Timer
    from luthier.wire.link import Link
    from luthier.wire.pending import Outcome, Request

FIRST_WAIT = 1.0
LONGEST_WAIT = 60.0
"""Seconds before a subscription that ended is asked for again; doubled each time, up to the longest."""

STEADY = 10.0
"""Seconds that a subscription must have stood for the waits to begin anew."""

UNHEARD = 5
"""Times in a row that a subscription is asked for and not acknowledged before it is given up."""


class Listening:
    """Listens to one server on one link. `params` gives the params of the request as they are then."""

    def __init__(
        self,
        link: Link,
        clock: Clock,
        params: Callable[[], dict[str, Any]],
        on_changed: Callable[[], None],
    ) -> None:
        self._link = link
        self._clock = clock
        self._params = params
        self._on_changed = on_changed
        self._request: Request | None = None
        self._timer: Timer | None = None
        self._wait = FIRST_WAIT
        self._unheard = 0
        self._asked_at = 0.0
        self._acknowledged = False
        self._before = False  # whether an earlier subscription has ended
        self._closed = False

    def begin(self) -> None:
        """Ask, where that has not been done."""
        if self._request is not None or self._timer is not None or self._closed or self._link.closed:
            return
        self._asked_at, self._acknowledged = self._clock.monotonic(), False
        self._request = request = self._link.begin("subscriptions/listen", self._params(), phase="list")
        request.standing = True
        request.answer.add_done_callback(self._ended)

    def acknowledged(self) -> None:
        """The server has said that it tells from now on."""
        if self._request is None or self._acknowledged:
            return
        self._acknowledged, self._unheard = True, 0
        if self._before:
            self._on_changed()

    def close(self) -> None:
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _ended(self, answer: asyncio.Future[Outcome]) -> None:
        self._request = None
        if self._closed or self._link.closed or answer.cancelled():
            return
        if not self._acknowledged:
            self._unheard += 1
        if self._unheard >= UNHEARD or _is_unknown(answer.result()):
            self._link.noise.tell("the server no longer tells of changes to its tools")
            return
        self._before = True
        if self._clock.monotonic() - self._asked_at >= STEADY:
            self._wait = FIRST_WAIT
        self._timer = self._clock.call_later(self._wait, self._again)
        self._wait = min(self._wait * 2, LONGEST_WAIT)

    def _again(self) -> None:
        self._timer = None
        self.begin()


def _is_unknown(outcome: Outcome) -> bool:
    """Whether the server does not know what a subscription is."""
    if isinstance(outcome, WireError):
        return isinstance(outcome, ProtocolError) and outcome.code == METHOD_NOT_FOUND
    error = outcome[0].error
    return error is not UNSET and isinstance(error, dict) and error.get("code") == METHOD_NOT_FOUND
