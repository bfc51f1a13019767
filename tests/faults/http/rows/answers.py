"""Rows about answers to single requests: each fault fails its own call, readably, and nothing else."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from luthier.errors import (
    CallTimeoutError,
    ConnectionLostError,
    HttpError,
    MessageTooLargeError,
    ProtocolError,
    WireError,
)
from luthier.events import ServerStopped
from tests.faults.bench import House, until
from tests.faults.http.modes.answers import RETRY_AFTER
from tests.faults.http.table import row

PATIENT = {"breaker": {"failures": 1000}}
"""For rows with more failures than a server is given before it is left alone."""

STATUSES = (400, 402, 403, 405, 408, 409, 410, 413, 415, 418, 422, 429, 451, 500, 501, 502, 503, 504, 530)
TWENTY_MB = 20_000_000


async def fails(house: House, *, timeout: float | None = 5.0, **arguments: Any) -> WireError:
    """The error of a call of `act`, which must name server and tool, and come well before the deadline."""
    began = time.monotonic()
    with pytest.raises(WireError) as raised:
        await house.call("act", timeout=timeout, **arguments)
    assert time.monotonic() - began < 3, f"{arguments} took its time"
    assert not isinstance(raised.value, CallTimeoutError), f"{arguments} ran into its timeout"
    assert raised.value.server == "faulty"
    assert raised.value.tool == "act"
    assert "faulty" in str(raised.value)
    return raised.value


@row("0.1", "status", fields=PATIENT)
async def a_failed_request_keeps_its_status_and_the_beginning_of_what_was_said(house: House) -> None:
    for code in STATUSES:
        error = await fails(house, code=code)
        assert isinstance(error, HttpError), code
        assert error.status == code
        assert str(code) in str(error)
        assert error.answer.excerpt.startswith("it went wrong")
        assert len(error.answer.excerpt.encode()) <= 2048
        assert error.answer.request_id == f"req-{code}"
        assert error.facts()["status"] == code


@row("0.1", "status")
async def retry_after_is_read_as_seconds_and_as_a_date(house: House) -> None:
    assert set(RETRY_AFTER) == {429, 503}
    for code, seconds in ((429, 7.0), (503, 60.0)):
        error = await fails(house, code=code)
        assert isinstance(error, HttpError)
        assert error.retry_after is not None
        assert error.retry_after == seconds or (code == 503 and error.retry_after > seconds)
    error = await fails(house, code=500)
    assert isinstance(error, HttpError)
    assert error.retry_after is None


@row("0.1", "status")
async def a_refused_credential_is_named_as_such_with_a_way_out(house: House) -> None:
    for code in (401, 403):
        error = await fails(house, code=code)
        assert isinstance(error, HttpError)
        assert error.status == code
        assert "insufficient_scope" in error.answer.www_authenticate
        assert "luthier servers login faulty" in error.hint


@row("26", "status", fields=PATIENT)
async def failing_calls_disturb_none_that_run_beside_them(house: House) -> None:
    codes = [(500, 405, 410)[n % 3] for n in range(20)]
    good = [house.call("echo", n=n) for n in range(20)]
    bad = [house.call("act", code=code) for code in codes]
    outcomes = await asyncio.gather(*good, *bad, return_exceptions=True)
    for n, outcome in enumerate(outcomes[:20]):
        assert not isinstance(outcome, BaseException)
        assert outcome.content == {"n": n}
    assert [getattr(outcome, "status", None) for outcome in outcomes[20:]] == codes
    assert house.watcher.of(ServerStopped) == []


@row("26", "status", fields=PATIENT)
async def a_call_that_is_answered_as_if_the_server_were_gone_takes_nothing_with_it(house: House) -> None:
    for code in (405, 410):
        error = await fails(house, code=code)
        assert isinstance(error, HttpError)
        assert (await house.call("echo", code=code)).content == {"code": code}
    assert house.journal.asked("DELETE") == []
    assert house.watcher.of(ServerStopped) == []


@row("26", "broken_off", fields=PATIENT)
async def a_connection_that_breaks_under_a_call_fails_that_call_at_once(house: House) -> None:
    for how in ("reset", "cut", "reset headers", "cut headers", "reset body", "cut body"):
        error = await fails(house, how=how)
        assert isinstance(error, ConnectionLostError), how
        assert error.sent, how
    for how in ("reset chunk", "cut chunk", "reset event", "cut event"):
        error = await fails(house, how=how)
        assert isinstance(error, ConnectionLostError), how
        assert error.sent, how
    assert len(house.journal.calls("act")) == 10, "a call whose fate is unknown was sent again"


@row("26", "broken_off", fields=PATIENT)
async def a_broken_call_disturbs_none_that_run_beside_it(house: House) -> None:
    good = [house.call("echo", n=n) for n in range(20)]
    bad = [house.call("act", how=how) for how in ("reset", "cut body", "reset event", "cut chunk")]
    outcomes = await asyncio.gather(*good, *bad, return_exceptions=True)
    for n, outcome in enumerate(outcomes[:20]):
        assert not isinstance(outcome, BaseException)
        assert outcome.content == {"n": n}
    assert all(isinstance(outcome, ConnectionLostError) for outcome in outcomes[20:])


@row("0.3", "hangs")
async def a_hanging_call_times_out_alone(house: House) -> None:
    for stream in (False, True):
        hanging = asyncio.ensure_future(house.call("act", timeout=0.4, stream=stream))
        await house.journal.called("act", times=1 + stream)
        assert (await house.call("echo", a=1)).content == {"a": 1}
        with pytest.raises(CallTimeoutError) as raised:
            await hanging
        assert raised.value.sent
        await until(lambda: sum("left" in line for line in house.journal.lines()) == 1 + stream)  # noqa: B023


@row("27", "wrong_ids")
async def an_answer_with_a_wrong_id_settles_the_call_it_came_for(house: House) -> None:
    for kind in ("other", "null", "text", "no_id"):
        await fails(house, kind=kind)


@row("27", "wrong_ids", ("sse",))
async def an_event_with_a_wrong_id_settles_the_call_whose_stream_ends_with_it(house: House) -> None:
    for kind in ("other", "null", "text", "no_id"):
        await fails(house, kind=kind)


@row("34", "accepted")
async def a_request_that_is_only_taken_note_of_fails_at_once(house: House) -> None:
    for code in (202, 204):
        await fails(house, code=code)


@row("34", "accepted", ("later",), eras=("legacy",))
async def an_answer_may_come_by_the_stream_that_stands_open(house: House) -> None:
    await house.names()
    await until(lambda: house.journal.asked("GET") != [])
    assert (await house.call("act", code=202)).content == "later"


def good_types(kind: str) -> None:
    @row("35", "content_types", (kind,))
    async def json_is_read_whatever_its_content_type_says(house: House) -> None:
        assert "echo" in await house.names()
        assert (await house.call("echo", a="☃")).content == {"a": "☃"}


for each in ("none", "text/plain", "text/html", "application/octet-stream", "application/problem+json; a=b"):
    good_types(each)


@row("35", "login_page")
async def a_web_page_in_place_of_an_answer_is_named_for_what_it_is(house: House) -> None:
    error = await fails(house)
    assert isinstance(error, ProtocolError | HttpError)
    assert "login page" in str(error)
    assert "Sign in" in str(error)
    assert "url" in error.hint


@row("h1", "nonsense")
async def a_body_that_is_no_message_fails_its_call_readably(house: House) -> None:
    for kind in ("empty", "cut", "words", "number", "list", "null", "bytes"):
        await fails(house, kind=kind)


@row("h2", "too_much", fields={"max_message_bytes": 1_000_000}, within=20)
async def what_is_too_large_is_refused_while_it_is_read(house: House) -> None:
    for kind in ("body", "bomb", "endless body", "endless event"):
        error = await fails(house, kind=kind)
        assert isinstance(error, MessageTooLargeError), kind
        assert "max_message_bytes" in error.hint, kind


@row("h2", "too_much")
async def huge_headers_fail_their_call_readably(house: House) -> None:
    await fails(house, kind="headers")


@row("h3", "drip", fields={"tool_timeout_ms": 500})
async def a_slow_drip_ends_with_the_time_of_the_call(house: House) -> None:
    for n, kind in enumerate(("comments", "spaces")):
        began = time.monotonic()
        with pytest.raises(CallTimeoutError):
            await house.call("act", kind=kind)
        assert time.monotonic() - began < 1.5
        await until(lambda: sum("left" in line for line in house.journal.lines()) == n + 1)  # noqa: B023


@row("h4", "packed")
async def packed_answers_are_unpacked(house: House) -> None:
    assert (await house.call("echo", text="x" * 100_000)).content == {"text": "x" * 100_000}


@row("57", "odd_results")
async def an_answer_without_a_result_settles_its_call(house: House) -> None:
    for kind in ("null", "list", "text", "number", "missing"):
        (outcome,) = await asyncio.gather(house.call("act", kind=kind), return_exceptions=True)
        if isinstance(outcome, BaseException):
            assert isinstance(outcome, ProtocolError), kind
        else:
            assert outcome.notes, kind


@row("0.4", "large_events", fields={"max_message_bytes": 40_000_000}, within=20)
async def events_of_many_megabytes_are_read(house: House) -> None:
    for size in (1_048_577, TWENTY_MB):
        reply = await house.call("act", size=size)
        assert len(reply.blocks[0]["text"]) == size
