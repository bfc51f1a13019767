"""The kill switch: servers and callers that are turned off, in every process of the project within a second.

What is off stands in the state store under `server:ID` and `agent:NAME`, where NAME is any caller: an agent,
`ensemble:NAME`, `client:ID`. A watcher looks whether anything changed; calls in flight of what was turned off
are cancelled and end as refused. A store that cannot be read could be hiding a switch, so then nothing is
called.
"""

from __future__ import annotations

import asyncio
import math
from typing import TYPE_CHECKING

import msgspec

from luthier.clock import sleep
from luthier.errors import LuthierError
from luthier.govern.access import Denial
from luthier.govern.decisions import written_first
from luthier.govern.guard import said
from luthier.govern.records import Switched
from luthier.govern.storing import asked
from luthier.redaction import logger

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from luthier.clock import Clock
    from luthier.connect import StateStore
    from luthier.govern.audit import AuditLog
    from luthier.govern.guard import GateCall, Next, Up

KIND = "disabled"

POLL = 0.25
"""Seconds between two looks of the watcher."""

STALE = 0.75
"""Seconds after which what was seen is too old to let a call pass; then the call looks itself."""

_BLIND = Denial(
    "What is turned off cannot be read, so nothing is called.",
    "kill switch",
    "the state store",
    "`luthier doctor` looks at the store.",
)

_log = logger("luthier.govern")


class Off(msgspec.Struct, frozen=True):
    """Something that is turned off: `server:ID` or `agent:NAME`, when (Unix seconds) and by whom."""

    what: str
    at: float = 0.0
    by: str = ""


class Switches:
    """Turns servers and callers off and on, for all processes that share the store."""

    def __init__(self, state: StateStore, audit: AuditLog, clock: Clock) -> None:
        self._state = state
        self._audit = audit
        self._clock = clock

    async def list(self) -> tuple[Off, ...]:
        """What is off, in the order of its names."""
        rows = await asked(self._clock, self._state, lambda: self._state.list(KIND))
        return tuple(_read(what, row) for what, row in rows.items())

    async def disable(self, what: str, *, by: str = "operator", via: str = "python") -> None:
        """Turn off `server:ID` or `agent:NAME`."""
        row = {"at": self._clock.now(), "by": f"{by} ({via})"}
        async with written_first(self._audit, _said(what, "disabled", by, via)):
            await asked(self._clock, self._state, lambda: self._state.put(KIND, what, row))

    async def enable(self, what: str, *, by: str = "operator", via: str = "python") -> None:
        """Turn it on again. What was not off stays as it is."""
        async with written_first(self._audit, _said(what, "enabled", by, via)):
            await asked(self._clock, self._state, lambda: self._state.delete(KIND, what))


def _said(what: str, to: str, by: str, via: str) -> Switched:
    if what.partition(":")[0] not in ("server", "agent") or not what.partition(":")[2]:
        raise ValueError(f"{what!r} is neither server:ID nor agent:NAME")
    return Switched(what=what, to=to, by=by, via=via)


class _Flight:
    """A call under way, and why it was cut off."""

    __slots__ = ("call", "cancelling", "cut", "task")

    def __init__(self, call: GateCall, task: asyncio.Task[object]) -> None:
        self.call = call
        self.task = task
        self.cancelling = task.cancelling()
        self.cut = ""


_NEVER = object()
"""The revision of a store that was not looked at yet: none that a store may give, whatever it gives."""


class KillSwitch:
    """What is off as far as this process knows, the calls under way, and the guard that lets calls pass."""

    def __init__(self, state: StateStore, clock: Clock) -> None:
        self._state = state
        self._clock = clock
        self._revision: object = _NEVER
        self._looked = -math.inf
        self._looking = asyncio.Lock()
        self._flights: set[_Flight] = set()
        self._to_close: set[str] = set()
        self._told = False  # that it cannot be read
        self.off: frozenset[str] = frozenset()

    async def watch(self, close: Callable[[str], Awaitable[None]]) -> None:
        """Look again and again. `close` ends the connections of a server that was turned off.

        Cancelled, it ends when the look under way has: its thread must not read a store that is being closed.
        """
        async with asyncio.TaskGroup() as tasks:
            while True:
                looking = asyncio.create_task(self.look())
                try:
                    await asyncio.shield(looking)
                except asyncio.CancelledError:
                    await asyncio.gather(looking, return_exceptions=True)
                    raise
                except Exception as error:  # noqa: BLE001  (logged; calls find out by themselves)
                    self._unreadable(error)
                while self._to_close:
                    tasks.create_task(_closed(close, self._to_close.pop()))
                await sleep(self._clock, POLL)

    async def look(self) -> None:
        """See what is off now, and cut off the calls under way of what was not off before."""
        began = self._clock.monotonic()
        revision = await asked(self._clock, self._state, self._state.revision)
        if revision != self._revision:
            off = frozenset(await asked(self._clock, self._state, lambda: self._state.list(KIND)))
            new, self.off, self._revision = off - self.off, off, revision
            for what in sorted(new):
                self._cut(what)
        self._looked = began
        self._told = False

    def guard(self, call: GateCall, inner: Next) -> Awaitable[Up]:
        """Let pass who is not off, and end the call when that changes."""
        if self._clock.monotonic() - self._looked > STALE:
            return self._after_a_look(call, inner)
        if self.off and (denial := self.caller_denial(call.call.context.principals)):
            return said(_refusal(call, denial))
        return self._flown(call, inner)

    async def is_off(self, server: str) -> bool:
        """Whether a server is off, or nobody can tell."""
        return await self._is_blind() or f"server:{server}" in self.off

    async def blindness(self) -> Denial | None:
        """Why nothing may be used, where nobody can tell what is off; else that is known afterwards."""
        return _BLIND if await self._is_blind() else None

    def denial(self, server: str, principals: tuple[str, ...]) -> Denial | None:
        """Why these may not use that server, or None."""
        return (self.server_denial(server) or self.caller_denial(principals)) if self.off else None

    def server_denial(self, server: str) -> Denial | None:
        """Why no tool of that server may be used, or None."""
        if f"server:{server}" not in self.off:
            return None
        return Denial(
            f"Server {server!r} was turned off.",
            "kill switch",
            f"luthier servers disable {server}",
            f"To allow it: luthier servers enable {server}",
        )

    def caller_denial(self, principals: tuple[str, ...]) -> Denial | None:
        """Why these callers may use nothing, or None."""
        name = next((name for name in principals if f"agent:{name}" in self.off), None)
        if name is None:
            return None
        return Denial(
            f"{name!r} was turned off.",
            "kill switch",
            f"luthier agents disable {name}",
            f"To allow it: luthier agents enable {name}",
        )

    async def _after_a_look(self, call: GateCall, inner: Next) -> Up:
        denial = await self.blindness() or self.caller_denial(call.call.context.principals)
        return _refusal(call, denial) if denial else await self._flown(call, inner)

    async def _is_blind(self) -> bool:
        """Whether what is off is not known, after a look if need be."""
        try:
            async with self._looking:
                if self._clock.monotonic() - self._looked > STALE:
                    await self.look()
        except Exception as error:  # noqa: BLE001  (whatever it is: not to know is a no)
            self._unreadable(error)
            return True
        return False

    def _unreadable(self, error: Exception) -> None:
        """Log it once, until it can be read again."""
        if not self._told:
            self._told = True
            _log.warning("the kill switch could not be read: %s", error, exc_info=_is_ours(error))

    async def _flown(self, call: GateCall, inner: Next) -> Up:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a call is made in a task")
        flight = _Flight(call, task)
        self._flights.add(flight)
        try:
            result = await inner(call)
        except asyncio.CancelledError:
            # Whoever else wants it cancelled as well is not kept from it.
            if not flight.cut or task.uncancel() > flight.cancelling:
                raise
        except Exception:
            if not flight.cut:
                raise
            task.uncancel()
        else:
            if not flight.cut:
                return result
            task.uncancel()
        finally:
            self._flights.discard(flight)
        return self._ended(call, flight.cut)

    def _ended(self, call: GateCall, what: str) -> Up:
        kind, _, name = what.partition(":")
        denial = self.server_denial(name) if kind == "server" else self.caller_denial((name,))
        call.ledger.revoked = True
        if denial is None:  # turned on again meanwhile
            denial = Denial(f"{name!r} was turned off.", "kill switch", what, "Make the call again.")
        after = " Whether the call took effect is not known." if call.ledger.allowed else ""
        return _refusal(call, msgspec.structs.replace(denial, reason=denial.reason + after))

    def _cut(self, what: str) -> None:
        kind, _, name = what.partition(":")
        if kind == "server":
            self._to_close.add(name)
        for flight in self._flights:
            wanted = flight.call.call
            hit = wanted.uri.server == name if kind == "server" else name in wanted.context.principals
            if hit and not flight.cut:
                flight.cut = what
                flight.task.cancel()


async def _closed(close: Callable[[str], Awaitable[None]], server: str) -> None:
    try:
        await close(server)
    except Exception as error:  # noqa: BLE001  (logged; its calls are refused all the same)
        _log.warning("the connection to %s could not be closed: %s", server, error, exc_info=_is_ours(error))


def _is_ours(error: Exception) -> bool:
    """Whether it is a fault of Luthier, where the lines that it went through help."""
    return not isinstance(error, LuthierError)


def _refusal(call: GateCall, denial: Denial) -> Up:
    return call.refuse("denied", denial.reason, rule=denial.rule, place=denial.place, hint=denial.hint)


def _read(what: str, row: object) -> Off:
    """What is off is off, whatever the row says."""
    try:
        told = msgspec.convert(row, dict[str, str | float])
        return Off(what, float(told.get("at", 0.0)), str(told.get("by", "")))
    except (msgspec.ValidationError, ValueError):
        return Off(what)
