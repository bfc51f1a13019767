"""A server that could not be reached is tried again in the background, ever more seldom, until it stands.

Nobody has to wait for this: a call that needs the server tries at once, healer or not.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from luthier.clock import sleep
from luthier.connect.connection import login_needed, retry_after, retryable
from luthier.errors import WireError
from luthier.redaction import logger

if TYPE_CHECKING:
    from collections.abc import Callable

    from luthier.clock import Clock
    from luthier.connect.connection import Connection

_log = logger("luthier.connect")

FIRST_WAIT = 30.0
LONGEST_WAIT = 600.0
"""Seconds from a failure to the first try in the background, and the most between two."""

LONGEST_ASKED = 3600.0
"""Seconds that a server may ask for (`Retry-After`) and is given."""

MOST_TRIES = 50
"""Rows of tries in the background: some hours. After that the next call that needs it begins anew."""


class Healer:
    """Looks after one connection. `failed` starts it; it ends by itself, or by `stop`."""

    def __init__(self, connection: Connection, clock: Clock, draw: Callable[[], float]) -> None:
        self._connection = connection
        self._clock = clock
        self._draw = draw
        self._task: asyncio.Task[None] | None = None
        self._stopped = False

    @property
    def task(self) -> asyncio.Task[None] | None:
        """What is under way, if anything is."""
        return self._task

    def failed(self, error: WireError) -> None:
        """The connection has failed with this error, and nobody tries any more."""
        busy = self._task is not None and not self._task.done()
        if not busy and not self._stopped and _heals(error):
            loop = asyncio.get_running_loop()
            name = f"luthier healer of {self._connection.server}"
            self._task = loop.create_task(self._heal(error), name=name)
            self._task.add_done_callback(self._done)

    def stop(self) -> None:
        """Try no more."""
        self._stopped = True
        if self._task is not None:
            self._task.cancel()

    async def _heal(self, error: WireError) -> None:
        for number in range(MOST_TRIES):
            await sleep(self._clock, wait_before(number, self._draw(), retry_after(error)))
            if not self._is_failed():
                return  # a call was quicker: it stands, or whoever tries now will tell of a failure
            try:
                await self._connection.session()
            except WireError as again:
                error = again
            if not self._is_failed() or not _heals(error):
                return
        _log.warning(
            "server %s is no longer tried in the background: %s", self._connection.server, error.message
        )

    def _is_failed(self) -> bool:
        return self._connection.phase == "failed"

    def _done(self, task: asyncio.Task[None]) -> None:
        if self._task is task:
            self._task = None
        if not task.cancelled() and (fault := task.exception()) is not None:
            _log.error("the healer of server %s failed", self._connection.server, exc_info=fault)


def wait_before(number: int, draw: float, asked: float | None = None) -> float:
    """Seconds before a try in the background, counted from 0: 30, 60, 120 … at most 600.

    Less up to a half by the draw, but no less than the server asked for, up to an hour.
    """
    nominal = min(FIRST_WAIT * 2.0 ** min(number, 10), LONGEST_WAIT)
    return max(nominal * (1.0 - draw / 2.0), min(asked or 0.0, LONGEST_ASKED) * (1.0 + draw / 10.0))


def _heals(error: WireError) -> bool:
    return retryable(error) and not login_needed(error)
