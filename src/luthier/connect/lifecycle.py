"""The life of a connection as a pure table: (state, event) → (state, commands); its owner performs them.

            wanted      opened   open failed        elapsed      lost    reset      close
    idle        connecting  ·        ·                  ·            ·       idle       closed
    connecting  same        ready    backoff or failed  ·            ·       idle       closed
    backoff     same        ·        ·                  connecting   ·       idle       closed
    ready       same        ·        ·                  ·            idle    idle       closed
    failed      connecting  ·        ·                  ·            ·       idle       closed
    closed      same        ·        ·                  ·            ·       same       same

A dot is an event that came too late and changes nothing. A wish that finds a failed connection begins a new
row of tries; within a row there are at most `max_retries` tries after the first, and only for what can heal.
"""

from __future__ import annotations

from typing import Literal

import msgspec

FIRST_WAIT = 1.0
LONGEST_WAIT = 10.0

Phase = Literal["idle", "connecting", "backoff", "ready", "failed", "closed"]


class State(msgspec.Struct, frozen=True):
    """`attempt` is the try under way, or the last one; from 1, and 0 before any."""

    phase: Phase = "idle"
    attempt: int = 0


class Policy(msgspec.Struct, frozen=True):
    """How often a connection is tried again after its first try."""

    max_retries: int = 2


# Events


class Wanted(msgspec.Struct, frozen=True):
    """Somebody needs the session."""


class Opened(msgspec.Struct, frozen=True):
    """The try succeeded."""


class OpenFailed(msgspec.Struct, frozen=True):
    """The try failed. `draw` is a random number in [0, 1) that spreads the waits of many clients."""

    retryable: bool
    draw: float = 0.0


class Elapsed(msgspec.Struct, frozen=True):
    """The wait is over."""


class Lost(msgspec.Struct, frozen=True):
    """The session ended by itself."""


class Reset(msgspec.Struct, frozen=True):
    """Whatever there is shall go; the next wish starts afresh."""


class Close(msgspec.Struct, frozen=True):
    """The end, for good."""


Event = Wanted | Opened | OpenFailed | Elapsed | Lost | Reset | Close


# Commands


class Open(msgspec.Struct, frozen=True):
    """Try to open a session."""

    attempt: int


class Wait(msgspec.Struct, frozen=True):
    """Wait so many seconds, then tell `Elapsed`."""

    seconds: float


class Serve(msgspec.Struct, frozen=True):
    """Hand the session to all who wait for it."""


class Fail(msgspec.Struct, frozen=True):
    """Hand the last error to all who wait."""


class Drop(msgspec.Struct, frozen=True):
    """End the session, or the try or wait under way."""


Command = Open | Wait | Serve | Fail | Drop


def step(state: State, event: Event, policy: Policy) -> tuple[State, tuple[Command, ...]]:
    """What an event makes of a connection, and what is to be done now."""
    phase, attempt = state.phase, state.attempt
    after: tuple[State, tuple[Command, ...]]
    match phase, event:
        case ("closed", _):
            after = state, ()
        case (_, Close()):
            after = State("closed", attempt), _dropping(phase)
        case (_, Reset()):
            after = State("idle"), _dropping(phase)
        case ("idle" | "failed", Wanted()):
            after = State("connecting", 1), (Open(1),)
        case ("connecting", Opened()):
            after = State("ready", attempt), (Serve(),)
        case ("connecting", OpenFailed(retryable=True, draw=draw)) if attempt <= policy.max_retries:
            after = State("backoff", attempt), (Wait(wait_after(attempt, draw)),)
        case ("connecting", OpenFailed()):
            after = State("failed", attempt), (Fail(),)
        case ("backoff", Elapsed()):
            after = State("connecting", attempt + 1), (Open(attempt + 1),)
        case ("ready", Lost()):
            after = State("idle"), (Drop(),)
        case _:
            after = state, ()
    return after


def _dropping(phase: Phase) -> tuple[Command, ...]:
    return (Drop(),) if phase in ("connecting", "backoff", "ready") else ()


def wait_after(attempt: int, draw: float) -> float:
    """Seconds from a try (from 1) to the next: 1, 2, 4 … at most 10, less up to a half by the draw."""
    nominal = min(FIRST_WAIT * 2.0 ** min(attempt - 1, 10), LONGEST_WAIT)
    return nominal * (1.0 - draw / 2.0)
