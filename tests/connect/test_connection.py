"""One owner for each connection: what it does in the moments between two states."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, cast

import pytest

from luthier.clock import FakeClock, settle, sleep
from luthier.connect.connection import Connection, ended_within
from luthier.connect.lifecycle import Policy
from luthier.errors import ConnectError, ConnectionLostError, WireError
from luthier.events import Observers, ServerStopped
from tests.connect.kit import Notebook

if TYPE_CHECKING:
    from luthier.wire import Leave, Session


class FakeSession:
    """A session that ends when it is told to, and takes as long to close as it is told to."""

    version = "2026-07-28"

    def __init__(self, *, closing: float | None = 0.0, clock: FakeClock | None = None) -> None:
        self.closed = False
        self.closes = 0
        self.is_put_away = False
        self._closing = closing
        self._clock = clock
        self._ended: asyncio.Future[WireError | None] = asyncio.get_running_loop().create_future()

    def crash(self) -> None:
        self.closed = True
        self._ended.set_result(ConnectionLostError("it crashed"))

    async def wait_closed(self) -> WireError | None:
        return await asyncio.shield(self._ended)

    async def close(self) -> None:
        self.closed = True
        self.closes += 1
        if self._closing is None:
            await asyncio.Event().wait()
        elif self._clock is not None:
            timer = asyncio.Event()
            self._clock.call_later(self._closing, timer.set)
            await timer.wait()
        self.is_put_away = True


class Stage:
    """A connection whose openings are played by the test."""

    def __init__(self, max_retries: int = 0) -> None:
        self.clock = FakeClock()
        self.notebook = Notebook()
        self.openings: list[asyncio.Future[Session]] = []
        self.connection = Connection(
            "lute",
            self.open,
            policy=Policy(max_retries),
            clock=self.clock,
            observers=Observers([self.notebook]),
            draw=lambda: 0.0,
        )

    async def open(self, attempt: int, leave: Leave) -> Session:
        assert attempt >= 1
        self.leave = leave
        opening: asyncio.Future[Session] = asyncio.get_running_loop().create_future()
        self.openings.append(opening)
        return await opening

    async def ask(self) -> asyncio.Task[Any]:
        task: asyncio.Task[Any] = asyncio.create_task(self.connection.session())
        await settle()
        return task

    def opened(self, session: FakeSession) -> FakeSession:
        self.openings[-1].set_result(cast("Session", session))
        return session


def owner() -> asyncio.Task[Any]:
    (task,) = [task for task in asyncio.all_tasks() if task.get_name() == "luthier connection to lute"]
    return task


async def test_a_session_that_ended_unnoticed_is_not_handed_out_again() -> None:
    stage = Stage()
    asking = await stage.ask()
    session = stage.opened(FakeSession())
    assert await asking is session
    session.closed = True  # its owner has not been told yet
    assert stage.connection.live is None
    again = await stage.ask()
    session.crash()
    await settle()
    other = stage.opened(FakeSession())
    assert await again is other
    assert session.closes == 1
    assert stage.connection.sessions == 2


async def test_a_new_session_is_not_opened_before_the_old_one_is_put_away() -> None:
    stage = Stage()
    asking = await stage.ask()
    session = stage.opened(FakeSession(closing=4.0, clock=stage.clock))
    await asking
    session.crash()
    again = await stage.ask()
    assert session.closes == 1
    assert len(stage.openings) == 1
    await stage.clock.advance(4.0)
    assert len(stage.openings) == 2
    other = stage.opened(FakeSession())
    assert await again is other


async def test_a_reset_during_an_opening_leaves_no_session_behind_and_the_next_wish_opens_one() -> None:
    stage = Stage()
    asking = await stage.ask()
    reset = asyncio.create_task(stage.connection.reset(1.0))
    await settle()
    assert reset.done()
    with pytest.raises(ConnectError, match="was reset") as caught:
        await asking
    assert caught.value.retryable
    assert stage.openings[0].cancelled()
    again = await stage.ask()
    session = stage.opened(FakeSession())
    assert await again is session


async def test_a_reset_in_the_moment_in_which_an_opening_succeeds_wins() -> None:
    stage = Stage()
    asking = await stage.ask()
    reset = asyncio.create_task(stage.connection.reset(1.0))
    session = stage.opened(FakeSession())  # the owner has not seen it when the reset comes
    await settle()
    assert reset.done()
    with pytest.raises(ConnectError, match="was reset"):
        await asking
    again = await stage.ask()
    other = stage.opened(FakeSession())
    assert await again is other
    assert stage.connection.live is await again
    assert stage.connection.sessions == 1
    assert session.closes == 0  # whoever opens closes what it opened when it is cancelled


async def test_a_wish_right_after_a_reset_waits_for_the_old_session_and_is_served_by_a_new_one() -> None:
    stage = Stage()
    asking = await stage.ask()
    session = stage.opened(FakeSession(closing=2.0, clock=stage.clock))
    await asking
    reset = asyncio.create_task(stage.connection.reset(5.0))
    await settle()
    again = await stage.ask()
    assert stage.connection.phase == "connecting"
    await stage.clock.advance(2.0)
    other = stage.opened(FakeSession())
    assert await again is other
    await settle()
    assert reset.done()
    assert session.closes == 1


async def test_closing_ends_within_its_bound_though_the_session_never_closes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    stage = Stage()
    asking = await stage.ask()
    stage.opened(FakeSession(closing=None))
    await asking
    closing = asyncio.create_task(stage.connection.close(3.0))
    await stage.clock.advance(2.9)
    assert not closing.done()
    with caplog.at_level(logging.ERROR, "luthier.connect"):
        await stage.clock.advance(0.2)
    assert closing.done()
    assert "did not stop within 3 s" in caplog.text
    with pytest.raises(ConnectError, match="was closed"):
        await stage.connection.session()
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        task.cancel()


@pytest.mark.parametrize("first", ["reset", "crash"])
async def test_who_puts_a_session_away_is_not_disturbed_by_those_who_come_to_end_it(first: str) -> None:
    stage = Stage()
    asking = await stage.ask()
    session = stage.opened(FakeSession(closing=4.0, clock=stage.clock))
    await asking
    ending = []
    if first == "crash":
        session.crash()
    else:
        ending.append(asyncio.create_task(stage.connection.reset(10.0)))
    await settle()
    ending.append(asyncio.create_task(stage.connection.reset(10.0)))
    await settle()
    ending.append(asyncio.create_task(stage.connection.close(10.0)))
    await stage.clock.advance(3.9)
    assert not any(task.done() for task in ending)
    await stage.clock.advance(0.2)
    assert all(task.done() for task in ending)
    assert session.closes == 1
    assert session.is_put_away


async def test_a_connection_that_was_never_wanted_closes_at_once_and_stays_closed() -> None:
    stage = Stage()
    await stage.connection.close(1.0)
    await stage.connection.reset(1.0)
    assert stage.connection.phase == "closed"
    with pytest.raises(ConnectError) as caught:
        await stage.connection.session()
    assert not caught.value.retryable


async def test_closing_on_purpose_is_told_without_a_fault() -> None:
    stage = Stage()
    asking = await stage.ask()
    stage.opened(FakeSession())
    await asking
    await stage.connection.close(1.0)
    assert [event.reason for event in stage.notebook.of(ServerStopped)] == [""]


async def test_a_fault_of_our_own_in_opening_frees_all_who_wait(caplog: pytest.LogCaptureFixture) -> None:
    stage = Stage()
    asking = [await stage.ask() for _ in range(3)]
    with caplog.at_level(logging.ERROR, "luthier.connect"):
        stage.openings[0].set_exception(ZeroDivisionError())
        await settle()
    for task in asking:
        assert isinstance(task.exception(), ConnectError)
    assert "the owner of the connection to lute failed" in caplog.text
    again = await stage.ask()
    session = stage.opened(FakeSession())
    assert await again is session


async def test_an_owner_that_is_cancelled_from_outside_closes_its_session_and_the_next_wish_works() -> None:
    stage = Stage()
    asking = await stage.ask()
    session = stage.opened(FakeSession())
    await asking
    owner().cancel()
    await settle()
    assert session.closes == 1
    again = await stage.ask()
    other = stage.opened(FakeSession())
    assert await again is other


async def test_an_owner_that_is_cancelled_while_opening_frees_all_who_wait() -> None:
    stage = Stage()
    asking = await stage.ask()
    owner().cancel()
    await settle()
    with pytest.raises(ConnectError, match="was broken off"):
        await asking


async def test_errors_without_a_word_on_it_may_heal() -> None:
    stage = Stage(max_retries=1)
    asking = await stage.ask()
    stage.openings[0].set_exception(WireError("odd", server="lute"))
    await stage.clock.advance(1.0)
    assert len(stage.openings) == 2
    stage.openings[1].set_exception(WireError("odd again", server="lute"))
    with pytest.raises(WireError, match="odd again"):
        await asking
    assert stage.connection.phase == "failed"


class Remains:
    """What a try that failed leaves: put away once that much time has gone by."""

    def __init__(self, stage: Stage, seconds: float) -> None:
        self.clock, self.seconds, self.put_away = stage.clock, seconds, False
        stage.leave(self.end())
        stage.openings[-1].set_exception(ConnectError("it kept silent", server="lute"))

    async def end(self) -> None:
        await sleep(self.clock, self.seconds)
        self.put_away = True


async def test_an_error_is_handed_out_at_once_and_what_is_left_put_away_before_the_next_try() -> None:
    stage = Stage()
    asking = await stage.ask()
    remains = Remains(stage, 4.0)
    with pytest.raises(ConnectError, match="it kept silent"):
        await asking
    assert stage.connection.phase == "failed"
    again = await stage.ask()
    await stage.clock.advance(3.9)
    assert len(stage.openings) == 1
    await stage.clock.advance(0.1)
    assert remains.put_away
    session = stage.opened(FakeSession())
    assert await again is session


async def test_the_next_try_of_a_row_waits_until_what_the_last_one_left_is_put_away() -> None:
    stage = Stage(max_retries=1)
    await stage.ask()
    Remains(stage, 4.0)
    await stage.clock.advance(3.9)
    assert len(stage.openings) == 1
    await stage.clock.advance(0.1)
    assert len(stage.openings) == 2
    await stage.connection.close(1.0)


@pytest.mark.parametrize("tries", [1, 2])
async def test_closing_waits_for_what_was_left_and_does_not_disturb_it(tries: int) -> None:
    stage = Stage(max_retries=tries - 1)
    await stage.ask()
    remains = Remains(stage, 4.0)
    await settle()
    closing = asyncio.create_task(stage.connection.close(10.0))
    await stage.clock.advance(3.9)
    assert not closing.done()
    await stage.clock.advance(0.1)
    assert closing.done()
    assert remains.put_away
    assert len(stage.openings) == 1


async def test_waiting_for_nothing_is_over_at_once() -> None:
    assert await ended_within((), FakeClock(), 1.0)
