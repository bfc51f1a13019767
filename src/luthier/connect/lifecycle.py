"""The life of a connection as a pure table: (state, event) → (state, commands); its owner performs them.

                wanted      opened   open failed        elapsed      lost    reset      close
    idle        connecting  ·        ·                  ·            ·       idle       closed
    connecting  same        ready    see below          ·            ·       idle       closed
    backoff     same        ·        ·                  connecting   ·       idle       closed
    ready       same        ·        ·                  ·            idle    idle       closed
    needs-login connecting  ·        ·                  ·            ·       idle       closed
    failed      connecting  ·        ·                  ·            ·       idle       closed
    closed      same        ·        ·                  ·            ·       same       same

A dot is an event that came too late and changes nothing. A try that failed leads to backoff where it may heal
and is not the last, to needs-login where nothing but a person's login helps, and else to failed. A wish that
finds a connection failed, or in need of a login, begins a new row of tries: somebody may have repaired it,
or logged in. Within a row there are at most `max_retries` tries after the first. A server that asks for more
time than anybody would wait for a connection is not tried again in this row.
"""

from __future__ import annotations

from typing import Literal

import msgspec

FIRST_WAIT = 1.0
LONGEST_WAIT = 10.0

LONGEST_ASKED = 60.0
"""Seconds that a server may ask for (`Retry-After`) and is given before the next try of a row."""

Phase = Literal["idle", "connecting", "backoff", "ready", "needs-login", "failed", "closed"]


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
    """The try failed. `draw` is a random number in [0, 1) that spreads the waits of many clients.

    `retry_after` is the seconds that the server asked for; `login`: a person must log in.
    """

    retryable: bool
    draw: float = 0.0
    retry_after: float | None = None
    login: bool = False


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
        case ("idle" | "needs-login" | "failed", Wanted()):
            after = State("connecting", 1), (Open(1),)
        case ("connecting", Opened()):
            after = State("ready", attempt), (Serve(),)
        case ("connecting", OpenFailed()):
            after = _after_failure(attempt, event, policy)
        case ("backoff", Elapsed()):
            after = State("connecting", attempt + 1), (Open(attempt + 1),)
        case ("ready", Lost()):
            after = State("idle"), (Drop(),)
        case _:
            after = state, ()
    return after


def _after_failure(attempt: int, failed: OpenFailed, policy: Policy) -> tuple[State, tuple[Command, ...]]:
    asked = failed.retry_after or 0.0
    if failed.login:
        return State("needs-login", attempt), (Fail(),)
    if not failed.retryable or attempt > policy.max_retries or asked > LONGEST_ASKED:
        return State("failed", attempt), (Fail(),)
    return State("backoff", attempt), (Wait(wait_after(attempt, failed.draw, asked)),)


def _dropping(phase: Phase) -> tuple[Command, ...]:
    return (Drop(),) if phase in ("connecting", "backoff", "ready") else ()


def wait_after(attempt: int, draw: float, asked: float = 0.0) -> float:
    """Seconds from a try (from 1) to the next: 1, 2, 4 … at most 10, less up to a half by the draw.

    Never less than the server asked for, and then up to a tenth more, so that not all come in one moment.
    """
    nominal = min(FIRST_WAIT * 2.0 ** min(attempt - 1, 10), LONGEST_WAIT)
    return max(nominal * (1.0 - draw / 2.0), asked * (1.0 + draw / 10.0))
