"""The trace context: what is taken over, what is not, and what goes on."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luthier.trace import Trace

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
PARENT = f"00-{TRACE}-{SPAN}-01"


def test_what_a_caller_gives_goes_on_as_it_is() -> None:
    trace = Trace.read(PARENT, "congo=t61rcWkgMzE,rojo=00f067aa0ba902b7")
    assert trace is not None
    assert trace.id == TRACE
    assert trace.meta == {"traceparent": PARENT, "tracestate": "congo=t61rcWkgMzE,rojo=00f067aa0ba902b7"}


def test_of_a_later_version_what_is_known_is_taken() -> None:
    trace = Trace.read(f"cc-{TRACE}-{SPAN}-01-what-the-future-brings")
    assert trace == Trace(PARENT)


@pytest.mark.parametrize(
    "parent",
    [
        None,
        7,
        "",
        PARENT.upper(),
        f" {PARENT}",
        f"{PARENT}\n",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE}-{SPAN}-01-more",
        f"00-{TRACE}-{SPAN}",
        f"00-{TRACE[1:]}-{SPAN}-01",
    ],
)
def test_what_is_no_traceparent_counts_as_none(parent: object) -> None:
    assert Trace.read(parent) is None


@pytest.mark.parametrize("state", [None, 7, "", "a=b\r\nX-Evil: 1", "a=\x00", "a=é", "a=" + "b" * 512])
def test_a_tracestate_that_is_none_is_left_out(state: object) -> None:
    trace = Trace.read(PARENT, state)
    assert trace is not None
    assert trace.meta == {"traceparent": PARENT}


def test_a_trace_of_its_own_is_one_that_others_can_read_and_no_two_are_the_same() -> None:
    one, other = Trace.fresh(), Trace.fresh()
    assert Trace.read(one.parent) == one
    assert one.id != other.id


@given(st.text())
def test_whatever_is_said_is_taken_whole_or_not_at_all(said: str) -> None:
    trace = Trace.read(said)
    assert trace is None or Trace.read(trace.parent) == trace
