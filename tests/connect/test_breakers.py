"""The breakers of a server's tools at work: what counts, what does not, and what refused callers are told."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from luthier.clock import settle
from luthier.connect.breakers import ending_of
from luthier.errors import (
    CallTimeoutError,
    CircuitOpenError,
    ConnectError,
    ConnectionLostError,
    HttpAnswer,
    HttpError,
    LoginNeededError,
    MessageTooLargeError,
    NotFoundError,
    ProtocolError,
    kind_of,
)
from luthier.spec.project import Breaker
from luthier.wire import MemoryServer
from luthier.wire.behaviour import Delay, Fail, Hang, Result
from tests.connect.kit import House


def house(breaker: Breaker | None = None, **tools: Any) -> House:
    settings = breaker or Breaker(failures=3, cooldown=30.0, successes=2)
    server = MemoryServer("lute", {"play": "a note", "broken": Fail("no string"), **tools})
    return House(server, lute={"breaker": settings, "tool_timeout": 5.0})


async def fail(house: House, times: int = 3, tool: str = "broken") -> None:
    for _ in range(times):
        with pytest.raises(ProtocolError):
            await house.settled(house.call("lute", tool))


async def test_a_tool_that_failed_too_often_is_left_alone_and_the_caller_is_told_until_when() -> None:
    lute = house()
    await fail(lute)
    await lute.clock.advance(12.0)
    with pytest.raises(CircuitOpenError) as caught:
        await lute.settled(lute.call("lute", "broken"))
    error = caught.value
    assert (error.server, error.tool, error.sent, error.retry_after) == ("lute", "broken", False, 18.0)
    assert error.hint == "It may be tried again in 18.0 s."
    assert error.facts()["retry_after"] == 18.0
    assert kind_of(error) == "connect"
    assert len(lute.servers["lute"].calls) == 3


async def test_the_other_tools_of_that_server_are_called_as_ever() -> None:
    lute = house()
    await fail(lute)
    assert (await lute.settled(lute.call("lute", "play"))).content == "a note"


async def test_one_call_at_a_time_tries_the_tool_out_and_two_that_succeed_close_the_breaker() -> None:
    lute = house(broken=Fail("no string"))
    await fail(lute)
    lute.servers["lute"].tools["broken"] = Delay(2.0, "mended")
    await lute.clock.advance(30.0)
    probe = lute.start(lute.call("lute", "broken"))
    await settle(50)
    with pytest.raises(CircuitOpenError) as caught:
        await lute.settled(lute.call("lute", "broken"))
    assert caught.value.hint == "One call is trying it out now; others may follow when that has ended."
    await lute.clock.advance(2.0)
    assert (await probe).content == "mended"
    again = lute.start(lute.call("lute", "broken"))
    await lute.clock.advance(2.0)
    assert (await again).content == "mended"
    many = [lute.start(lute.call("lute", "broken")) for _ in range(5)]
    await lute.clock.advance(2.0)
    assert [(await one).content for one in many] == ["mended"] * 5


async def test_a_probe_that_fails_opens_the_breaker_for_as_long_again() -> None:
    lute = house()
    await fail(lute)
    await lute.clock.advance(30.0)
    await fail(lute, 1)
    await lute.clock.advance(29.0)
    with pytest.raises(CircuitOpenError):
        await lute.settled(lute.call("lute", "broken"))
    await lute.clock.advance(1.0)
    await fail(lute, 1)


async def test_a_probe_whose_caller_goes_away_leaves_the_next_caller_to_probe() -> None:
    lute = house(broken=Fail("no string"))
    await fail(lute)
    lute.servers["lute"].tools["broken"] = Hang()
    await lute.clock.advance(30.0)
    probe = lute.start(lute.call("lute", "broken"))
    await settle(50)
    probe.cancel()
    await settle()
    lute.servers["lute"].tools["broken"] = "mended"
    assert (await lute.settled(lute.call("lute", "broken"))).content == "mended"


async def test_a_success_between_failures_begins_the_count_anew() -> None:
    lute = house()
    for _ in range(4):
        await fail(lute, 2)
        lute.servers["lute"].tools["broken"] = "fine"
        await lute.settled(lute.call("lute", "broken"))
        lute.servers["lute"].tools["broken"] = Fail("no string")
    await fail(lute, 3)
    with pytest.raises(CircuitOpenError):
        await lute.settled(lute.call("lute", "broken"))


async def test_an_error_of_the_tools_own_is_no_failure() -> None:
    lute = house(sad=ValueError("no mood"))
    for _ in range(10):
        assert (await lute.settled(lute.call("lute", "sad"))).is_error


async def test_an_error_of_the_tools_own_counts_where_the_entry_says_so() -> None:
    lute = house(Breaker(failures=3, count_tool_errors=True), sad=ValueError("no mood"))
    for _ in range(3):
        assert (await lute.settled(lute.call("lute", "sad"))).is_error
    with pytest.raises(CircuitOpenError):
        await lute.settled(lute.call("lute", "sad"))


async def test_a_breaker_that_is_switched_off_never_opens() -> None:
    lute = house(Breaker(enabled=False, failures=1, count_tool_errors=True), sad=ValueError("no mood"))
    await fail(lute, 10)
    for _ in range(3):
        assert (await lute.settled(lute.call("lute", "sad"))).is_error


async def test_a_refused_call_takes_no_place_in_the_servers_queue_and_needs_no_connection() -> None:
    lute = house()
    await fail(lute)
    lute.servers["lute"].drop()
    tool = (await lute.settled(lute.manager.manifest("lute"))).find("broken")
    assert tool is not None
    lute.servers["lute"].drop()
    with pytest.raises(CircuitOpenError):
        await lute.settled(lute.call("lute", "broken"))


async def test_a_fresh_start_of_a_server_holds_nothing_against_its_tools() -> None:
    lute = house()
    await fail(lute)
    await lute.settled(lute.manager.reconnect("lute"))
    await fail(lute, 3)


async def test_calls_that_time_out_count_and_calls_that_were_never_sent_do_not() -> None:
    lute = house(slow=Hang())
    for _ in range(3):
        waiting = lute.start(lute.call("lute", "slow"))
        await lute.clock.advance(5.1)
        assert isinstance(waiting.exception(), CallTimeoutError)
    with pytest.raises(CircuitOpenError):
        await lute.settled(lute.call("lute", "slow"))


async def test_a_task_of_the_server_that_succeeds_counts_as_a_success() -> None:
    lute = house(dig=Result({"content": [], "structuredContent": 1}))
    assert (await lute.settled(lute.call("lute", "dig"))).content == 1


@pytest.mark.parametrize(
    ("error", "ending"),
    [
        (asyncio.CancelledError(), "withdrawn"),
        (CallTimeoutError("late", sent=True), "failed"),
        (CallTimeoutError("late", sent=False), "withdrawn"),
        (ConnectError("refused"), "failed"),
        (ConnectError("no such file", retryable=False), "withdrawn"),
        (LoginNeededError("who are you", server="s"), "withdrawn"),
        (ConnectionLostError("gone"), "failed"),
        (ConnectionLostError("gone before", sent=False), "failed"),
        (MessageTooLargeError("too much"), "failed"),
        (ProtocolError("garbled"), "failed"),
        (ProtocolError("internal", code=-32603), "failed"),
        (ProtocolError("invalid params", code=-32602), "withdrawn"),
        (ProtocolError("no such method", code=-32601), "withdrawn"),
        (CircuitOpenError("left alone"), "withdrawn"),
        (HttpError("bad gateway", HttpAnswer(502)), "failed"),
        (HttpError("too many", HttpAnswer(429)), "failed"),
        (HttpError("forbidden", HttpAnswer(403)), "withdrawn"),
        (NotFoundError("tool", "x"), "withdrawn"),
        (ValueError("ours"), "withdrawn"),
    ],
    ids=repr,
)
def test_only_what_says_that_the_tool_is_ill_counts(error: BaseException, ending: str) -> None:
    assert ending_of(error) == ending
