"""The face that Python users hold: a project at work."""

from __future__ import annotations

import asyncio
import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from luthier.context import OPERATOR, CallContext
from luthier.errors import SpecError
from luthier.govern.server_approval import approve_server
from luthier.runtime.client import Client
from luthier.runtime.joining import Joined
from luthier.runtime.parts import labelled, project_of, with_more, with_servers
from luthier.runtime.toolset import ToolSet
from luthier.spec import check_ensemble
from luthier.store import with_registered
from luthier.taint import Labelled
from luthier.tools.closed import id_of, read_closed
from luthier.uri import ToolUri

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from luthier.connect import ServerReport, ServerStore
    from luthier.govern import Review
    from luthier.runtime.library import EnsembleSource
    from luthier.runtime.parts import Registered, Source
    from luthier.runtime.runs import RunHandle
    from luthier.secrets import Secret
    from luthier.spec import Ensemble, ServerEntry
    from luthier.tools import Tool, ToolResult
    from luthier.trace import Trace
    from luthier.workflows import Run


class Runtime(Joined):
    """A project at work: its servers, its tools, its ensembles, all behind one gate.

    `async with Runtime.open(…) as rt:`; nothing is started before the first call that needs it, and
    everything is stopped at the end, whatever happened.

    `handlers` answer what servers ask back: sampling, elicitation, roots. `show` gets the address at which a
    person is to log in; without it nobody is asked, and the error says what to run. `policies` are functions
    that say "allow", "ask", "deny" or None of each call, besides those of the project. `guards` stand
    around each call that policies let pass. `approve` is asked about each call that needs an approval and
    each question of a step, and gives True or False, the answer, or an `Answer`. `state` keeps what waits for
    one, and `approvals` decides about it; `switches` turn servers and callers off. `models` answer in place
    of the providers of these names.
    """

    @classmethod
    def open(
        cls,
        source: Source = None,
        *,
        servers: Mapping[str, Mapping[str, Any]] | Registered | None = None,
        root: str | Path | None = None,
        **parts: Any,
    ) -> Self:
        """A runtime for a project file or folder, a mapping of the same shape, or a Project.

        Without a source: the nearest project file of the working directory, or none at all; and where none
        names servers, those that are registered in the project's database. `servers` adds entries, or those
        of a registry, to the project's and wins over them. The rest as for the class. Raises SpecError with
        every fault, StoreError for a database that cannot be read.
        """
        project = project_of(source, root=Path(root) if root is not None else None)
        environ = parts.get("environ")
        project = with_registered(project, os.environ if environ is None else environ)
        return cls(with_more(project, servers), **parts)

    async def __aenter__(self) -> Self:
        self._watching = asyncio.create_task(self._switch.watch(self._manager.reconnect))
        try:
            async with asyncio.TaskGroup() as tasks:
                for entry in self.project.servers.values():
                    if entry.required and not entry.disabled and not await self._switch.is_off(entry.id):
                        tasks.create_task(self._manager.connect(entry.id))
        except BaseExceptionGroup as group:
            await self.close()
            raise group.exceptions[0] from None
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Stop every server and end the audit segment. Always ends."""
        try:
            await self.runs.close()
            await self._manager.close_all()
            await self._models.close()
            await self._http.close()
            await self.pins.close()
            await asyncio.to_thread(self._learned.save)
        finally:
            if self._watching is not None:
                self._watching.cancel()
                await asyncio.wait({self._watching})
            self._audit.close()
            if self._database is not None:
                self._database.close()

    @property
    def environ(self) -> Mapping[str, str]:
        """What the references of this project are looked up in."""
        return self._environ

    @property
    def ensembles(self) -> tuple[str, ...]:
        """The names of the project's ensembles, in order."""
        return self._ensembles.names

    async def run(
        self,
        ensemble: EnsembleSource,
        inputs: Mapping[str, Any] | None = None,
        /,
        *,
        run_timeout: float | None = None,
        durable: bool = False,
        **more: Any,
    ) -> Run:
        """Run an ensemble by name, file, mapping or value; inputs as a mapping, by name, or both.

        Labelled inputs keep their labels. A run that fails is a Run with `success` False. Raises SpecError,
        InputError or NotFoundError before anything starts. `run_timeout` is seconds for the whole run.
        A `durable` one is written down as it goes: when its process ends, `runs.resume` goes on with it.
        """
        given = labelled({**(inputs or {}), **more})
        return await self.runs.play(
            self.ensemble(ensemble), given, self._operator(run_timeout), durable=durable
        )

    def start(
        self,
        ensemble: EnsembleSource,
        inputs: Mapping[str, Any] | None = None,
        /,
        *,
        run_timeout: float | None = None,
        durable: bool = False,
        **more: Any,
    ) -> RunHandle:
        """As `run`, but the run goes on by itself; it is called off when the runtime closes."""
        found, given = self.ensemble(ensemble), labelled({**(inputs or {}), **more})
        return self.runs.start(found, given, self._operator(run_timeout), durable=durable)

    def _operator(self, timeout: float | None) -> CallContext:
        return CallContext(principals=(OPERATOR,), deadline=self.runs.until(timeout))

    def reread(self) -> bool:
        """Read the files of ensembles again, if one has changed; whether one has."""
        return self._ensembles.reread()

    def ensemble(self, source: EnsembleSource) -> Ensemble:
        """An ensemble as it would run here. Raises SpecError with every fault, and NotFoundError."""
        found = self._ensembles.get(source)
        faults = [
            fault for fault in check_ensemble(found, self.project, self._ensembles.names) if not fault.warning
        ]
        if faults:
            raise SpecError(faults)
        return found

    def client(self, id: str, *, trace: Trace | None = None) -> Client:
        """The project in the hands of a client that calls from outside; its calls belong to `trace`."""
        return Client(
            id,
            gateway=self._gateway,
            runs=self.runs,
            ids=partial(next, self._ids),
            forget=self._budgets.forget,
            lines=self.lines,
            following=self.following,
            trace=trace,
        )

    def tools_of(self, agent: str) -> ToolSet:
        """The tools as an agent of that name may use them: each call is made in its name."""
        context = CallContext(principals=(agent,))
        return ToolSet(self._gateway, partial(self._call, context=context), context, self._clock.now)

    async def call(
        self,
        uri: str | ToolUri,
        arguments: Mapping[str, Any] | None = None,
        /,
        *,
        call_timeout: float | None = None,
        call_headers: Mapping[str, str | Secret] | None = None,
        **more: Any,
    ) -> ToolResult:
        """Call one tool as the operator. A tool's own error is a result; a refusal raises Refused.

        `call_timeout` is seconds; without it the server's entry decides. `call_headers` go along with this
        call alone, to a server by URL. An `Authorization` among them is used in place of the entry's own
        credentials, which are not tried when it is refused.
        """
        address = uri if isinstance(uri, ToolUri) else ToolUri.parse(uri)
        return await self._call(address, {**(arguments or {}), **more}, call_timeout, call_headers)

    def endorse(self, value: Any, *, as_: Any, reason: str) -> Labelled[Any]:
        """The value as a trusted one, where it is of the closed type.

        `as_` is "boolean" or one of `{"enum": […]}`, `{"integer": [low, high]}`, `{"number": [low, high]}`,
        `{"pattern": …}` and `{"id_of": […]}`. Written down in the audit log. Raises Refused, and ValueError
        for a type that is not closed.
        """
        labelled = value if isinstance(value, Labelled) else Labelled(value)
        chosen = isinstance(as_, dict) and set(as_) == {"id_of"}
        closed = id_of(as_["id_of"]) if chosen else read_closed(as_)
        return self._gateway.endorse(labelled, closed, reason, CallContext())

    async def describe(self, uri: str | ToolUri) -> Tool:
        """One tool's definition. Raises NotFoundError with the nearest names."""
        address = uri if isinstance(uri, ToolUri) else ToolUri.parse(uri)
        return await self._gateway.tool(address, CallContext())

    async def review_tools(self, server: str, *, fresh: bool = True) -> Review:
        """Each tool that a server lists beside what was approved, connecting to it if need be.

        `pins.approve` approves what such a review holds. Raises Refused, NotFoundError and WireError.
        """
        return await self._gateway.review(server, CallContext(), fresh=fresh)

    async def connect(self, server: str) -> None:
        """Connect to a server now instead of at the first call. Raises NotFoundError and ConnectError."""
        await self._manager.connect(server)

    async def register(self, entry: ServerEntry, /) -> None:
        """Add a server, or put it in the place of the one of its id, whose connections are closed first."""
        self.project = with_servers(self.project, {entry.id: entry})
        registry = self._manager.registry.with_entry(entry)
        await self._manager.use(registry)
        self._gateway.use(registry)

    async def approve_server(
        self, server: str, *, seen: str = "", store: ServerStore | None = None, via: str = "python"
    ) -> ServerEntry:
        """Let an imported server be used from now on, as the entry stands; `store` keeps that it may.

        `seen` is the hash of the entry that was looked at (`luthier.spec.hosts.digest`): no other is.
        Raises NotFoundError, Refused, StoreError and AuditError.
        """
        entry = self._manager.registry.get(server)
        decided = partial(
            approve_server, entry, audit=self._audit, store=store, by=OPERATOR, via=via, seen=seen
        )
        approved = await asyncio.to_thread(decided)
        if approved != entry:
            await self.register(approved)
        return approved

    async def test_server(self, server: str) -> ServerReport:
        """Connect to a server once more, list its tools and close: what came of it. Raises NotFoundError."""
        return await self._manager.try_out(server)

    async def reconnect(self, server: str) -> None:
        """Close the server's connection; the next call opens a new one."""
        await self._manager.reconnect(server)
