"""The guard of budgets and rates: who used up what they may, calls no more until it is free again.

A call is counted before it is made and stays counted whatever comes of it. How long it takes and how much it
brings is known afterwards only, so calls under way may go beyond a limit of time or bytes; the next one is
refused. The counters are those of this process.
"""

from __future__ import annotations

import math
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import msgspec

from luthier.govern.guard import said
from luthier.govern.usage import Amount, Limit, Usage

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterator

    from luthier.clock import Clock
    from luthier.govern.guard import GateCall, Next, Up
    from luthier.spec import Budget

    Key = tuple[Any, ...]

LENGTHS: dict[str, float | None] = {"run": None, "minute": 60.0, "hour": 3600.0, "day": 86400.0}
_MOST = 10_000  # counters after which those that count nothing are looked for

_encode = msgspec.json.Encoder(enc_hook=repr).encode


class Budgets:
    """The counters of a project's budgets, and the guard over them."""

    def __init__(self, budgets: tuple[Budget, ...], clock: Clock) -> None:
        self._budgets = budgets
        self._limits = [Limit(budget.calls, budget.seconds, budget.bytes) for budget in budgets]
        self._clock = clock
        self._usages: dict[Key, Usage] = {}
        self._sweep_at = _MOST
        self._weighs = any(budget.bytes is not None for budget in budgets)

    def guard(self, call: GateCall, inner: Next) -> Awaitable[Up]:
        """Count the call, or refuse it where a budget is used up."""
        if not self._budgets:
            return inner(call)
        now = self._clock.monotonic()
        counters = [(index, key, self._usage(key)) for index, key in self._keys(call)]
        for index, key, usage in counters:
            limit = self._limits[index]
            if what := limit.reached(usage.used(now)):
                return said(_refusal(call, self._budgets[index], key, what, usage.free_in(now, limit)))
        sent = len(_encode(call.call.arguments.value)) if self._weighs else 0
        usages = [usage for _, _, usage in counters]
        for usage in usages:
            usage.spend(now, Amount(1, 0.0, sent))
        return self._counted(call, inner, usages) if usages else inner(call)

    def forget(self, run: str) -> None:
        """A run has ended; nothing will be counted for it any more."""
        for key in [key for key in self._usages if key[1] == run]:
            del self._usages[key]

    async def _counted(self, call: GateCall, inner: Next, usages: list[Usage]) -> Up:
        began = self._clock.monotonic()
        try:
            return await inner(call)
        finally:
            now = self._clock.monotonic()
            for usage in usages:
                usage.spend(now, Amount(0, now - began, call.ledger.size))

    def _keys(self, call: GateCall) -> Iterator[tuple[int, Key]]:
        """The counters that this call counts in: of each budget that fits, one for each caller it fits."""
        uri, context = call.call.uri, call.call.context
        for index, budget in enumerate(self._budgets):
            if budget.server is not None and not (uri.server and fnmatchcase(uri.server, budget.server)):
                continue
            if budget.tool is not None and not uri.matches(budget.tool):
                continue
            where = (
                index,
                (context.root or context.run) if budget.per == "run" else None,
                uri.server if budget.server is not None else "",
                uri if budget.tool is not None else None,
            )
            if budget.agent is None:
                yield index, (*where, "")
                continue
            for principal in dict.fromkeys(context.principals):
                if fnmatchcase(principal, budget.agent):
                    yield index, (*where, principal)

    def _usage(self, key: Key) -> Usage:
        usage = self._usages.get(key)
        if usage is None:
            self._sweep()
            usage = self._usages[key] = Usage(LENGTHS[self._budgets[key[0]].per])
        return usage

    def _sweep(self) -> None:
        if len(self._usages) < self._sweep_at:
            return
        now = self._clock.monotonic()
        self._usages = {key: usage for key, usage in self._usages.items() if not usage.is_empty(now)}
        self._sweep_at = max(_MOST, 2 * len(self._usages))


def _refusal(call: GateCall, budget: Budget, key: Key, what: str, free_in: float | None) -> Up:
    _, _, server, tool, principal = key
    whose = f" by {principal!r}" if principal else ""
    of = f" of {tool}" if tool is not None else f" of {server}" if server else ""
    again = f"It may be called again in {math.ceil(free_in)} s. " if free_in is not None else ""
    return call.refuse(
        "denied",
        f"The budget {budget.name!r} is used up: {what}{of}{whose} per {budget.per}.",
        rule=f"budget {budget.name}",
        place=budget.place or "budgets, given in Python",
        hint=f"{again}To allow more, raise that budget.",
    )
