"""A blocking function in a thread that nobody has to wait for."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import threading
import weakref
from contextvars import ContextVar
from functools import partial

import pytest

from luthier.clock import settle
from luthier.tools.threads import IDLE, in_thread

place: ContextVar[str] = ContextVar("place", default="nowhere")


async def test_the_function_runs_in_a_daemon_thread_of_that_name_and_the_loop_goes_on() -> None:
    seen: list[tuple[bool, str]] = []
    may_end = threading.Event()

    def function() -> str:
        thread = threading.current_thread()
        assert thread is not threading.main_thread()
        seen.append((thread.daemon, thread.name))
        assert may_end.wait(10)
        return "done"

    task = asyncio.ensure_future(in_thread(function, name="custom://add"))
    await settle()
    assert not task.done()
    may_end.set()
    assert await task == "done"
    assert seen == [(True, "custom://add")]


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

    def function() -> None:
        assert may_end.wait(10)
        has_ended.set()

    async def give_up() -> None:
        task = asyncio.ensure_future(in_thread(function, name="t"))
        await settle()
        task.cancel()

    asyncio.run(give_up())
    may_end.set()
    assert has_ended.wait(10)
    assert asyncio.run(in_thread(lambda: "still here", name="t")) == "still here"


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


async def test_a_thread_that_has_nothing_to_do_has_the_next_job() -> None:
    first = await in_thread(threading.get_ident, name="a")
    assert await in_thread(threading.get_ident, name="b") == first


async def test_only_a_few_are_kept() -> None:
    barrier = threading.Barrier(IDLE + 4, timeout=10)
    seen: list[threading.Thread] = []

    def meet() -> None:
        seen.append(threading.current_thread())
        barrier.wait()

    await asyncio.gather(*(in_thread(meet, name="t") for _ in range(IDLE + 4)))
    for thread in set(seen):
        thread.join(0 if thread.name == "luthier-idle" else 10)
    assert sum(thread.is_alive() for thread in set(seen)) <= IDLE


async def test_what_a_function_gave_is_not_kept_by_its_thread() -> None:
    class Big:
        pass

    big = await in_thread(Big, name="t")
    gone = weakref.ref(big)
    await in_thread(lambda: None, name="t")  # the same thread, which has let go of it by now
    del big
    gc.collect()
    assert gone() is None


def test_a_fork_does_not_count_on_threads_that_did_not_come_along() -> None:
    program = (
        "import asyncio, os, warnings\n"
        "from luthier.tools.threads import in_thread\n"
        "warnings.simplefilter('ignore')\n"
        "def here(): return asyncio.run(asyncio.wait_for(in_thread(lambda: 'here', name='t'), 20))\n"
        "print(here(), flush=True)\n"
        "if (child := os.fork()):\n"
        "    raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
        "print(here(), flush=True)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=50, check=False
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "here\nhere\n", "")
