"""The table of a breaker: every cell, and the laws that hold for every history of calls."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luthier.connect.breaker import (
    CLOSED,
    Admitted,
    Ending,
    Phase,
    Policy,
    Rejected,
    State,
    ask,
    end,
)

POLICY = Policy(failures=3, cooldown=30.0, successes=2)
PHASES: tuple[Phase, ...] = get_args(Phase)
ENDINGS: tuple[Ending, ...] = get_args(Ending)
THROUGH, PROBE = Admitted(), Admitted(probe=True)
NOW = 100.0


def test_a_closed_breaker_admits_everybody() -> None:
    for count in range(3):
        state = State("closed", count)
        assert ask(state, NOW) == (state, THROUGH)


def test_an_open_breaker_refuses_and_says_how_long_it_will() -> None:
    state = State("open", 0, until=112.5)
    assert ask(state, NOW) == (state, Rejected(12.5))


@pytest.mark.parametrize("until", [100.0, 99.0])
def test_after_its_cooldown_one_call_is_admitted_as_the_probe_and_no_other(until: float) -> None:
    state, answer = ask(State("open", 1, until=until), NOW)
    assert (state, answer) == (State("probing", 1), PROBE)
    assert ask(state, NOW + 1e6) == (state, Rejected(None))


# Cells of `end`: phase, whether the call was the probe, how it ended. The others change nothing.
CELLS: dict[tuple[Phase, bool, Ending], State] = {
    ("closed", False, "succeeded"): CLOSED,
    ("closed", True, "succeeded"): CLOSED,
    ("closed", False, "failed"): State("closed", 2),
    ("closed", True, "failed"): State("closed", 2),
    ("probing", True, "succeeded"): CLOSED,
    ("probing", True, "failed"): State("open", 0, NOW + 30.0),
    ("probing", True, "withdrawn"): State("open", 1, NOW),
}


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("admitted", [THROUGH, PROBE], ids=str)
@pytest.mark.parametrize("ending", ENDINGS)
def test_each_cell_of_the_table_does_what_is_written_there(
    phase: Phase, admitted: Admitted, ending: Ending
) -> None:
    state = State(phase, 1, until=50.0)
    expected = CELLS.get((phase, admitted.probe, ending), state)
    assert end(state, admitted, ending, NOW, POLICY) == expected


def test_it_opens_at_the_last_failure_in_a_row_and_a_success_between_begins_anew() -> None:
    state = CLOSED
    for ending in ("failed", "failed", "succeeded", "failed", "withdrawn", "failed"):
        state = end(state, THROUGH, ending, NOW, POLICY)
    assert state == State("closed", 2)
    assert end(state, THROUGH, "failed", NOW, POLICY) == State("open", 0, 130.0)


def test_probes_follow_each_other_at_once_until_enough_have_succeeded() -> None:
    state, _ = ask(State("open", 0, until=NOW), NOW)
    state = end(state, PROBE, "succeeded", NOW, POLICY)
    assert state == State("open", 1, NOW)
    state, answer = ask(state, NOW)
    assert answer == PROBE
    assert end(state, PROBE, "succeeded", NOW, POLICY) == CLOSED


STEP = st.one_of(
    st.tuples(st.just("ask"), st.floats(0, 60)),
    st.tuples(st.sampled_from(ENDINGS), st.integers(0, 20)),
)


@given(st.lists(STEP, max_size=200), st.integers(1, 4), st.integers(1, 4))
def test_no_history_lets_two_calls_to_a_tool_that_is_not_well(
    steps: list[tuple[str, float]], failures: int, successes: int
) -> None:
    policy = Policy(failures, 30.0, successes)
    state, now = CLOSED, 0.0
    flying: list[Admitted] = []
    for what, number in steps:
        if what == "ask":
            now += number
            before = state
            state, answer = ask(state, now)
            if isinstance(answer, Rejected):
                assert before.phase != "closed"
                assert (answer.seconds is None) == (before.phase == "probing")
                assert (
                    answer.seconds is None or 0 < answer.seconds <= 30.000_001
                )  # as sums of times are rounded
                continue
            assert answer.probe == (before.phase == "open")
            flying.append(answer)
        elif flying:
            ended = flying.pop(int(number) % len(flying))
            state = end(state, ended, what, now, policy)  # type: ignore[arg-type]  # one of ENDINGS
        probes = sum(one.probe for one in flying)
        assert probes == (1 if state.phase == "probing" else 0)
        assert state.count < (failures if state.phase == "closed" else successes)
