"""What clients may list and call of a project, whatever surface they come by."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, NamedTuple

from luthier.caller import NO_LINE, Line
from luthier.errors import LuthierError, NotFoundError, SpecError
from luthier.redaction import logger
from luthier.serve.answer import Answer, of_error, of_result, of_run
from luthier.serve.board import Board
from luthier.serve.offers import OWN, Offer, input_schema, may_run, offers_of
from luthier.serve.steps import Steps, reported
from luthier.spec.serve import is_pattern
from luthier.tools.naming import model_name
from luthier.uri import ToolUri

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator, Mapping

    from luthier.runtime import Runtime
    from luthier.runtime.client import Client
    from luthier.serve.steps import Told
    from luthier.spec import Ensemble
    from luthier.tools import Tool
    from luthier.trace import Trace

_log = logger("luthier.serve")


class Found(NamedTuple):
    """What a client may call: an ensemble that is offered, or a tool that was chosen."""

    tool: Offer | Tool

    @property
    def is_silent(self) -> bool:
        """Whether a call of it has nothing to say to its caller before the answer, but for its progress."""
        return self.tool.is_silent if isinstance(self.tool, Offer) else self.tool.uri.scheme == "mcp"

    @property
    def schema(self) -> dict[str, Any] | None:
        """What a tool declares of its arguments. An ensemble declares nothing that headers would repeat."""
        return None if isinstance(self.tool, Offer) else self.tool.input_schema


class Service:
    """The ensembles and offers of one runtime, and the calls of them that are being made.

    `broken` are ensembles with faults: each costs itself only. Raises SpecError where two tools are offered
    under one name.
    """

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.broken: dict[str, SpecError] = {}
        self.ensembles: dict[str, Ensemble] = {}
        self.offers: dict[str, Offer] = self._offered()
        self.board = Board(runtime)
        runtime.runs.mind_all(self.board.resume)
        self._version = 0
        self._chosen = {name: ToolUri.parse(address) for name, address in runtime.project.serve.tools.items()}
        self._calls: set[asyncio.Task[Answer]] = set()

    def version(self) -> int:
        """What changes when tools may have: by files of ensembles, read again for it, or by a server."""
        if self.runtime.reread():
            self._version += 1
            try:
                self.broken = {}
                self.offers = self._offered()
            except SpecError as error:
                _log.warning("the changed ensembles are not offered: %s", error)
        return self._version + self.runtime.following.changes

    def _offered(self) -> dict[str, Offer]:
        read = {ensemble.name: ensemble for ensemble in self._ensembles()}
        offers = {offer.name: offer for offer in offers_of(read.values())}
        self.ensembles = read
        return offers

    def _ensembles(self) -> Iterator[Ensemble]:
        for name in self.runtime.ensembles:
            try:
                yield self.runtime.ensemble(name)
            except SpecError as error:
                self.broken[name] = error

    async def tools(self, client: str) -> list[dict[str, Any]]:
        """The definitions that the client may see, in the order of their names."""
        self.version()
        listed = {name: _definition(offer) for name, offer in self.offers.items() if offer.is_for(client)}
        for name, (tool, _) in (await self._chosen_tools(client)).items():
            listed.setdefault(name, _described(name, tool))
        return [listed[name] for name in sorted(listed)]

    async def begin(
        self,
        client: str,
        name: str,
        arguments: Mapping[str, Any],
        tell: Callable[[Told], None],
        line: Line = NO_LINE,
        *,
        trace: Trace | None = None,
    ) -> asyncio.Task[Answer]:
        """Find a tool and start a call of it. Raises NotFoundError for no such tool."""
        found = await self.find(client, name)
        if found is None:
            raise NotFoundError("tool", name)
        return self.start(client, found, arguments, tell, line, trace=trace)

    async def find(self, client: str, name: str) -> Found | None:
        """The tool of that name; None where there is none, or none for this client."""
        offer = self.offers.get(name)
        if offer is not None and offer.is_for(client):
            return Found(offer)
        chosen = await self._chosen_tool(self.runtime.client(client), name) if offer is None else None
        return None if chosen is None else Found(chosen)

    def start(
        self,
        client: str,
        found: Found,
        arguments: Mapping[str, Any],
        tell: Callable[[Told], None] | None = None,
        line: Line = NO_LINE,
        *,
        trace: Trace | None = None,
    ) -> asyncio.Task[Answer]:
        """Start a call of what the client found; `tell` hears of each step that has ended.

        `line` leads to whoever called. Whoever waits for the task may go away: cancelled once, it winds down
        by itself.
        """
        caller, tool = self.runtime.client(client, trace=trace), found.tool
        if isinstance(tool, Offer):
            return self._start(self._run(tool, caller, arguments, Steps(tell), line))
        return self._start(self._call(tool.uri, caller, arguments, line, tell))

    def runnable(self, client: str) -> dict[str, Ensemble]:
        """The ensembles that the client may run by their own names."""
        return {name: one for name, one in self.ensembles.items() if may_run(one, client)}

    async def close(self) -> None:
        """Call off all that is being done, and wait until it has let go."""
        for task in self._calls:
            task.cancel()
        await self.board.close()
        await self.idle()

    async def idle(self) -> None:
        """Wait until no call is at work."""
        await asyncio.gather(*self._calls, return_exceptions=True)

    def _start(self, work: Coroutine[Any, Any, Answer]) -> asyncio.Task[Answer]:
        task = asyncio.create_task(work)
        self._calls.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Answer]) -> None:
        self._calls.discard(task)
        if not task.cancelled():
            task.exception()  # seen here also where nobody waits any more

    async def _run(
        self, offer: Offer, client: Client, arguments: Mapping[str, Any], steps: Steps, line: Line
    ) -> Answer:
        try:
            run = await client.run(offer.ensemble, arguments, steps, line)
            if not run.success:
                _log.warning("run %s of client %s failed: %s", run.id, client.id, run.error)
            return of_run(run, offer.trigger)
        except (LuthierError, RecursionError) as error:
            return _told(error, client.id, offer.name)

    async def _call(
        self,
        uri: ToolUri,
        client: Client,
        arguments: Mapping[str, Any],
        line: Line,
        tell: Callable[[Told], None] | None,
    ) -> Answer:
        heard = None if tell is None else reported(tell)
        try:
            return of_result(await client.call(uri, arguments, line, heard))
        except (LuthierError, RecursionError) as error:
            return _told(error, client.id, str(uri))

    async def _chosen_tools(self, client: str) -> dict[str, tuple[Tool, ToolUri]]:
        """The tools that are offered as they are, by the names that they are offered under."""
        if client.startswith(OWN):
            return {}  # such a token opens its own ensemble
        caller = self.runtime.client(client)
        addresses = set(self._chosen.values())
        listed = dict(zip(addresses, await asyncio.gather(*map(caller.tools, addresses)), strict=True))
        found: dict[str, tuple[Tool, ToolUri]] = {}
        for name, address in self._chosen.items():
            for tool in listed[address]:
                found.setdefault(_offered_as(name, address, tool), (tool, tool.uri))
        return found

    async def _chosen_tool(self, caller: Client, name: str) -> Tool | None:
        """The one among them of that name."""
        if caller.id.startswith(OWN):
            return None
        for written, address in self._chosen.items():
            if written == name or _has_own_name(written, address):
                for tool in await caller.tools(address):
                    if _offered_as(written, address, tool) == name:
                        return tool
        return None


def _has_own_name(name: str, address: ToolUri) -> bool:
    """Whether a tool is offered under the name that models see."""
    return is_pattern(address.name) or name == str(address)


def _offered_as(name: str, address: ToolUri, tool: Tool) -> str:
    return model_name(tool.uri) if _has_own_name(name, address) else name


def _told(error: LuthierError | RecursionError, client: str, what: str) -> Answer:
    _log.warning("a call of %s by client %s failed: %s", what, client, error)
    return of_error(error)


def _definition(offer: Offer) -> dict[str, Any]:
    found = {
        "name": offer.name,
        "description": offer.description,
        "inputSchema": input_schema(offer.ensemble),
    }
    schema = offer.trigger.output_schema
    return found if schema is None else {**found, "outputSchema": schema}


def _described(name: str, tool: Tool) -> dict[str, Any]:
    found: dict[str, Any] = {
        "name": name,
        "description": tool.description,
        "inputSchema": tool.input_schema,
    }
    if tool.title:
        found["title"] = tool.title
    if tool.annotations:
        found["annotations"] = tool.annotations
    return found if tool.output_schema is None else {**found, "outputSchema": tool.output_schema}
