"""The table of requests: each settled exactly once, all deadlines kept with one timer."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from luthier.clock import FakeClock
from luthier.errors import ConnectionLostError
from luthier.wire.codec import Message
from luthier.wire.pending import Pending, Request, as_id


def table(clock: FakeClock) -> tuple[Pending, list[int]]:
    expired: list[int] = []
    return Pending(clock, lambda request: expired.append(request.id)), expired


@pytest.mark.parametrize(
    ("written", "meant"),
    [(7, 7), ("7", 7), (7.0, 7), (-7, -7), (True, None), (7.5, None), ("seven", None), ("٧", None),
     ("", None), ("9" * 20, None), (None, None), ([7], None), ({}, None), (float("inf"), None)],
    ids=repr,
)  # fmt: skip
def test_an_id_is_known_however_it_comes_back(written: Any, meant: int | None) -> None:
    assert as_id(written) == meant


async def test_requests_get_ascending_ids_and_leave_the_table_once() -> None:
    pending, _ = table(FakeClock())
    first = pending.add("a", "", "call", None, None)
    second = pending.add("b", "", "call", None, None)
    assert (first.id, second.id, len(pending)) == (1, 2, 2)
    assert pending.take("1") is first
    assert pending.take(1) is None
    assert pending.find(2.0) is second
    assert pending.sole() is second


async def test_with_two_in_flight_or_none_there_is_no_sole_request() -> None:
    pending, _ = table(FakeClock())
    assert pending.sole() is None
    pending.add("a", "", "call", None, None)
    pending.add("b", "", "call", None, None)
    assert pending.sole() is None


async def test_each_request_expires_at_its_own_deadline() -> None:
    clock = FakeClock()
    pending, expired = table(clock)
    for idle in (3.0, 1.0, 2.0, None):
        pending.add("a", "", "call", idle, None)
    seen = []
    for _ in range(4):
        await clock.advance(1.0)
        seen.append(list(expired))
    assert seen == [[2], [2, 3], [2, 3, 1], [2, 3, 1]]
    assert len(pending) == 1


async def test_calls_that_are_answered_in_time_share_one_timer() -> None:
    clock = FakeClock()
    pending, expired = table(clock)
    for _ in range(100):
        pending.take(pending.add("a", "", "call", 30.0, None).id)
    assert clock.waiting == 1
    await clock.advance(31.0)
    assert (clock.waiting, expired) == (0, [])


async def test_progress_extends_a_deadline_up_to_its_last_moment() -> None:
    clock = FakeClock()
    pending, expired = table(clock)
    request = pending.add("a", "", "call", 2.0, 5.0)
    for _ in range(4):
        await clock.advance(1.2)
        pending.extend(request)
    assert expired == []
    await clock.advance(0.3)
    assert expired == [1]
    assert request.waited == pytest.approx(5.0)


async def test_progress_extends_nothing_where_no_last_moment_is_set() -> None:
    clock = FakeClock()
    pending, expired = table(clock)
    request = pending.add("a", "", "call", 2.0, None)
    await clock.advance(1.5)
    pending.extend(request)
    await clock.advance(0.6)
    assert expired == [1]


async def test_the_last_moment_holds_where_it_is_nearer_or_alone() -> None:
    clock = FakeClock()
    pending, expired = table(clock)
    pending.add("a", "", "call", 10.0, 2.0)
    pending.add("a", "", "call", None, 3.0)
    await clock.advance(2.0)
    assert expired == [1]
    await clock.advance(1.0)
    assert expired == [1, 2]


def _lost(request: Request) -> ConnectionLostError:
    return ConnectionLostError(request.what)


async def test_clearing_settles_all_and_leaves_no_timer() -> None:
    clock = FakeClock()
    pending, _ = table(clock)
    one, two = pending.add("a", "", "call", 1.0, None), pending.add("b", "t", "call", None, None)
    pending.clear(_lost)
    assert [str(one.answer.result()), str(two.answer.result())] == ["a", "b 't'"]
    assert (clock.waiting, len(pending)) == (0, 0)


steps = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.sampled_from([None, 1.0, 3.0]), st.sampled_from([None, 2.0, 6.0])),
        st.tuples(
            st.just("answer"), st.one_of(st.integers(0, 12), st.integers(0, 12).map(str), st.floats(0, 12))
        ),
        st.tuples(st.just("extend"), st.integers(0, 12)),
        st.tuples(st.just("wait"), st.floats(0.0, 4.0)),
    ),
    max_size=30,
)


@settings(deadline=None)
@given(steps)
async def test_every_request_settles_exactly_once_whatever_arrives(script: list[tuple[Any, ...]]) -> None:
    clock = FakeClock()
    settled: list[int] = []
    pending = Pending(clock, lambda request: settled.append(request.id))
    added: list[Request] = []
    for step in script:
        match step:
            case "add", idle, longest:
                added.append(pending.add("a", "", "call", idle, longest))
            case "answer", id:
                if (request := pending.take(id)) is not None:
                    settled.append(request.id)
                    request.settle((Message(), ()))
            case "extend", id:
                if (request := pending.find(id)) is not None:
                    pending.extend(request)
            case "wait", seconds:
                await clock.advance(seconds)
                assert all(
                    one.deadline is None or one.deadline > clock.monotonic()
                    for one in _waiting(added, settled)
                )
    left = {request.id for request in added} - set(settled)
    pending.clear(_lost)
    settled += [request.id for request in added if request.id in left and request.answer.done()]
    assert sorted(settled) == [request.id for request in added]
    assert clock.waiting == 0


def _waiting(added: list[Request], settled: list[int]) -> list[Request]:
    return [request for request in added if request.id not in settled]
