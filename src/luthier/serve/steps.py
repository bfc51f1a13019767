"""Progress as the client hears of it: each step of a run that ended, and what servers report of a call."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from luthier.events import RunBegan, StepDone

if TYPE_CHECKING:
    from collections.abc import Callable

    from luthier.events import CallProgressed, Event


class Told(msgspec.Struct, frozen=True):
    """So much is done, of so much where that is known, and what the last of it came to."""

    done: float
    total: float | None
    message: str


def reported(tell: Callable[[Told], None]) -> Callable[[CallProgressed], None]:
    """Passes on what a server reports of one call."""

    def heard(event: CallProgressed) -> None:
        tell(Told(event.progress, event.total, event.message))

    return heard


class Steps:
    """Listens to one run. Runs inside of it count as the step that they are."""

    def __init__(self, tell: Callable[[Told], None] | None) -> None:
        self._tell = tell
        self._run = ""
        self._total = 0
        self._done = 0

    def notify(self, event: Event) -> None:
        match event:
            case RunBegan() if not self._run:
                self._run, self._total = event.run, len(event.steps)
            case StepDone() if self._tell is not None and event.run == self._run:
                self._done += 1
                # A loop runs its steps more than once.
                total = self._total if self._done <= self._total else None
                self._tell(Told(self._done, total, f"step {event.step}: {event.status}"))
            case _:
                pass
