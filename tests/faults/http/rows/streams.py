"""Rows about event streams, and about the transport of 2024-11-05."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import pytest

from luthier.errors import CallTimeoutError, ConnectError, ConnectionLostError, WireError
from luthier.events import CallProgressed
from tests.faults.http.modes.streams import BROKEN, FRAMES
from tests.faults.http.rows.answers import fails
from tests.faults.http.table import LEGACY_ONLY, own, row

if TYPE_CHECKING:
    from tests.faults.bench import House
    from tests.faults.http.bench import HttpBench


@row("41", "frames")
async def a_stream_is_read_in_every_legal_manner(house: House) -> None:
    for kind in FRAMES:
        reply = await house.call("act", kind=kind, timeout=3)
        assert reply.blocks == [{"type": "text", "text": "arrived"}], kind


@row("41", "broken_events")
async def a_broken_event_costs_its_own_call_at_most(house: House) -> None:
    for kind in BROKEN:
        (outcome,) = await asyncio.gather(house.call("act", kind=kind, timeout=3), return_exceptions=True)
        if isinstance(outcome, BaseException):
            assert isinstance(outcome, WireError), kind
            assert not isinstance(outcome, CallTimeoutError), kind
        else:
            assert outcome.content == "arrived", kind


@row("41", "unfinished")
async def a_stream_that_ends_before_its_answer_fails_its_call_at_once(house: House) -> None:
    for kind in ("cut", "nothing", "comment", "other"):
        error = await fails(house, kind=kind)
        assert isinstance(error, ConnectionLostError), kind
        assert error.sent


@row("41", "resumes", eras=LEGACY_ONLY)
async def a_stream_that_named_an_event_is_resumed_there_and_the_call_is_not_sent_again(house: House) -> None:
    for how in ("end", "cut", "reset"):
        reply = await house.call("act", how=how, timeout=5)
        assert reply.blocks[0]["text"] == "resumed", how
    assert len(house.journal.calls("act")) == 3
    resumed = [
        line["headers"]["last-event-id"]
        for line in house.journal.asked("GET")
        if "last-event-id" in line["headers"]
    ]
    assert len(resumed) == 3


@row("41", "interleaved")
async def what_stands_before_an_answer_in_its_stream_is_taken_for_what_it_is(house: House) -> None:
    assert (await house.call("act")).content == "arrived"


@row("54", "progress", fields={"tool_timeout_ms": 600, "tool_timeout_max_ms": 20_000})
async def progress_in_a_stream_extends_the_time_of_a_call_and_is_told(house: House) -> None:
    assert (await house.call("act", times=3, pause=0.3)).content == "with a token"
    told = house.watcher.of(CallProgressed)
    assert [(event.progress, event.total) for event in told] == [(1, 3.0), (2, 3.0), (3, 3.0)]


@row("54", "progress", fields={"tool_timeout_ms": 300, "tool_timeout_max_ms": 600})
async def no_progress_extends_a_call_beyond_its_hard_maximum(house: House) -> None:
    began = time.monotonic()
    with pytest.raises(CallTimeoutError):
        await house.call("act", times=1000, pause=0.05)
    assert 0.5 < time.monotonic() - began < 2


def endpoints(kind: str) -> None:
    hidden = kind == "hidden"  # found at the second address, so all is said twice

    @row("30", "old_sse", (kind,), eras=LEGACY_ONLY, transport="sse", restarts=hidden)
    async def where_to_post_is_resolved_against_the_address_of_the_stream(house: House) -> None:
        assert "echo" in await house.names()
        replies = await asyncio.gather(*(house.call("echo", n=n) for n in range(8)))
        assert [reply.content for reply in replies] == [{"n": n} for n in range(8)]


for each in ("path", "relative", "prefix", "hidden", "whole"):
    endpoints(each)


@own("30", "old_sse", ("away",), eras=LEGACY_ONLY)
async def nothing_is_ever_posted_to_another_origin(bench: HttpBench) -> None:
    bench.transport = "sse"
    async with bench.house() as house:
        with pytest.raises(ConnectError) as raised:
            await house.call("echo")
        assert "localhost" in str(raised.value)
    assert bench.journal.asked("POST") == []


@own("29", "old_sse", ("wrong",), eras=LEGACY_ONLY)
async def a_post_that_finds_nobody_settles_its_request(bench: HttpBench) -> None:
    bench.transport = "sse"
    async with bench.house() as house:
        began = time.monotonic()
        with pytest.raises(WireError) as raised:
            await house.call("echo")
        assert "404" in str(raised.value)
        assert time.monotonic() - began < 3


@row("29", "old_sse", ("path",), eras=LEGACY_ONLY, transport="sse", restarts=True)
async def a_stream_that_breaks_fails_the_calls_that_wait_on_it(house: House) -> None:
    with pytest.raises(ConnectionLostError) as raised:
        await house.call("drop", timeout=5)
    assert raised.value.sent
    assert len(house.journal.calls("drop")) == 1
