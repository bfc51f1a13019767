"""So many at once, first come first served, and no permit is ever lost."""

from __future__ import annotations

import asyncio
from collections import deque

from hypothesis import given
from hypothesis import strategies as st

from luthier.clock import settle
from luthier.connect.limiter import Limiter


async def test_permits_are_handed_on_in_the_order_of_asking() -> None:
    limiter = Limiter(2)
    entered: list[int] = []
    doors = [asyncio.Event() for _ in range(6)]

    async def enter(number: int) -> None:
        await limiter.acquire()
        entered.append(number)
        await doors[number].wait()
        limiter.release()

    async with asyncio.TaskGroup() as group:
        for number in range(6):
            group.create_task(enter(number))
        await settle()
        assert entered == [0, 1]
        doors[1].set()
        await settle()
        assert entered == [0, 1, 2]
        for door in doors:
            door.set()
    assert entered == [0, 1, 2, 3, 4, 5]


async def test_no_limit_lets_everybody_in_and_releasing_costs_nothing() -> None:
    limiter = Limiter(None)
    for _ in range(1000):
        await limiter.acquire()
    limiter.release()
    await limiter.acquire()


async def test_who_is_cancelled_in_the_queue_takes_no_permit_with_it() -> None:
    limiter = Limiter(1)
    await limiter.acquire()
    waiting = [asyncio.create_task(limiter.acquire()) for _ in range(3)]
    await settle()
    waiting[0].cancel()
    limiter.release()
    await settle()
    assert [task.done() for task in waiting] == [True, True, False]
    limiter.release()
    await waiting[2]


async def test_a_permit_that_comes_in_the_moment_of_cancellation_goes_to_the_next() -> None:
    limiter = Limiter(1)
    await limiter.acquire()
    first, second = (asyncio.create_task(limiter.acquire()) for _ in range(2))
    await settle()
    limiter.release()  # first has its turn, but has not run yet
    first.cancel()
    await settle()
    assert first.cancelled()
    assert second.done()
    limiter.release()
    await limiter.acquire()


@given(st.integers(1, 4), st.lists(st.sampled_from(["ask", "cancel", "release"]), max_size=60))
def test_no_history_exceeds_the_limit_or_loses_a_permit(limit: int, moves: list[str]) -> None:
    async def play() -> None:
        limiter = Limiter(limit)
        tasks: deque[asyncio.Task[None]] = deque()
        held = 0
        for move in moves:
            match move:
                case "ask":
                    tasks.append(asyncio.create_task(limiter.acquire()))
                case "cancel" if tasks:
                    tasks[-1].cancel()
                case "release" if held:
                    held -= 1
                    limiter.release()
            await settle(3)
            for task in [task for task in tasks if task.done()]:
                tasks.remove(task)
                held += not task.cancelled()
            assert held <= limit
            assert held == limit or not tasks  # nobody waits while there is room
        for task in tasks:
            task.cancel()
        await settle(3)

    asyncio.run(play())
