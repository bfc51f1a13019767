"""A blocking function in a thread of its own, which nobody has to wait for when it is given up."""

from __future__ import annotations

import asyncio
import contextvars
from contextlib import suppress
from threading import Thread
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


async def in_thread(function: Callable[[], T], *, name: str) -> T:
    """What the function returns or raises. Cancelled, it leaves the function running in its daemon thread.

    `asyncio.to_thread` would make the end of the event loop wait for a function that never returns.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Callable[[], T]] = loop.create_future()
    context = contextvars.copy_context()

    def settle(outcome: Callable[[], T]) -> None:
        if not done.done():
            done.set_result(outcome)

    def work() -> None:
        outcome = _outcome(function, context)
        with suppress(RuntimeError):  # the loop has ended: nobody waits
            loop.call_soon_threadsafe(settle, outcome)

    Thread(target=work, name=name, daemon=True).start()
    return (await done)()


def _outcome(function: Callable[[], T], context: contextvars.Context) -> Callable[[], T]:
    try:
        value = context.run(function)
    except BaseException as error:  # noqa: BLE001  (raised again where it is awaited)
        caught = error

        def fail() -> T:
            raise caught

        return fail
    return lambda: value
