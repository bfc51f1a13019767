"""The clock port: one contract for both clocks, and what only the clock that is turned by hand promises."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luthier.clock import Clock, Deadline, FakeClock, SystemClock, Timer, settle, sleep

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine


class FakeWorld:
    """Time passes when it is told to."""

    def __init__(self) -> None:
        self.fake = FakeClock()
        self.clock: Clock = self.fake

    async def passes(self, units: float) -> None:
        await self.fake.advance(units)


class RealWorld:
    """A unit is 20 ms, and passing is waiting."""

    UNIT = 0.02

    def __init__(self) -> None:
        self.clock: Clock = _InUnits(SystemClock(), self.UNIT)

    async def passes(self, units: float) -> None:
        passed = asyncio.Event()
        asyncio.get_running_loop().call_later(units * self.UNIT, passed.set)
        await passed.wait()


class _InUnits:
    """The system's clock, told in units."""

    def __init__(self, clock: SystemClock, unit: float) -> None:
        self._clock = clock
        self._unit = unit

    def now(self) -> float:
        return self._clock.now()

    def monotonic(self) -> float:
        return self._clock.monotonic() / self._unit

    def call_later(self, seconds: float, callback: Callable[[], object]) -> asyncio.TimerHandle:
        timer = self._clock.call_later(seconds * self._unit, callback)
        assert isinstance(timer, asyncio.TimerHandle)
        return timer


class _Held(FakeClock):
    """Keeps what is asked of it, for a test to call in one turn of the loop with something else."""

    def __init__(self) -> None:
        super().__init__()
        self.callbacks: list[Callable[[], object]] = []

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Timer:
        self.callbacks.append(callback)
        return super().call_later(seconds, callback)


World = FakeWorld | RealWorld


@pytest.fixture(params=[FakeWorld, RealWorld])
def world(request: pytest.FixtureRequest) -> World:
    made: World = request.param()
    return made


async def never() -> None:
    await asyncio.get_running_loop().create_future()


async def started(body: Coroutine[object, object, None]) -> asyncio.Task[None]:
    task = asyncio.ensure_future(body)
    await settle()
    return task


class TestTimers:
    async def test_a_callback_comes_once_and_not_before_its_time(self, world: World) -> None:
        called: list[float] = []
        start = world.clock.monotonic()
        world.clock.call_later(2, lambda: called.append(world.clock.monotonic() - start))
        await world.passes(1)
        assert called == []
        await world.passes(2)
        await world.passes(2)
        assert len(called) == 1
        assert called[0] >= 2 - 0.01

    async def test_timers_come_in_the_order_in_which_they_fall_due(self, world: World) -> None:
        called: list[str] = []
        world.clock.call_later(3, lambda: called.append("third"))
        world.clock.call_later(1, lambda: called.append("first"))
        world.clock.call_later(2, lambda: called.append("second"))
        await world.passes(4)
        assert called == ["first", "second", "third"]

    async def test_a_cancelled_timer_does_not_come_and_may_be_cancelled_twice(self, world: World) -> None:
        called: list[str] = []
        timer = world.clock.call_later(1, lambda: called.append("no"))
        timer.cancel()
        timer.cancel()
        await world.passes(2)
        assert called == []

    async def test_cancelling_a_timer_that_has_come_is_harmless(self, world: World) -> None:
        called: list[str] = []
        timer = world.clock.call_later(1, lambda: called.append("yes"))
        await world.passes(2)
        timer.cancel()
        assert called == ["yes"]

    @pytest.mark.parametrize("seconds", [0, -1])
    async def test_what_is_due_already_comes_at_the_next_turn_of_the_loop(
        self, world: World, seconds: float
    ) -> None:
        called: list[str] = []
        world.clock.call_later(seconds, lambda: called.append("now"))
        assert called == []
        await settle()
        assert called == ["now"]

    async def test_a_due_timer_can_still_be_cancelled(self, world: World) -> None:
        called: list[str] = []
        world.clock.call_later(0, lambda: called.append("no")).cancel()
        await settle()
        assert called == []

    async def test_both_times_move_on_together(self, world: World) -> None:
        now, steady = world.clock.now(), world.clock.monotonic()
        await world.passes(2)
        assert world.clock.now() > now
        assert world.clock.monotonic() - steady >= 2 - 0.01


class TestSleep:
    async def test_it_ends_when_the_time_has_passed(self, world: World) -> None:
        task = await started(sleep(world.clock, 2))
        await world.passes(1)
        assert not task.done()
        await world.passes(2)
        assert task.done()

    @pytest.mark.parametrize("seconds", [0, -5])
    async def test_no_time_needs_no_waiting(self, world: World, seconds: float) -> None:
        task = await started(sleep(world.clock, seconds))
        assert task.done()

    @pytest.mark.parametrize("order", ["waking first", "cancellation first"])
    async def test_a_cancellation_wins_over_a_waking_in_the_same_turn(self, order: str) -> None:
        clock = _Held()
        task = await started(sleep(clock, 1))
        together: list[Callable[[], object]] = [*clock.callbacks, task.cancel]
        for act in together if order == "waking first" else reversed(together):
            act()
        with pytest.raises(asyncio.CancelledError):
            await task

    async def test_a_cancelled_sleep_leaves_no_timer(self) -> None:
        clock = FakeClock()
        task = await started(sleep(clock, 5))
        assert clock.waiting == 1
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert clock.waiting == 0


class TestDeadline:
    async def test_a_body_in_time_is_not_disturbed(self, world: World) -> None:
        async with Deadline(world.clock, 5) as deadline:
            value = "done"
        await world.passes(6)
        assert value == "done"
        assert not deadline.expired

    async def test_a_body_out_of_time_is_cancelled_and_raises_timeout(self, world: World) -> None:
        deadline = Deadline(world.clock, 2)
        cancelled: list[bool] = []

        async def body() -> None:
            async with deadline:
                try:
                    await never()
                except asyncio.CancelledError:
                    cancelled.append(True)
                    raise

        task = await started(body())
        await world.passes(1)
        assert not task.done()
        await world.passes(2)
        with pytest.raises(TimeoutError):
            await task
        assert cancelled == [True]
        assert deadline.expired

    async def test_the_task_is_as_it_was_after_an_expiry(self, world: World) -> None:
        async def body() -> int:
            with suppress(TimeoutError):
                async with Deadline(world.clock, 1):
                    await never()
            await asyncio.sleep(0)  # nothing is left to be cancelled
            task = asyncio.current_task()
            assert task is not None
            return task.cancelling()

        task = asyncio.ensure_future(body())
        await settle()
        await world.passes(2)
        assert await task == 0

    async def test_none_is_no_limit(self, world: World) -> None:
        async def body() -> None:
            async with Deadline(world.clock, None) as deadline:
                await sleep(world.clock, 3)
            assert not deadline.expired

        task = await started(body())
        await world.passes(4)
        await task

    @pytest.mark.parametrize("seconds", [0, -1])
    async def test_time_that_is_up_at_the_start_cancels_the_first_wait(
        self, world: World, seconds: float
    ) -> None:
        with pytest.raises(TimeoutError):
            async with Deadline(world.clock, seconds):
                await never()

    async def test_a_body_that_waits_for_nothing_is_never_late(self, world: World) -> None:
        async with Deadline(world.clock, 0):
            value = "done"
        await settle()
        assert value == "done"

    async def test_a_cancellation_from_outside_stays_one(self, world: World) -> None:
        deadline = Deadline(world.clock, 5)

        async def body() -> None:
            async with deadline:
                await never()

        task = await started(body())
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not deadline.expired

    @pytest.mark.parametrize("order", ["expiry first", "cancellation first"])
    async def test_a_cancellation_from_outside_wins_over_an_expiry_in_the_same_turn(self, order: str) -> None:
        clock = _Held()
        deadline = Deadline(clock, 1)

        async def body() -> None:
            async with deadline:
                await never()

        task = await started(body())
        together: list[Callable[[], object]] = [*clock.callbacks, task.cancel]
        for act in together if order == "expiry first" else reversed(together):
            act()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert deadline.expired
        assert task.cancelled()

    async def test_a_cancellation_during_the_clean_up_after_an_expiry_stays_one(self) -> None:
        clock = FakeClock()

        async def body() -> None:
            async with Deadline(clock, 1):
                try:
                    await never()
                finally:
                    await sleep(clock, 5)

        task = await started(body())
        await clock.advance(2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    async def test_the_inner_of_two_deadlines_leaves_the_outer_alone(self, world: World) -> None:
        outer, inner = Deadline(world.clock, 50), Deadline(world.clock, 1)

        async def body() -> str:
            async with outer:
                with suppress(TimeoutError):
                    async with inner:
                        await never()
                return "went on"

        task = asyncio.ensure_future(body())
        await settle()
        await world.passes(2)
        assert await task == "went on"
        assert (inner.expired, outer.expired) == (True, False)

    async def test_the_outer_of_two_deadlines_passes_through_the_inner(self, world: World) -> None:
        outer, inner = Deadline(world.clock, 1), Deadline(world.clock, 50)
        seen: list[str] = []

        async def body() -> None:
            async with outer:
                try:
                    async with inner:
                        await never()
                except TimeoutError:
                    seen.append("inner")
                    raise

        task = await started(body())
        await world.passes(2)
        with pytest.raises(TimeoutError):
            await task
        assert seen == []
        assert (inner.expired, outer.expired) == (False, True)

    async def test_two_deadlines_that_expire_at_once_raise_one_timeout_from_the_outer(self) -> None:
        clock = _Held()
        seen: list[str] = []

        async def body() -> None:
            async with Deadline(clock, 1):
                try:
                    async with Deadline(clock, 1):
                        await never()
                except TimeoutError:
                    seen.append("inner")
                    raise

        task = await started(body())
        for expire in clock.callbacks:
            expire()
        with pytest.raises(TimeoutError):
            await task
        assert seen == []

    async def test_the_body_s_own_error_is_not_replaced(self, world: World) -> None:
        async def body() -> None:
            async with Deadline(world.clock, 1):
                try:
                    await never()
                except asyncio.CancelledError:
                    raise ValueError("mine") from None

        task = await started(body())
        await world.passes(2)
        with pytest.raises(ValueError, match="mine"):
            await task
        assert task.cancelling() == 0

    async def test_a_timeout_of_the_body_s_own_is_told_by_expired(self, world: World) -> None:
        deadline = Deadline(world.clock, 5)
        with pytest.raises(TimeoutError):
            async with deadline:
                raise TimeoutError
        assert not deadline.expired

    async def test_a_body_that_swallows_the_cancellation_ends_normally(self, world: World) -> None:
        deadline = Deadline(world.clock, 1)

        async def body() -> int:
            async with deadline:
                with suppress(asyncio.CancelledError):
                    await never()
            task = asyncio.current_task()
            assert task is not None
            return task.cancelling()

        task = asyncio.ensure_future(body())
        await settle()
        await world.passes(2)
        assert await task == 0
        assert deadline.expired

    async def test_a_task_group_inside_is_ended_with_all_its_tasks(self, world: World) -> None:
        ended: list[int] = []

        async def worker(number: int) -> None:
            try:
                await never()
            finally:
                ended.append(number)

        async def body() -> None:
            async with Deadline(world.clock, 1), asyncio.TaskGroup() as group:
                for number in range(3):
                    group.create_task(worker(number))

        before = asyncio.all_tasks()
        task = await started(body())
        await world.passes(2)
        with pytest.raises(TimeoutError):
            await task
        assert sorted(ended) == [0, 1, 2]
        assert asyncio.all_tasks() == before

    async def test_a_deadline_that_is_left_in_time_leaves_no_timer(self) -> None:
        clock = FakeClock()
        async with Deadline(clock, 5):
            assert clock.waiting == 1
        assert clock.waiting == 0

    async def test_it_is_for_one_use(self, world: World) -> None:
        deadline = Deadline(world.clock, 5)
        async with deadline:
            pass
        with pytest.raises(RuntimeError, match="once"):
            await deadline.__aenter__()

    def test_it_works_inside_a_task_only(self) -> None:
        loop = asyncio.new_event_loop()
        failed: list[BaseException] = []

        def enter() -> None:
            try:
                Deadline(FakeClock(), 1).__aenter__().send(None)
            except RuntimeError as error:
                failed.append(error)

        loop.call_soon(enter)
        loop.call_soon(loop.stop)
        loop.run_forever()
        loop.close()
        assert "inside a task" in str(failed[0])


class TestFakeClock:
    def test_it_starts_at_a_known_time_and_stands_still(self) -> None:
        clock = FakeClock()
        assert (clock.now(), clock.monotonic()) == (1_000_000_000.0, 0.0)
        assert FakeClock(5).now() == 5

    async def test_a_callback_sees_the_time_at_which_it_was_due(self) -> None:
        clock = FakeClock(100)
        seen: list[float] = []
        clock.call_later(2.5, lambda: seen.append(clock.now()))
        await clock.advance(10)
        assert seen == [102.5]
        assert clock.now() == 110

    async def test_timers_that_callbacks_set_come_in_the_same_advance(self) -> None:
        clock = FakeClock()
        seen: list[float] = []

        def again() -> None:
            seen.append(clock.monotonic())
            clock.call_later(2, again)

        clock.call_later(1, again)
        await clock.advance(6)
        assert seen == [1, 3, 5]

    async def test_timers_due_together_come_in_the_order_of_asking(self) -> None:
        clock = FakeClock()
        seen: list[int] = []
        for number in range(5):
            clock.call_later(1, lambda number=number: seen.append(number))  # type: ignore[misc]
        await clock.advance(1)
        assert seen == [0, 1, 2, 3, 4]

    async def test_tasks_settle_between_two_timers(self) -> None:
        clock = FakeClock()
        seen: list[str] = []

        async def worker() -> None:
            await sleep(clock, 1)
            seen.append("woken")

        task = await started(worker())
        clock.call_later(2, lambda: seen.append("later"))
        await clock.advance(2)
        await task
        assert seen == ["woken", "later"]

    async def test_it_tells_who_waits_and_for_how_long(self) -> None:
        clock = FakeClock()
        assert (clock.waiting, clock.next_due()) == (0, None)
        timer = clock.call_later(3, lambda: None)
        clock.call_later(5, lambda: None)
        assert (clock.waiting, clock.next_due()) == (2, 3)
        await clock.advance(1)
        assert clock.next_due() == 2
        timer.cancel()
        assert (clock.waiting, clock.next_due()) == (1, 4)
        await clock.advance(4)
        assert (clock.waiting, clock.next_due()) == (0, None)

    async def test_time_does_not_go_back(self) -> None:
        with pytest.raises(ValueError, match="back"):
            await FakeClock().advance(-1)

    @given(
        delays=st.lists(st.integers(1, 30), max_size=12),
        steps=st.lists(st.integers(0, 10), max_size=12),
        cancelled=st.sets(st.integers(0, 11)),
    )
    def test_each_timer_comes_exactly_once_at_its_time_however_time_is_moved(
        self, delays: list[int], steps: list[int], cancelled: set[int]
    ) -> None:
        async def play() -> list[tuple[float, int]]:
            clock = FakeClock()
            seen: list[tuple[float, int]] = []
            for number, delay in enumerate(delays):

                def note(number: int = number) -> None:
                    seen.append((clock.monotonic(), number))

                timer = clock.call_later(delay, note)
                if number in cancelled:
                    timer.cancel()
            for step in steps:
                await clock.advance(step)
            return seen

        expected = sorted((delay, number) for number, delay in enumerate(delays) if number not in cancelled)
        assert asyncio.run(play()) == [(due, number) for due, number in expected if due <= sum(steps)]
