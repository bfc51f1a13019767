"""Servers that could not be reached heal in the background, and nobody is kept waiting or busy by that."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luthier.clock import settle
from luthier.connect.healing import FIRST_WAIT, LONGEST_ASKED, LONGEST_WAIT, MOST_TRIES, wait_before
from luthier.errors import (
    ApprovalNeededError,
    ConnectError,
    HttpAnswer,
    HttpError,
    LoginNeededError,
    WireError,
)
from luthier.events import ServerStarting
from luthier.wire import MemoryServer, MemoryTransport
from tests.connect.kit import House


class Sick(MemoryServer):
    """Cannot be reached as long as there is an error to say why."""

    def __init__(self, error: WireError | None) -> None:
        super().__init__("lute", {"play": "a note"})
        self.error = error

    def transport(self) -> MemoryTransport:
        if self.error is not None:
            raise self.error
        return super().transport()


DOWN = ConnectError("it is down", server="lute")


async def sick(error: WireError, max_retries: int = 0) -> tuple[House, Sick]:
    """A house whose one server has just failed with that error."""
    lute = Sick(error)
    house = House(lute, lute={"max_retries": max_retries})
    with pytest.raises(WireError):
        await house.settled(house.manager.connect("lute"))
    return house, lute


def tries(house: House) -> int:
    return len(house.notebook.of(ServerStarting))


async def test_a_server_that_was_down_is_connected_in_the_background_once_it_is_back() -> None:
    house, lute = await sick(DOWN)
    assert house.manager.state("lute") == "failed"
    lute.error = None
    await house.clock.advance(FIRST_WAIT)
    assert house.manager.state("lute") == "ready"
    assert lute.connections == 1
    await house.clock.advance(3600.0)
    assert lute.connections == 1


async def test_a_server_that_stays_down_is_tried_ever_more_seldom_and_in_the_end_no_more() -> None:
    house, _ = await sick(DOWN)
    await house.clock.advance(3600.0)
    assert 6 <= tries(house) <= 20
    await house.clock.advance(MOST_TRIES * LONGEST_WAIT)
    assert tries(house) == 1 + MOST_TRIES
    assert house.clock.waiting == 0


async def test_a_call_does_not_wait_for_the_background_but_tries_at_once() -> None:
    house, lute = await sick(DOWN)
    await house.clock.advance(1.0)
    lute.error = None
    assert (await house.settled(house.call("lute", "play"))).content == "a note"
    await house.clock.advance(3600.0)
    assert lute.connections == 1


async def test_a_call_that_fails_at_once_does_not_double_the_tries_in_the_background() -> None:
    house, _ = await sick(DOWN)
    for _ in range(5):
        with pytest.raises(ConnectError):
            await house.settled(house.call("lute", "play"))
    before = tries(house)
    await house.clock.advance(FIRST_WAIT)
    assert tries(house) == before + 1


async def test_a_server_that_comes_and_goes_is_healed_each_time() -> None:
    house, lute = await sick(DOWN)
    for _ in range(3):
        lute.error = None
        await house.clock.advance(FIRST_WAIT)
        assert house.manager.state("lute") == "ready"
        lute.error = DOWN
        lute.drop()
        with pytest.raises(ConnectError):
            await house.settled(house.call("lute", "play"))
        assert house.manager.state("lute") == "failed"


async def test_a_row_of_tries_of_somebody_else_is_left_to_go_on_and_its_failure_heals_again() -> None:
    house, lute = await sick(DOWN, max_retries=0)
    await settle()
    lute.error = None
    lute.refusal = "not yet"
    hanging = house.start(house.manager.connect("lute"))
    await settle(100)
    assert hanging.done()
    assert house.manager.state("lute") == "failed"
    lute.refusal = ""
    await house.clock.advance(FIRST_WAIT)
    assert house.manager.state("lute") == "ready"


@pytest.mark.parametrize(
    ("error", "phase"),
    [
        (ConnectError("no such command", server="lute", retryable=False), "failed"),
        (LoginNeededError("who are you?", server="lute"), "needs-login"),
        (ApprovalNeededError(server="lute"), "failed"),
    ],
    ids=["configuration", "login", "approval"],
)
async def test_what_cannot_heal_is_not_tried_in_the_background(error: WireError, phase: str) -> None:
    house, _ = await sick(error)
    assert house.manager.state("lute") == phase
    await house.clock.advance(3600.0)
    assert tries(house) == 1


async def test_a_fault_that_turns_out_to_be_beyond_healing_ends_the_tries() -> None:
    house, lute = await sick(DOWN)
    lute.error = LoginNeededError("who are you?", server="lute")
    await house.clock.advance(3600.0)
    assert tries(house) == 2
    assert house.manager.state("lute") == "needs-login"


async def test_a_login_that_was_made_meanwhile_is_found_by_the_next_call() -> None:
    house, lute = await sick(LoginNeededError("who are you?", server="lute"))
    lute.error = None
    assert (await house.settled(house.call("lute", "play"))).content == "a note"


async def test_a_server_that_asks_for_time_is_given_it() -> None:
    busy = HttpError("too many requests", HttpAnswer(429, retry_after=200.0))
    house, lute = await sick(ConnectError("busy", server="lute", http=busy), max_retries=5)
    lute.error = None
    await house.clock.advance(199.9)
    assert tries(house) == 1
    await house.clock.advance(21.0)
    assert house.manager.state("lute") == "ready"


async def test_a_short_time_that_a_server_asks_for_is_waited_for_by_the_callers() -> None:
    lute = Sick(HttpError("too many requests", HttpAnswer(503, retry_after=7.0)))
    house = House(lute, lute={"max_retries": 1})
    waiting = house.start(house.call("lute", "play"))
    await settle()
    lute.error = None
    await house.clock.advance(6.9)
    assert not waiting.done()
    await house.clock.advance(1.0)
    assert (await waiting).content == "a note"


async def test_the_end_of_the_house_ends_the_healing() -> None:
    house, _ = await sick(DOWN)
    healers = [task for task in asyncio.all_tasks() if task.get_name() == "luthier healer of lute"]
    assert len(healers) == 1
    await house.settled(house.manager.close_all())
    assert healers[0].done()
    await house.clock.advance(3600.0)
    assert tries(house) == 1
    assert house.clock.waiting == 0


async def test_the_end_comes_also_in_the_middle_of_a_try_in_the_background() -> None:
    house, lute = await sick(DOWN, max_retries=0)
    lute.error = None
    lute.probe = "ignore"
    lute.version = "2025-06-18"
    await house.clock.advance(FIRST_WAIT - 0.001)
    assert house.manager.state("lute") in ("connecting", "ready")
    await house.settled(house.manager.close_all())
    assert house.manager.state("lute") == "closed"
    await house.clock.advance(3600.0)
    assert house.clock.waiting == 0


async def test_an_entry_that_was_replaced_is_not_healed() -> None:
    house, _ = await sick(DOWN)
    await house.settled(house.manager.use(house.registry.without("lute")))
    await house.clock.advance(3600.0)
    assert tries(house) == 1


async def test_a_server_that_was_reset_is_left_alone_until_it_is_wanted() -> None:
    house, _ = await sick(DOWN)
    await house.settled(house.manager.reconnect("lute"))
    await house.clock.advance(3600.0)
    assert tries(house) == 1


@given(
    st.integers(0, 1000),
    st.floats(0, 1, exclude_max=True),
    st.none() | st.floats(0, 1e9),
)
def test_every_wait_is_bounded_from_below_and_from_above(
    number: int, draw: float, asked: float | None
) -> None:
    wait = wait_before(number, draw, asked)
    assert FIRST_WAIT / 2 <= wait <= max(LONGEST_WAIT, LONGEST_ASKED * 1.1)
    assert wait >= min(asked or 0.0, LONGEST_ASKED)
