"""A call that asks back before it answers: it is made again with what it asks for, and its state unread.

Where nobody can answer, what it asks is handed out instead. A state belongs to the server: it goes back
as it came, and only in the very next round of the same call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from luthier.clock import Deadline, sleep

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from luthier.clock import Clock
    from luthier.tools import Reply

MOST_ROUNDS = 10
"""Times that one call is made again; what it asks then is handed out."""

FIRST_PAUSE, LONGEST_PAUSE = 0.05, 0.25
"""Seconds before a round in which nothing was asked: the server only wants to be called again later."""


async def asked_back(
    reply: Reply,
    *,
    again: Callable[[dict[str, Any]], Awaitable[Reply]],
    answer: Callable[[dict[str, Any]], Awaitable[dict[str, Any] | None]],
    clock: Clock,
    deadline: float | None,
) -> Reply:
    """What the call comes to. Raises WireErrors, and TimeoutError when time is up between two rounds.

    `again` makes the call with further params; `answer` gives the answers to requests, None where it cannot.
    """
    pause = FIRST_PAUSE
    for _ in range(MOST_ROUNDS):
        asked = reply.input_required
        if asked is None or "taskId" in asked:  # what a task asks is answered, or not, by who follows it
            break
        more = {"requestState": asked["requestState"]} if "requestState" in asked else {}
        requests = asked.get("inputRequests")
        left = None if deadline is None else deadline - clock.monotonic()
        async with Deadline(clock, left):
            if requests:
                answers = await answer(requests) if isinstance(requests, dict) else None
                if answers is None:
                    break
                more["inputResponses"] = answers
            elif not more:
                break  # it says nothing that another round could be made of
            else:
                await sleep(clock, pause)
                pause = min(pause * 2, LONGEST_PAUSE)
        reply = await again(more)
    return reply
