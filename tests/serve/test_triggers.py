"""The limit of a trigger, by tables and by chance."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from luthier.serve import triggers
from luthier.serve.caller import Caller
from luthier.serve.triggers import Limit
from luthier.spec.http_trigger import Rate
from luthier.testing import FakeClock

if TYPE_CHECKING:
    from typing import Literal

ADA, BOB = Caller(id="ada"), Caller(id="bob")


def limit(clock: FakeClock, requests: int = 2, key: Literal["ip", "user"] = "ip") -> Limit:
    return Limit(Rate(requests=requests, window=10, key=key), clock)


async def test_who_has_come_often_enough_waits_until_the_first_time_is_long_ago() -> None:
    clock = FakeClock()
    found = limit(clock)
    assert [found.wait(ADA, "a"), found.wait(ADA, "a")] == [0, 0]
    await clock.advance(4)
    assert found.wait(ADA, "a") == 6
    assert found.wait(ADA, "b") == 0
    await clock.advance(6)
    assert found.wait(ADA, "a") == 0


async def test_a_limit_may_be_of_the_caller() -> None:
    found = limit(FakeClock(), requests=1, key="user")
    assert [found.wait(ADA, "a"), found.wait(BOB, "a")] == [0, 0]
    assert found.wait(ADA, "b") == 10


async def test_a_crowd_is_forgotten() -> None:
    clock = FakeClock()
    found = limit(clock, requests=1)
    for number in range(triggers.MOST_CALLERS + 1):
        assert found.wait(ADA, str(number)) == 0
    assert found.known <= triggers.MOST_CALLERS
    await clock.advance(11)
    for number in range(triggers.MOST_CALLERS):
        found.wait(ADA, f"later {number}")
    assert found.known <= triggers.MOST_CALLERS


@given(st.lists(st.sampled_from([0, 1, 3, 11]), max_size=40))
async def test_no_window_ever_holds_more_than_the_limit(pauses: list[int]) -> None:
    clock = FakeClock()
    found, let_in = limit(clock, requests=3), []
    for pause in pauses:
        await clock.advance(pause)
        if not found.wait(ADA, "a"):
            let_in.append(clock.monotonic())
    assert all(later - earlier >= 10 for earlier, later in zip(let_in, let_in[3:], strict=False))
