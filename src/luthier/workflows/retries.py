"""What became of an attempt, whether another may be made, and after what wait. Pure.

The rule that keeps a side effect from happening twice stands here: what may have reached the other side is
not sent again, unless a repetition is known to be harmless.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from luthier.taint import TRUSTED, Label, Labelled
from luthier.workflows.record import NULL, Failure, Suspended

if TYPE_CHECKING:
    from luthier.spec import Retry

DECIDED = frozenset({"denied", "approval", "arguments", "condition", "dependency", "cancelled"})
"""Kinds that come out the same however often one asks."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one attempt. `error` None: it gave `output`.

    `harmless`: a repetition cannot do twice what was done, because nothing was sent or the tool says so.
    `hopeless`: no repetition can help. `status`: of the answer, where the other side speaks in HTTP's
    numbers, and `retry_after` the seconds that it asks us to wait. `cancelled`: called off. `suspended`: it
    has come to no end, and waits for that. `score`: what an evaluator gave.
    """

    output: Labelled[Any] = NULL
    error: Failure | None = None
    label: Label = TRUSTED
    harmless: bool = False
    hopeless: bool = False
    status: int | None = None
    retry_after: float | None = None
    cancelled: bool = False
    cached: bool = False
    score: float | None = None
    state: Labelled[Any] = NULL
    suspended: Suspended | None = None


def repeats(retry: Retry, outcome: Outcome) -> bool:
    """Whether this failure may be answered by another attempt, their number aside."""
    error = outcome.error
    if error is None or error.kind in DECIDED or outcome.hopeless:
        return False
    if outcome.retry_after is not None and outcome.retry_after > retry.max_delay:
        return False  # it would be asked too early
    if error.kind in ("timeout", "unknown"):
        return outcome.harmless
    if error.kind == "connect":
        return True
    return error.kind in retry.retry_on or (outcome.status is not None and outcome.status in retry.retry_on)


def delay(retry: Retry, attempt: int, retry_after: float | None = None) -> float:
    """Seconds between the end of an attempt (counted from 1) and the next, never less than was asked for."""
    match retry.backoff:
        case "fixed":
            seconds = retry.initial_delay
        case "linear":
            seconds = retry.initial_delay * attempt
        case _:
            seconds = retry.initial_delay * 2.0 ** min(attempt - 1, 64)
    return max(min(seconds, retry.max_delay), retry_after or 0.0)
