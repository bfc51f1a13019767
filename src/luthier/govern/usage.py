"""What was used of a budget: sums over a sliding window. Pure: time is handed in.

A window is counted in slots, so it costs the same whatever the number of calls. A slot counts until all that
may be in it is too old: in no window of that length is more used than what is allowed.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

SLOTS = 60


class Amount(NamedTuple):
    """How much: calls, seconds that they took, bytes that went there and back."""

    calls: int = 0
    seconds: float = 0.0
    bytes: int = 0

    def plus(self, other: Amount) -> Amount:
        return Amount(self.calls + other.calls, self.seconds + other.seconds, self.bytes + other.bytes)


class Limit(NamedTuple):
    """How much may be used; None: as much as there is."""

    calls: int | None = None
    seconds: float | None = None
    bytes: int | None = None

    def reached(self, used: Amount) -> str:
        """What is used up, in words; empty where nothing is."""
        if self.calls is not None and used.calls >= self.calls:
            return "1 call" if self.calls == 1 else f"{self.calls} calls"
        if self.seconds is not None and used.seconds >= self.seconds:
            return f"{self.seconds:g} s of calls"
        if self.bytes is not None and used.bytes >= self.bytes:
            return f"{self.bytes} bytes"
        return ""


class Usage:
    """What was used within the last `length` seconds; None: ever."""

    def __init__(self, length: float | None) -> None:
        self._length = length
        self._slot = 1.0 if length is None else length / SLOTS
        self._slots: deque[tuple[int, Amount]] = deque()  # the number of the slot, what was used in it

    def spend(self, now: float, amount: Amount) -> None:
        """Use some more."""
        number = 0 if self._length is None else int(now / self._slot)
        if self._slots and self._slots[-1][0] >= number:
            last, before = self._slots.pop()
            self._slots.append((last, before.plus(amount)))
        else:
            self._slots.append((number, amount))

    def used(self, now: float) -> Amount:
        """What counts now."""
        self._forget(now)
        total = Amount()
        for _, amount in self._slots:
            total = total.plus(amount)
        return total

    def free_in(self, now: float, limit: Limit) -> float | None:
        """Seconds until something is free again; None: never."""
        if self._length is None:
            return None
        total = self.used(now)
        for number, amount in self._slots:
            total = Amount(
                total.calls - amount.calls, total.seconds - amount.seconds, total.bytes - amount.bytes
            )
            if not limit.reached(total):
                return self._end(number) - now
        return None  # what may never be used at all

    def is_empty(self, now: float) -> bool:
        """Whether nothing counts any more."""
        self._forget(now)
        return not self._slots

    def _forget(self, now: float) -> None:
        if self._length is not None:
            while self._slots and self._end(self._slots[0][0]) <= now:
                self._slots.popleft()

    def _end(self, number: int) -> float:
        return (number + 1) * self._slot + (self._length or 0.0)
