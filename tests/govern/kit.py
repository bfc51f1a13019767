"""What the tests of the gate share: a gate over servers in memory, with its log in memory too."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from luthier.clock import settle
from luthier.connect import MemoryState
from luthier.context import CallContext
from luthier.events import Observers
from luthier.govern import (
    Approval,
    Approvals,
    AuditLog,
    Budgets,
    Desk,
    Gateway,
    KillSwitch,
    MemoryAudit,
    Outcome,
    PinBook,
    Policy,
    Switches,
    Verdict,
)
from luthier.govern.desk import POLL
from luthier.govern.records import Pinned, Record
from luthier.spec import Budget, Policies
from luthier.taint import TRUSTED, Label, Labelled
from luthier.tools import ToolCall
from luthier.uri import ToolUri
from tests.connect.kit import House

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from luthier.connect import StateStore
    from luthier.govern import Guard, PolicyCall, Request
    from luthier.govern.guard import Up
    from luthier.tools.builtin import LocalTools
    from luthier.wire import MemoryServer


class _Kept:
    """A log that keeps the lines of first use apart: they would stand before every test's own."""

    def __init__(self, audit: AuditLog) -> None:
        self._audit = audit
        self.pinned: list[Pinned] = []

    def write(self, *records: Record) -> None:
        self.pinned += [record for record in records if isinstance(record, Pinned)]
        if others := [record for record in records if not isinstance(record, Pinned)]:
            self._audit.write(*others)

    def close(self) -> None:
        self._audit.close()


class Gate(House):
    """A house with its gate."""

    def __init__(  # noqa: PLR0913  (what a gate may be made of, each with a default)
        self,
        *servers: MemoryServer,
        audit: AuditLog | None = None,
        local: LocalTools | None = None,
        policies: Policies | None = None,
        checks: Iterable[Callable[[PolicyCall], object]] = (),
        guards: Iterable[Guard] = (),
        asks: bool = False,
        switched: bool = False,
        budgets: tuple[Budget, ...] = (),
        approve: Callable[[Request], Any] | None = None,
        approval_timeout: float | None = None,
        state: StateStore | None = None,
        environment: str = "development",
        **entries: dict[str, Any],
    ) -> None:
        super().__init__(*servers, environment=environment, **entries)
        self.log = MemoryAudit()
        self.policy = Policy(policies or Policies(), self.registry, checks=checks, clock=self.clock)
        self.state = state or MemoryState()
        kept = _Kept(audit or self.log)
        self.book = PinBook(
            self.state,
            clock=self.clock,
            observers=Observers([self.notebook]),
            production=environment == "production",
            audit=kept,
            label_of=self.manager.label_of,
        )
        self.pinned = kept.pinned
        self.approvals = Approvals(self.state, audit or self.log, self.clock)
        if asks or approve is not None:
            self.desk = Desk(
                self.approvals,
                audit or self.log,
                self.clock,
                timeout=approval_timeout,
                callback=approve,
            )
            guards = [*guards, Approval(self.desk).guard]
        guards = [*guards, Budgets(budgets, self.clock).guard]
        self.switch = KillSwitch(self.state, self.clock)
        self.switches = Switches(self.state, audit or self.log, self.clock)
        self.gateway = Gateway(
            manager=self.manager,
            registry=self.registry,
            audit=audit or self.log,
            local=local,
            policy=self.policy,
            switch=self.switch if switched else None,
            guards=guards,
            pins=self.book,
            observers=Observers([self.notebook]),
            clock=self.clock,
        )

    async def in_pauses(self, done: Callable[[], bool]) -> None:
        """Turn the clock through short pauses only, until something is done.

        Whatever waits longer waits for a thread, which has its own time, or for what is not to come.
        """
        async with asyncio.timeout(30):
            while not done():
                due = self.clock.next_due()
                if due is not None and due <= 2 * POLL:  # pauses; the store has longer
                    await self.clock.advance(due)
                else:
                    await settle()

    async def asked(self, uri: str, arguments: Any = None, **options: Any) -> Up:
        """One call through the gate that may take the time of a thread."""
        async with asyncio.timeout(30):
            return await self.gateway.call(intended(uri, arguments, **options))

    async def through(self, uri: str, arguments: Any = None, **options: Any) -> Up:
        """One call through the gate that needs no time to pass."""
        return await self.settled(self.gateway.call(intended(uri, arguments, **options)))

    @property
    def kinds(self) -> list[str]:
        """What the log holds, such as `verdict allowed`, `intent` and `outcome ok`."""
        said = []
        for record in self.log.records:
            match record:
                case Verdict():
                    said.append(f"verdict {record.verdict}")
                case Outcome():
                    said.append(f"outcome {record.outcome}")
                case _:
                    said.append(type(record).__name__.lower())
        return said


def intended(
    uri: str,
    arguments: Any = None,
    *,
    label: Label = TRUSTED,
    parts: dict[str, Label] | None = None,
    timeout: float | None = None,
    id: str = "c1",
    **context: Any,
) -> ToolCall:
    """A call, as somebody intends it; what is not its own goes into its context."""
    return ToolCall(
        id=id,
        uri=ToolUri.parse(uri),
        arguments=Labelled({} if arguments is None else arguments, label, parts or {}),
        context=CallContext(**{"run": "r1", "step": "s1", **context}),
        timeout=timeout,
    )
