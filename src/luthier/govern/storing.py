"""Asking the store of small facts from the loop: in a thread, and not for longer than it may take.

One in memory answers at once: with a clock that is turned by hand no thread can keep its time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from luthier.clock import Deadline
from luthier.connect.state import MemoryState
from luthier.errors import StoreError
from luthier.tools.threads import in_thread

if TYPE_CHECKING:
    from collections.abc import Callable

    from luthier.clock import Clock
    from luthier.connect.state import StateStore

T = TypeVar("T")

LONGEST = 5.0
"""Seconds that the store has for one answer."""


async def asked(clock: Clock, store: StateStore, question: Callable[[], T]) -> T:
    """The answer of the store. Raises StoreError where it fails or takes too long."""
    if type(store) is MemoryState:
        return question()
    deadline = Deadline(clock, LONGEST)
    try:
        async with deadline:
            return await in_thread(question, name="luthier-state")
    except TimeoutError as error:
        if not deadline.expired:
            raise
        raise StoreError(
            f"The state store did not answer within {LONGEST:g} s.", hint="`luthier doctor` looks at it."
        ) from error
