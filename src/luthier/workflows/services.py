"""What a run needs from the rest of the house, handed in by whoever starts it."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from luthier.caller import Lines
from luthier.clock import Clock, SystemClock
from luthier.connect.state import MemoryState, StateStore
from luthier.errors import NotFoundError
from luthier.events import Observers
from luthier.govern import Desk
from luthier.spec import Ensemble, Project
from luthier.workflows.caching import Cache
from luthier.workflows.journal import Ledger, Writer
from luthier.workflows.plan import Plans
from luthier.workflows.runs import RunStore

if TYPE_CHECKING:
    from luthier.context import CallContext
    from luthier.taint import Labelled
    from luthier.tools import Refusal, Tool, ToolCall, ToolResult
    from luthier.tools.closed import ClosedType
    from luthier.uri import ToolUri


class Caller(Protocol):
    """The gate, as a run sees it."""

    async def call(self, call: ToolCall, /) -> ToolResult | Refusal:
        """Carry a call through the guards. Raises WireError, NotFoundError or AuditError."""
        ...

    async def tool(self, uri: ToolUri, context: CallContext, /, *, list_age: float | None = None) -> Tool:
        """The definition of a tool that the caller may use. Raises NotFoundError and WireError."""
        ...

    def endorse(
        self, value: Labelled[Any], closed: ClosedType, reason: str, context: CallContext, /
    ) -> Labelled[Any]:
        """The value as a trusted one. Raises Refused where it is not of the type, and AuditError."""
        ...


def no_ensembles(name: str) -> Ensemble:
    """The library of those who have none."""
    raise NotFoundError("ensemble", name)


def new_run_id() -> str:
    """An id that nobody else makes, and that sorts by time."""
    return f"{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{secrets.token_hex(4)}"


class Services(msgspec.Struct, frozen=True, kw_only=True):
    """`ensembles` finds what steps name, `environ` holds what `env.X` reads. `runs` None: not kept.

    `state` keeps what outlasts a run, and `people` is where persons are asked; None: nowhere. `writer` writes
    to `runs` from a thread; `ledger` is that of a durable run. `lines` lead to the clients that runs are for.
    """

    gateway: Caller
    project: Project
    clock: Clock = msgspec.field(default_factory=SystemClock)
    observers: Observers = msgspec.field(default_factory=Observers)
    ensembles: Callable[[str], Ensemble] = no_ensembles
    environ: Mapping[str, str] = {}
    runs: RunStore | None = None
    people: Desk | None = None
    lines: Lines = msgspec.field(default_factory=Lines)
    writer: Writer | None = None
    ledger: Ledger | None = None
    state: StateStore = msgspec.field(default_factory=MemoryState)
    new_id: Callable[[], str] = new_run_id
    plans: Plans = msgspec.field(default_factory=Plans)

    @property
    def cache(self) -> Cache:
        """Results that are kept."""
        return Cache(self.state, self.clock)
