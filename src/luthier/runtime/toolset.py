"""Tools as Python users hold them: names, definitions, and `execute`, each call through the gate."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import msgspec

from luthier.errors import LuthierError, MCPToolError, NotFoundError, Refused
from luthier.taint import TRUSTED, UNTRUSTED, Label, Source, entries_of
from luthier.text import near
from luthier.tools import Tool
from luthier.tools.naming import model_name
from luthier.uri import ToolUri

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from luthier.context import CallContext
    from luthier.govern import Gateway
    from luthier.taint import TaintEntry
    from luthier.tools import JsonObject, ToolResult

    Call = Callable[[ToolUri, Mapping[str, Any]], Awaitable[ToolResult]]


class Dropped(msgspec.Struct, frozen=True):
    """A definition of a server that could not be used, and why."""

    server: str
    name: str
    reason: str


class Listing(msgspec.Struct, frozen=True):
    """What was found: tools, definitions passed over, servers that failed and why, and the others."""

    tools: tuple[Tool, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    failed: dict[str, LuthierError] = {}
    servers: tuple[str, ...] = ()


class BoundTool:
    """One tool, ready to be executed. `name` is its address, `label` that of what it says of itself."""

    def __init__(self, tool: Tool, call: Call, label: Label) -> None:
        self.tool = tool
        self.label = label
        self._call = call

    @property
    def name(self) -> str:
        return str(self.tool.uri)

    @property
    def description(self) -> str:
        return self.tool.description

    @property
    def input_schema(self) -> JsonObject:
        return self.tool.input_schema

    @property
    def schema(self) -> JsonObject:
        """What a model is given: `{name, description, input_schema}`, under a name that models can take."""
        return {
            "name": model_name(self.tool.uri),
            "description": self.tool.description,
            "input_schema": self.tool.input_schema,
        }

    async def execute(self, **arguments: Any) -> Any:
        """Call it; its content. Raises MCPToolError on the tool's own error, Refused on a refusal."""
        result = await self._call(self.tool.uri, arguments)
        if result.is_error:
            raise MCPToolError(self.tool.uri.server, self.tool.name, result.content)
        return result.content

    def __repr__(self) -> str:
        return f"BoundTool({self.name})"


class ToolSet:
    """The tools that one caller may use. Local tools are known at once, a server's after `await load()`."""

    def __init__(
        self, gateway: Gateway, call: Call, context: CallContext, now: Callable[[], float] = time.time
    ) -> None:
        self._gateway = gateway
        self._call = call
        self._context = context
        self._now = now
        self._known: dict[ToolUri, BoundTool] = {}
        self._taints: dict[str, tuple[TaintEntry, ...]] = {}
        self._learn(gateway.local_tools())

    async def load(self, *servers: str) -> Listing:
        """Ask these servers, or all that the caller may reach, for their tools, at the same time.

        A server out of reach costs itself only: its error stands in the listing. Raises NotFoundError for a
        server that is not registered.
        """
        asked = servers or await self._gateway.servers(self._context)
        answers = await asyncio.gather(*map(self._manifest, asked))
        tools = list(self._gateway.local_tools()) if not servers else []
        dropped: list[Dropped] = []
        failed: dict[str, LuthierError] = {}
        for server, answer in zip(asked, answers, strict=True):
            if isinstance(answer, NotFoundError):
                raise answer
            if isinstance(answer, LuthierError):
                failed[server] = answer
                continue
            tools += answer.tools
            dropped += [Dropped(server, one.name, one.reason) for one in answer.dropped]
        self._learn(tools)
        reached = tuple(server for server in asked if server not in failed)
        return Listing(tuple(tools), tuple(dropped), failed, reached)

    def names(self) -> list[str]:
        """The addresses of all tools known, in order."""
        return [str(uri) for uri in sorted(self._known)]

    def list_tools(self) -> list[BoundTool]:
        """All tools known, in the order of their addresses."""
        return [self._known[uri] for uri in sorted(self._known)]

    def get(self, uri: str | ToolUri) -> BoundTool:
        """The tool at that address. Raises NotFoundError with the nearest, ValueError for no address."""
        address = uri if isinstance(uri, ToolUri) else ToolUri.parse(uri)
        if address not in self._known:
            hint = (
                f"`await tools.load({address.server!r})` asks the server for its tools."
                if address.server
                else ""
            )
            raise NotFoundError("known tool", str(address), near=near(str(address), self.names()), hint=hint)
        return self._known[address]

    def drain_taint_entries(self) -> dict[str, list[dict[str, str]]]:
        """What the tools of this set gave since the last time that is not trusted, by `server:tool`.

        Each with the entries of what it came from: the server's own, and what went into the call.
        """
        taints, self._taints = self._taints, {}
        return {key: [entry.to_json() for entry in entries] for key, entries in taints.items()}

    async def _noted(self, uri: ToolUri, arguments: Mapping[str, Any]) -> ToolResult:
        label = UNTRUSTED.join(Label(sources=frozenset({Source(uri.server, uri.name)})))
        try:
            result = await self._call(uri, arguments)
            label = result.label
        except Refused:
            label = TRUSTED  # nothing came back
            raise
        finally:
            agent = self._context.principals[-1]
            if entries := entries_of(label, agent=agent, at=self._now()):
                self._taints[f"{uri.server}:{uri.name}"] = entries
        return result

    async def _manifest(self, server: str) -> Any:
        try:
            return await self._gateway.manifest(server, self._context)
        except LuthierError as error:
            return error

    def _learn(self, tools: Iterable[Tool]) -> None:
        self._known.update(
            {tool.uri: BoundTool(tool, self._noted, self._gateway.label_of(tool.uri)) for tool in tools}
        )
