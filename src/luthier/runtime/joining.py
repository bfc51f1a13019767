"""The one place where the parts of a runtime are joined."""

from __future__ import annotations

import itertools
import os
import secrets
from functools import partial
from typing import TYPE_CHECKING, Any

from luthier.caller import Lines
from luthier.clock import Clock, SystemClock
from luthier.connect import ConnectionManager, MemoryState, ServerRegistry, StoredLearned, take_over
from luthier.context import CallContext
from luthier.events import Observer, Observers
from luthier.govern import (
    Approval,
    Approvals,
    AuditLog,
    Budgets,
    Desk,
    Gateway,
    KillSwitch,
    PinBook,
    Policy,
    Switches,
)
from luthier.govern.places import STATE_FOLDER
from luthier.memory import Memory, save_to_memory_tool
from luthier.outside import HttpTool
from luthier.runtime.auditing import audit_log
from luthier.runtime.following import Following
from luthier.runtime.library import EnsembleSource, Library
from luthier.runtime.models import Models, with_models
from luthier.runtime.parts import answered, custom_tool, keepers, labelled, token_store
from luthier.runtime.runs import Runs, run_store
from luthier.runtime.sources import sources_of, state_in, warn_of_written_credentials
from luthier.runtime.tool_files import tools_of
from luthier.runtime.toolset import ToolSet
from luthier.store import database_of
from luthier.tools import ToolCall, ToolResult
from luthier.tools.builtin import LocalTools
from luthier.tools.headers import wrapped
from luthier.workflows import Services

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from luthier.connect import StateStore
    from luthier.govern import PolicyCall, Request
    from luthier.govern.guard import Guard
    from luthier.models import Model
    from luthier.secrets import Secret
    from luthier.spec import Project
    from luthier.tools.custom import CustomTool
    from luthier.uri import ToolUri
    from luthier.wire import Handlers, Transport
    from luthier.workflows import RunStore


class Joined:
    """A project's parts, each made once and handed to those that need it; what they are for says `Runtime`.

    Nothing is started here: no process, no connection, no task.
    """

    def __init__(  # noqa: PLR0913  (all that a user may replace, each with a default)
        self,
        project: Project,
        *,
        ensembles: Iterable[EnsembleSource] = (),
        tools: Iterable[CustomTool[..., Any] | Callable[..., Any]] = (),
        observers: Iterable[Observer] = (),
        clock: Clock | None = None,
        audit: AuditLog | None = None,
        transports: Mapping[str, Callable[[], Transport]] | None = None,
        environ: Mapping[str, str] | None = None,
        handlers: Handlers | None = None,
        show: Callable[[str], Awaitable[None]] | None = None,
        policies: Iterable[Callable[[PolicyCall], object]] = (),
        guards: Iterable[Guard] = (),
        approve: Callable[[Request], Any] | None = None,
        state: StateStore | None = None,
        models: Mapping[str, Model] | None = None,
        runs: RunStore | None = None,
    ) -> None:
        project = with_models(project, models or {})
        self.project = project
        self.memory = Memory(clock)
        self.lines = Lines()
        self._clock = clock or SystemClock()
        self.following = Following()
        self._observers = Observers((*observers, self.following))
        environ = os.environ if environ is None else environ
        self._environ = sources_of(project, environ, lambda: self.state)
        warn_of_written_credentials(project)
        self._state = project.root / STATE_FOLDER
        self._ensembles = Library(project, ensembles)
        self._ids = (
            f"{prefix}-{number}" for prefix in [secrets.token_hex(4)] for number in itertools.count(1)
        )
        registry = ServerRegistry.of(project)
        self._database = None if state else database_of(project, environ)
        policies = tuple(policies)
        self._audit = audit or audit_log(project, self._environ, self._clock, self._database, policies)
        self.state = state or (state_in(self._database, project) if self._database else MemoryState())
        if self._database is not None:
            take_over(self._state / "state.json", self.state)
        self._learned = StoredLearned(self.state)
        self.approvals = Approvals(self.state, self._audit, self._clock)
        self._desk = Desk(
            self.approvals,
            self._audit,
            self._clock,
            timeout=project.approval_timeout,
            callback=approve,
        )
        self.switches = Switches(self.state, self._audit, self._clock)
        self._switch = KillSwitch(self.state, self._clock)
        self._watching: asyncio.Task[None] | None = None
        self._budgets = Budgets(project.budgets, self._clock)
        self._manager = self._connecting(registry, transports, handlers, show)
        self.pins = PinBook(
            self.state,
            clock=self._clock,
            observers=self._observers,
            production=project.environment == "production",
            audit=self._audit,
            label_of=self._manager.label_of,
        )
        self._models = Models(project, self._environ, models or {})
        self._http = HttpTool(self._environ)
        kept = keepers(project, self._state, lambda: self.state, self._clock)
        local = LocalTools(
            custom=[*map(custom_tool, tools), *tools_of(project)],
            builtin=[save_to_memory_tool(self.memory), self._http, *kept],
            unlisted=self._models.tools(),
            clock=self._clock,
            lines=self.lines,
        )
        self._gateway = self._governing(registry, local, policies, guards)
        self.runs = self._running(runs)
        self.tools = ToolSet(self._gateway, self._call, CallContext(), self._clock.now)

    def _connecting(
        self,
        registry: ServerRegistry,
        transports: Mapping[str, Callable[[], Transport]] | None,
        handlers: Handlers | None,
        show: Callable[[str], Awaitable[None]] | None,
    ) -> ConnectionManager:
        return ConnectionManager(
            registry,
            clock=self._clock,
            observers=self._observers,
            learned=self._learned,
            environ=self._environ,
            transports=transports,
            tokens=partial(token_store, self.project, self._state, self._environ, self._clock),
            handlers=handlers,
            show=show,
        )

    def _running(self, runs: RunStore | None) -> Runs:
        services = Services(
            gateway=self._gateway,
            clock=self._clock,
            observers=self._observers,
            ensembles=self._ensembles.get,
            project=self.project,
            environ=self._environ,
            runs=runs or run_store(self.project, self._environ, self._database),
            state=self.state,
            people=self._desk,
            lines=self.lines,
        )
        return Runs(services, self._budgets.forget, self._ensembles.begun)

    def _governing(
        self,
        registry: ServerRegistry,
        local: LocalTools,
        policies: Iterable[Callable[[PolicyCall], object]],
        guards: Iterable[Guard],
    ) -> Gateway:
        return Gateway(
            registry=registry,
            pins=self.pins,
            manager=self._manager,
            local=local,
            audit=self._audit,
            record=self.project.audit.record,
            policy=Policy(self.project.policies, registry, checks=policies, clock=self._clock),
            switch=self._switch,
            guards=[
                *guards,
                Approval(self._desk).guard,
                self._budgets.guard,
            ],
            observers=self._observers,
            clock=self._clock,
        )

    async def _call(
        self,
        uri: ToolUri,
        arguments: Mapping[str, Any],
        timeout: float | None = None,
        headers: Mapping[str, str | Secret] | None = None,
        context: CallContext = CallContext(),  # noqa: B008  (a value, frozen)
    ) -> ToolResult:
        call = ToolCall(
            id=next(self._ids),
            uri=uri,
            arguments=labelled(arguments),
            context=context,
            timeout=timeout,
            headers=wrapped(headers) if headers else None,
        )
        return answered(await self._gateway.call(call))
