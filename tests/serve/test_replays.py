"""Signatures that were used: known in every process, kept as long as they would open, and no longer."""

from __future__ import annotations

import asyncio
from contextlib import closing
from typing import TYPE_CHECKING

from luthier.serve.caller import Proof
from luthier.serve.replays import AT_ONCE, KIND, Replays
from luthier.store import DEFAULT, Database, SqlState
from luthier.testing import FakeClock, MemoryState

if TYPE_CHECKING:
    from pathlib import Path

NOW = 1_000_000_000.0


def proof(number: int, until: float = NOW + 300) -> Proof:
    return Proof(f"key {number}", until)


async def test_the_first_of_all_processes_is_the_only_one(tmp_path: Path) -> None:
    with closing(Database(DEFAULT, tmp_path)) as one, closing(Database(DEFAULT, tmp_path)) as two:
        both = [Replays(SqlState(database), FakeClock()) for database in (one, two)]
        found = await asyncio.gather(*(of.first(proof(1)) for of in both for _ in range(5)))
        assert sorted(found) == [False] * 9 + [True]
        assert await both[1].first(proof(2))
        await both[0].forget(proof(2))
        assert [await of.first(proof(2)) for of in both] == [True, False]


async def test_no_more_are_kept_than_would_open() -> None:
    state, clock = MemoryState(), FakeClock()
    replays = Replays(state, clock)
    for number in range(50):
        assert await replays.first(proof(number, clock.now() + 300))
        await clock.advance(30)
    assert len(state.list(KIND)) <= 11
    await clock.advance(1000)
    for number in range(100, 111):
        assert await replays.first(proof(number, clock.now() + 300))
    assert sorted(state.list(KIND)) == sorted(f"key {number}" for number in range(100, 111))


async def test_what_processes_before_have_left_is_taken_out_little_by_little() -> None:
    state, clock = MemoryState(), FakeClock()
    for number in range(10):
        state.put(KIND, f"old {number}", NOW - 1)
    state.put(KIND, "good", NOW + 300)
    replays = Replays(state, clock)
    for number in range(10 // AT_ONCE):
        assert await replays.first(proof(number))
        assert len([key for key in state.list(KIND) if key.startswith("old")]) == 10 - AT_ONCE * (number + 1)
    assert not await replays.first(Proof("good", NOW + 300))
