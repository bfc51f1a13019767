"""A blocking function in a thread that nobody has to wait for."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from contextvars import ContextVar
from functools import partial

import pytest

from luthier.clock import settle
from luthier.tools.threads import in_thread

place: ContextVar[str] = ContextVar("place", default="nowhere")


async def test_the_function_runs_in_a_daemon_thread_of_that_name_and_the_loop_goes_on() -> None:
    seen: list[threading.Thread] = []
    may_end = threading.Event()

    def function() -> str:
        seen.append(threading.current_thread())
        assert may_end.wait(10)
        return "done"

    task = asyncio.ensure_future(in_thread(function, name="custom://add"))
    await settle()
    assert not task.done()
    may_end.set()
    assert await task == "done"
    assert (seen[0].daemon, seen[0].name) == (True, "custom://add")
    assert seen[0] is not threading.current_thread()


@pytest.mark.parametrize(
    "error", [ValueError("mine"), SystemExit(3), LookupError()], ids=lambda error: type(error).__name__
)
async def test_what_the_function_raises_is_raised_where_it_is_awaited(error: BaseException) -> None:
    def function() -> None:
        raise error

    with pytest.raises(type(error)) as caught:
        await in_thread(function, name="t")
    assert caught.value is error


async def test_the_function_sees_the_context_variables_of_its_caller() -> None:
    place.set("here")
    assert await in_thread(place.get, name="t") == "here"

    def change() -> None:
        place.set("elsewhere")

    await in_thread(change, name="t")
    assert place.get() == "here"


async def test_cancelled_it_returns_at_once_and_what_the_function_does_later_harms_nobody() -> None:
    may_end = threading.Event()
    ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    loop = asyncio.get_running_loop()

    def function() -> None:
        assert may_end.wait(10)
        loop.call_soon_threadsafe(ended.set_result, None)

    task = asyncio.ensure_future(in_thread(function, name="t"))
    await settle()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    may_end.set()
    await asyncio.wait_for(ended, 10)
    await settle()


def test_a_function_that_ends_after_its_loop_harms_nobody() -> None:
    may_end, has_ended = threading.Event(), threading.Event()
    threads: list[threading.Thread] = []

    def function() -> None:
        threads.append(threading.current_thread())
        assert may_end.wait(10)
        has_ended.set()

    async def give_up() -> None:
        task = asyncio.ensure_future(in_thread(function, name="t"))
        await settle()
        task.cancel()

    asyncio.run(give_up())
    may_end.set()
    assert has_ended.wait(10)
    threads[0].join(10)
    assert not threads[0].is_alive()


def test_the_process_ends_though_a_function_never_does() -> None:
    program = (
        "import asyncio, threading\n"
        "from luthier.tools.threads import in_thread\n"
        "async def main():\n"
        "    asyncio.ensure_future(in_thread(threading.Event().wait, name='t'))\n"
        "    await asyncio.sleep(0)\n"
        "    print('left')\n"
        "asyncio.run(main())\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=False
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "left\n", "")


async def test_many_run_side_by_side() -> None:
    barrier = threading.Barrier(20, timeout=10)
    tasks = [in_thread(partial(barrier.wait), name=f"t{number}") for number in range(20)]
    assert sorted(await asyncio.gather(*tasks)) == list(range(20))
