"""Results that are kept: a step or an ensemble that was given the same not long ago is not run again.

Values are kept in the project's store with their labels, each caller's own apart. What is labelled secret is
neither kept nor part of a key. A store that cannot be read or written costs the cache, not the run.
"""

from __future__ import annotations

import asyncio
import hashlib
from itertools import count
from typing import TYPE_CHECKING, Any

import msgspec

from luthier.errors import StoreError
from luthier.redaction import logger
from luthier.taint import Confidentiality, Labelled
from luthier.tools import Envelope, delivered
from luthier.workflows.behind import behind
from luthier.workflows.kept import keep_labelled, read_labelled
from luthier.workflows.nodes import compiled_in
from luthier.workflows.retries import Outcome

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from luthier.clock import Clock
    from luthier.connect.state import StateStore
    from luthier.spec.control import Cache as CacheSettings
    from luthier.taint import Label
    from luthier.workflows.operations import Attempt

    Perform = Callable[[Attempt], Awaitable[Outcome]]

KIND = "cache"
"""Of the entries in the store."""

_SWEEP = 64  # writes between two sweeps
_writes = count(1)  # of this process
_log = logger("luthier.workflows")


class Cache:
    """What was kept until when, by keys that `key_of` makes."""

    def __init__(self, state: StateStore, clock: Clock) -> None:
        self._state = state
        self._clock = clock

    async def get(self, key: str) -> Labelled[Any] | None:
        """What is kept under the key and not yet too old."""
        try:
            entry = self._state.get(KIND, key)
            if entry is None:
                return None
            if entry["until"] > self._clock.now():
                return read_labelled(entry["value"])
            await asyncio.to_thread(self._state.delete, KIND, key)
        except (StoreError, KeyError, TypeError, ValueError) as error:
            _log.warning("a kept result could not be read: %s", error)
        return None

    async def put(self, key: str, value: Labelled[Any], ttl: float) -> None:
        """Keep it for so many seconds, unless it is secret or would not come back as it is."""
        if value.whole.confidentiality is Confidentiality.secret:
            return
        kept = keep_labelled(value)
        try:
            if read_labelled(msgspec.json.decode(msgspec.json.encode(kept))) != value:
                return
            entry = {"until": self._clock.now() + ttl, "value": kept}
            await asyncio.to_thread(self._state.put, KIND, key, entry)
            if next(_writes) % _SWEEP == 0:
                await asyncio.to_thread(self._sweep)
        except (StoreError, UnicodeEncodeError) as error:
            _log.warning("a result could not be kept: %s", error)

    def _sweep(self) -> None:
        now = self._clock.now()
        for key, entry in self._state.list(KIND).items():
            if entry.get("until", 0.0) <= now:
                self._state.delete(KIND, key)


def key_of(*parts: Any, label: Label) -> str:
    """The key for all that a result depends on; empty where there can be none."""
    if label.confidentiality is Confidentiality.secret:
        return ""
    try:
        text = msgspec.json.encode([delivered(part) for part in parts], enc_hook=_spelled, order="sorted")
    except (UnicodeEncodeError, AttributeError):
        return ""
    return hashlib.sha256(text).hexdigest()


def remembered(attempt: Attempt, perform: Perform) -> Awaitable[Outcome]:
    """The outcome of a step, kept or performed. Tools' own errors are not kept."""
    asked = attempt.step.cache
    return perform(attempt) if asked is None else _remembered(attempt, asked, perform)


async def _remembered(attempt: Attempt, asked: CacheSettings, perform: Perform) -> Outcome:
    cache = attempt.services.cache
    given = _given(attempt) if asked.key is None else attempt.evaluate(asked.key).value
    step = attempt.step
    beside = await asyncio.to_thread(behind, [step], attempt.services)
    parts = (step.name, step.operation, step.config, step.scoring, beside, given)
    key = key_of(attempt.context.principals, *parts, label=attempt.label)
    found = await cache.get(key) if key else None
    if found is not None:
        output = found.joined(attempt.label)
        return Outcome(output=output, label=output.whole, cached=True)
    outcome = await perform(attempt)
    failed = isinstance(outcome.output.value, Envelope) and bool(outcome.output.value.fields().get("isError"))
    ended = outcome.error is None and outcome.suspended is None
    if key and ended and not failed and not outcome.state.value:
        await cache.put(key, outcome.output, asked.ttl)
    return outcome


def _given(attempt: Attempt) -> list[Any]:
    """All that a step works with: its inputs, and what the expressions of its config come to."""
    return [attempt.given().value, *(attempt.evaluate(one).value for one in compiled_in(attempt.step.config))]


def _spelled(value: Any) -> Any:
    """An expression by its source."""
    return value.source
