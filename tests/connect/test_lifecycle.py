"""The table of a connection's life: every cell, and the laws that hold for every history."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luthier.connect.lifecycle import (
    LONGEST_ASKED,
    Close,
    Command,
    Drop,
    Elapsed,
    Event,
    Fail,
    Lost,
    Open,
    Opened,
    OpenFailed,
    Phase,
    Policy,
    Reset,
    Serve,
    State,
    Wait,
    Wanted,
    step,
    wait_after,
)

POLICY = Policy(max_retries=2)
HEALS, NEVER = OpenFailed(retryable=True), OpenFailed(retryable=False)
LOGIN = OpenFailed(retryable=False, login=True)

PHASES: tuple[Phase, ...] = get_args(Phase)
EVENTS: tuple[Event, ...] = (Wanted(), Opened(), HEALS, NEVER, LOGIN, Elapsed(), Lost(), Reset(), Close())

# Cells that change something; every other cell leaves the state as it is and asks for nothing.
CELLS: dict[tuple[Phase, Event], tuple[State, tuple[Command, ...]]] = {
    ("idle", Wanted()): (State("connecting", 1), (Open(1),)),
    ("failed", Wanted()): (State("connecting", 1), (Open(1),)),
    ("needs-login", Wanted()): (State("connecting", 1), (Open(1),)),
    ("connecting", Opened()): (State("ready", 1), (Serve(),)),
    ("connecting", HEALS): (State("backoff", 1), (Wait(1.0),)),
    ("connecting", NEVER): (State("failed", 1), (Fail(),)),
    ("connecting", LOGIN): (State("needs-login", 1), (Fail(),)),
    ("backoff", Elapsed()): (State("connecting", 2), (Open(2),)),
    ("ready", Lost()): (State("idle"), (Drop(),)),
    ("idle", Reset()): (State("idle"), ()),
    ("failed", Reset()): (State("idle"), ()),
    ("needs-login", Reset()): (State("idle"), ()),
    ("connecting", Reset()): (State("idle"), (Drop(),)),
    ("backoff", Reset()): (State("idle"), (Drop(),)),
    ("ready", Reset()): (State("idle"), (Drop(),)),
    ("idle", Close()): (State("closed", 1), ()),
    ("failed", Close()): (State("closed", 1), ()),
    ("needs-login", Close()): (State("closed", 1), ()),
    ("connecting", Close()): (State("closed", 1), (Drop(),)),
    ("backoff", Close()): (State("closed", 1), (Drop(),)),
    ("ready", Close()): (State("closed", 1), (Drop(),)),
}


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("event", EVENTS, ids=str)
def test_each_cell_of_the_table_does_what_is_written_there(phase: Phase, event: Event) -> None:
    state = State(phase, 1)
    assert step(state, event, POLICY) == CELLS.get((phase, event), (state, ()))


def test_the_last_try_fails_for_good_though_it_might_heal() -> None:
    assert step(State("connecting", 3), HEALS, POLICY) == (State("failed", 3), (Fail(),))
    assert step(State("connecting", 1), HEALS, Policy(max_retries=0)) == (State("failed", 1), (Fail(),))


@pytest.mark.parametrize(
    ("attempt", "nominal"), [(1, 1.0), (2, 2.0), (3, 4.0), (4, 8.0), (5, 10.0), (6, 10.0), (10_000, 10.0)]
)
def test_waits_double_up_to_ten_seconds_and_the_draw_halves_them_at_most(
    attempt: int, nominal: float
) -> None:
    assert wait_after(attempt, 0.0) == nominal
    assert wait_after(attempt, 0.5) == nominal * 0.75
    assert nominal / 2 <= wait_after(attempt, 0.999_999) < nominal


def test_a_server_is_given_the_time_that_it_asks_for_and_a_little_more_by_the_draw() -> None:
    assert wait_after(1, 0.0, asked=7.0) == 7.0
    assert wait_after(1, 0.5, asked=20.0) == 21.0
    assert wait_after(4, 0.0, asked=2.0) == 8.0
    asking = OpenFailed(retryable=True, retry_after=30.0)
    assert step(State("connecting", 1), asking, POLICY) == (State("backoff", 1), (Wait(30.0),))


def test_a_server_that_asks_for_more_than_anybody_waits_is_not_tried_again() -> None:
    asking = OpenFailed(retryable=True, retry_after=LONGEST_ASKED + 1)
    assert step(State("connecting", 1), asking, POLICY) == (State("failed", 1), (Fail(),))


EVENT = st.one_of(
    st.sampled_from(EVENTS),
    st.builds(
        OpenFailed,
        st.booleans(),
        st.floats(0, 1, exclude_max=True, allow_nan=False),
        st.none() | st.floats(0, 1e6),
        st.booleans(),
    ),
)


@given(st.lists(EVENT, max_size=200), st.integers(0, 10))
def test_no_history_makes_more_tries_in_a_row_than_allowed(events: list[Event], max_retries: int) -> None:
    state, policy = State(), Policy(max_retries)
    tries = 0
    for event in events:
        before = state
        state, commands = step(state, event, policy)
        for command in commands:
            match command:
                case Open(attempt):
                    tries = 1 if isinstance(event, Wanted) else tries + 1
                    assert attempt == tries == state.attempt
                    assert tries <= max_retries + 1
                case Wait(seconds):
                    assert isinstance(event, OpenFailed)
                    assert event.retryable
                    assert not event.login
                    asked = event.retry_after or 0.0
                    assert max(0.5, asked) <= seconds <= max(10.0, asked * 1.1)
                    assert seconds <= LONGEST_ASKED * 1.1
                case Serve():
                    assert state.phase == "ready"
                case Fail():
                    assert state.phase in ("failed", "needs-login")
                case Drop():
                    assert before.phase in ("connecting", "backoff", "ready")
                    assert state.phase in ("idle", "closed")
        if before.phase == "closed":
            assert (state, commands) == (before, ())


@given(st.lists(EVENT, max_size=200), st.integers(0, 10))
def test_whoever_opens_is_in_time_told_to_serve_to_fail_or_to_drop(
    events: list[Event], max_retries: int
) -> None:
    state, policy = State(), Policy(max_retries)
    owed = 0
    for event in events:
        state, commands = step(state, event, policy)
        opened = sum(isinstance(command, Open) for command in commands)
        settled = sum(isinstance(command, Serve | Fail | Drop | Wait) for command in commands)
        owed += opened - min(settled, owed)
        assert owed == (1 if state.phase == "connecting" else 0)
