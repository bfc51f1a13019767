"""Signatures that were used: each is good for one run, in all processes that share the store.

A signature is kept as long as its time would let it in, and no longer; only those that hold are kept, so
there are no more than whoever has the secret sends.
"""

from __future__ import annotations

import heapq
import threading
from typing import TYPE_CHECKING

from luthier.govern.storing import asked

if TYPE_CHECKING:
    from luthier.clock import Clock
    from luthier.connect.state import StateStore
    from luthier.serve.caller import Proof

KIND = "signatures"

AT_ONCE = 2
"""How many that are over are taken out with each new one: more than come in, and soon done."""


class Replays:
    """The signatures of one project."""

    def __init__(self, state: StateStore, clock: Clock) -> None:
        self._state = state
        self._clock = clock
        self._turn = threading.Lock()
        self._kept: list[tuple[float, str]] | None = None  # a heap of those that this process will take out

    async def first(self, proof: Proof) -> bool:
        """Whether it was never used; from now on it was. Raises StoreError."""
        return await asked(self._clock, self._state, lambda: self._first(proof))

    async def forget(self, proof: Proof) -> None:
        """Let it in once more, as nothing came of it. Raises StoreError."""
        await asked(self._clock, self._state, lambda: self._state.delete(KIND, proof.key))

    def _first(self, proof: Proof) -> bool:
        with self._turn:
            if self._kept is None:  # with what processes before this one have left
                self._kept = [(until, key) for key, until in self._state.list(KIND).items()]
                heapq.heapify(self._kept)
            for _ in range(AT_ONCE):
                if self._kept and self._kept[0][0] < self._clock.now():
                    self._state.delete(KIND, heapq.heappop(self._kept)[1])
            if not self._state.swap(KIND, proof.key, None, proof.until):
                return False
            heapq.heappush(self._kept, (proof.until, proof.key))
            return True
