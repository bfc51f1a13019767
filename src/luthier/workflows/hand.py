"""The hand that holds one attempt: its task, its timeout, and an end to waiting for what does not let go."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from luthier.errors import LuthierError
from luthier.redaction import logger
from luthier.spec import ToolsConfig
from luthier.workflows.caching import remembered
from luthier.workflows.operations.scoring import perform_judged
from luthier.workflows.record import Failure
from luthier.workflows.retries import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable

    from luthier.clock import Clock, Timer
    from luthier.workflows.operations import Attempt
    from luthier.workflows.record import Data

HEAD_START = 0.1
"""Seconds after its timeout that a call is left to end by itself: only the wire knows whether it was sent."""

_log = logger("luthier.workflows")
_left: set[asyncio.Task[None]] = set()  # tasks that did not let go, kept until they do


def _unheard(_: Data) -> None:
    """What an operation tells after its attempt has ended."""


class Hand:
    """Calls `let_go` exactly once with the outcome, unless it is dropped.

    The step's timeout cancels the task, and so does `cancel`; a task that is cancelled has `grace` seconds to
    end, then the attempt ends without it. What ends by itself while it is being cancelled keeps its own
    outcome. For the timeout of a call, see `HEAD_START`.
    """

    def __init__(
        self, attempt: Attempt, clock: Clock, grace: float, let_go: Callable[[Outcome], None]
    ) -> None:
        self._attempt = attempt
        self._clock = clock
        self._grace = grace
        self._let_go: Callable[[Outcome], None] | None = let_go
        self._cut = ""  # why it was cancelled: timeout or cancelled
        self._timer: Timer | None = None
        self._entered = False
        timeout = attempt.step.timeout
        if timeout is not None:
            if isinstance(attempt.step.config, ToolsConfig):
                timeout += HEAD_START
            self._timer = clock.call_later(timeout, lambda: self.cancel("timeout"))
        self._task = asyncio.get_running_loop().create_task(self._work())

    def cancel(self, why: str, grace: float | None = None) -> bool:
        """Call it off; False where that has been done before. `grace` other than usual, in seconds."""
        if self._cut:
            return False
        self._cut = why
        self._stop_timer()
        if grace is not None:
            self._grace = grace
        self._timer = self._clock.call_later(self._grace, self._give_up)
        if self._entered:  # else it sees for itself: a task that is cancelled before it begins never begins
            self._task.cancel()
        return True

    def drop(self) -> None:
        """Forget it: nobody is interested in its outcome any more."""
        self._let_go = None
        self._attempt.tell = _unheard
        self._stop_timer()
        self._task.cancel()

    async def _work(self) -> None:
        self._entered = True
        try:
            outcome = self._cut_off() if self._cut else await remembered(self._attempt, perform_judged)
        except asyncio.CancelledError:
            outcome = self._cut_off()
        except LuthierError as error:
            outcome = self._attempt.failed(error)
        except Exception as error:  # noqa: BLE001  (logged, and the run goes on)
            _log.exception("step %s failed unexpectedly", self._attempt.step.name)
            outcome = self._attempt.failed(error)
        self._settle(outcome)

    def _give_up(self) -> None:
        _left.add(self._task)
        self._task.add_done_callback(_left.discard)
        self._attempt.notes.append(f"It did not stop within {self._grace:g} s and was left behind.")
        self._settle(self._cut_off())

    def _cut_off(self) -> Outcome:
        attempt = self._attempt
        if self._cut == "timeout":
            message = f"timed out after {attempt.step.timeout:g} s"
        elif self._cut:
            message = "called off"
        else:
            message = "the operation cancelled itself"
        error = Failure(
            kind=self._cut or "code",
            message=" ".join((f"{message}.", *attempt.notes)) if attempt.notes else message,
        )
        return Outcome(
            error=error,
            label=attempt.label,
            harmless=attempt.harmless,
            cancelled=self._cut == "cancelled",
        )

    def _settle(self, outcome: Outcome) -> None:
        self._stop_timer()
        if self._let_go is not None:
            let_go, self._let_go = self._let_go, None
            self._attempt.tell = _unheard
            let_go(outcome)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
