"""The breaker of one tool on one server as a pure table: calls that keep failing are spared for a while.

                asked                     succeeded            failed                withdrawn
    closed      admitted                  count from 0         count, or open        same
    open        refused; after the        same                 same                  same
                cooldown probing, and
                admitted as the probe
    probing     refused                   of the probe: open   of the probe: open    of the probe:
                                          for the next probe,  for the cooldown      open for the next
                                          or closed                                  probe

`succeeded`, `failed` and `withdrawn` say how a call that was admitted ended; withdrawn is one that tells
nothing, because its caller went away or it was never sent. Calls that were admitted before the breaker
opened, and end while it is open or probing, change nothing. So at most one call at a time is under way to a
tool whose breaker is not closed. Half-open, as others call it, is open with its cooldown over, or probing.
"""

from __future__ import annotations

from typing import Literal

import msgspec

Phase = Literal["closed", "open", "probing"]


class State(msgspec.Struct, frozen=True):
    """`count` is failures in a row while closed, and else successes of probes in a row.

    `until` is the monotonic second from which the next probe may be made.
    """

    phase: Phase = "closed"
    count: int = 0
    until: float = 0.0


CLOSED = State()


class Policy(msgspec.Struct, frozen=True):
    """Failures in a row that open it, seconds until a probe, and successes in a row that close it."""

    failures: int = 5
    cooldown: float = 30.0
    successes: int = 2


class Admitted(msgspec.Struct, frozen=True):
    """The call may go; as the probe, where `probe` is set."""

    probe: bool = False


class Rejected(msgspec.Struct, frozen=True):
    """The call may not go. `seconds` until one may be tried; None while a probe is under way."""

    seconds: float | None


Ending = Literal["succeeded", "failed", "withdrawn"]

_THROUGH, _PROBE, _WAIT = Admitted(), Admitted(probe=True), Rejected(None)


def ask(state: State, now: float) -> tuple[State, Admitted | Rejected]:
    """Whether a call may be made."""
    match state.phase:
        case "closed":
            return state, _THROUGH
        case "open" if now >= state.until:
            return State("probing", state.count), _PROBE
        case "open":
            return state, Rejected(state.until - now)
        case _:
            return state, _WAIT


def end(state: State, admitted: Admitted, ending: Ending, now: float, policy: Policy) -> State:
    """What the end of an admitted call makes of it."""
    if state.phase == "closed":
        return _counted(state, ending, now, policy)
    if state.phase == "open" or not admitted.probe:
        return state
    match ending:
        case "failed":
            return State("open", 0, now + policy.cooldown)
        case "succeeded" if state.count + 1 >= policy.successes:
            return CLOSED
        case "succeeded":
            return State("open", state.count + 1, now)
        case _:
            return State("open", state.count, now)


def _counted(state: State, ending: Ending, now: float, policy: Policy) -> State:
    match ending:
        case "succeeded":
            return CLOSED
        case "failed" if state.count + 1 >= policy.failures:
            return State("open", 0, now + policy.cooldown)
        case "failed":
            return State("closed", state.count + 1)
        case _:
            return state
