"""A project in the hands of one client that calls from outside: what it sends is not trusted, nor public."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from luthier.caller import NO_LINE, Line, Lines
from luthier.context import CallContext
from luthier.errors import NotFoundError, Refused, WireError
from luthier.runtime.parts import answered
from luthier.taint import UNTRUSTED, Labelled
from luthier.tools import ToolCall

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from luthier.events import Observer
    from luthier.govern import Gateway
    from luthier.runtime.following import Following, Heard
    from luthier.runtime.runs import RunHandle, Runs
    from luthier.spec import Ensemble
    from luthier.tools import Tool, ToolResult
    from luthier.trace import Trace
    from luthier.uri import ToolUri
    from luthier.workflows import Run


class Client:
    """One client, by its id. Every call of it is made as `client:ID`, and so is what its runs call."""

    def __init__(
        self,
        id: str,
        *,
        gateway: Gateway,
        runs: Runs,
        ids: Callable[[], str],
        forget: Callable[[str], None],
        lines: Lines,
        following: Following,
        trace: Trace | None = None,
    ) -> None:
        self.id = id
        self._gateway = gateway
        self._runs = runs
        self._ids = ids
        self._forget = forget
        self._lines = lines
        self._following = following
        self._trace = trace

    @property
    def principal(self) -> str:
        return f"client:{self.id}"

    async def run(
        self, ensemble: Ensemble, inputs: Mapping[str, Any], observer: Observer, line: Line = NO_LINE
    ) -> Run:
        """Run an ensemble; `observer` hears of this run alone. Raises InputError before anything starts.

        By `line` the client is told and asked while it lasts.
        """
        context = self._context(self._runs.new_id())
        with self._lines.during(context.root, line):
            return await self._runs.play(ensemble, Labelled(dict(inputs), UNTRUSTED), context, observer)

    def start(
        self,
        ensemble: Ensemble,
        inputs: Mapping[str, Any],
        *observers: Observer,
        run_timeout: float | None = None,
        durable: bool = False,
    ) -> RunHandle:
        """Begin a run that goes on by itself. Raises InputError before anything starts.

        `run_timeout` is seconds for the whole run.
        """
        context = self._context(self._runs.new_id(), self._runs.until(run_timeout))
        given = Labelled(dict(inputs), UNTRUSTED)
        return self._runs.start(ensemble, given, context, *observers, durable=durable)

    async def call(
        self, uri: ToolUri, arguments: Mapping[str, Any], line: Line = NO_LINE, heard: Heard | None = None
    ) -> ToolResult:
        """Call one tool; `heard` is told what its server reports meanwhile.

        Raises Refused, and NotFoundError also for a tool that the client may not use.
        """
        context = self._context(self._ids())
        labelled = Labelled(dict(arguments), UNTRUSTED)
        call = ToolCall(id=self._ids(), uri=uri, arguments=labelled, context=context)
        try:
            with self._lines.during(context.root, line), self._following.during(call.id, heard):
                outcome = await self._gateway.call(call)
        finally:
            self._forget(context.root)
        return answered(outcome)

    async def refused(self, what: str, rule: str, place: str) -> None:
        """Have the audit log know of what was refused before any call. Raises AuditError."""
        await self._gateway.refused(what, self._context(self._ids()), rule, place)

    async def tools(self, address: ToolUri) -> tuple[Tool, ...]:
        """The tools of an address, or of a pattern of addresses of one server, that the client may use.

        A server that is not there, or out of reach, has none. None has, while nobody can tell what is off.
        """
        return tuple(tool for tool in await self._listed(address) if _fits(tool, address))

    async def _listed(self, address: ToolUri) -> tuple[Tool, ...]:
        if address.scheme != "mcp":
            return self._gateway.local_tools()
        try:
            return (await self._gateway.manifest(address.server, self._context(self._ids()))).tools
        except (NotFoundError, Refused, WireError):
            return ()

    def _context(self, root: str, deadline: float | None = None) -> CallContext:
        return CallContext(principals=(self.principal,), root=root, deadline=deadline, trace=self._trace)


def _fits(tool: Tool, address: ToolUri) -> bool:
    return tool.uri == address or tool.uri.matches(str(address))
