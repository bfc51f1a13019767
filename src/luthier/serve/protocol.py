"""The service as a server of the protocol, by the official SDK, which speaks every revision of it."""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec

from luthier._version import __version__
from luthier.errors import LuthierError, NotFoundError
from luthier.redaction import logger
from luthier.serve.levels import set_level
from luthier.serve.prompts import Prompts
from luthier.serve.reading import Reading
from luthier.serve.rounds import Rounds
from luthier.serve.shelf import Shelf
from luthier.serve.watching import Watching
from luthier.trace import PARENT, STATE, Trace

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Mapping

    from mcp.server import Server, ServerRequestContext
    from mcp.server.models import InitializationOptions
    from mcp_types import (
        CallToolRequestParams,
        CallToolResult,
        InputRequiredResult,
        ListToolsResult,
        PaginatedRequestParams,
        Tool,
    )

    from luthier.caller import Line
    from luthier.clock import Clock
    from luthier.serve.answer import Answer
    from luthier.serve.service import Service
    from luthier.serve.steps import Told
    from luthier.serve.talk import Talk
    from luthier.spec import Project

    Context = ServerRequestContext[Any, Any]

T = TypeVar("T")

NAME = "luthier"
"""What the server calls itself."""

_log = logger("luthier.serve")


def need_sdk(finder: Callable[[str], object] = find_spec) -> None:
    """Raises LuthierError where the official SDK is not installed."""
    if finder("mcp") is None:
        raise LuthierError("The package mcp is not installed.", hint="Run: pip install 'luthier[serve]'")


class Offering(Protocol):
    """What can be served: a Service, or what stands in for one."""

    async def tools(self, client: str) -> list[dict[str, Any]]:
        """The definitions that the client may see."""
        ...

    async def begin(
        self,
        client: str,
        name: str,
        arguments: Mapping[str, Any],
        tell: Callable[[Told], None],
        line: Line,
        *,
        trace: Trace | None = None,
    ) -> asyncio.Task[Answer]:
        """Start a call. Raises NotFoundError for no such tool."""
        ...

    async def close(self) -> None:
        """Call off all that is being done."""
        ...


class Files:
    """What a project offers besides tools: its resources and prompts, and who is told when they change."""

    def __init__(
        self, service: Service, project: Project, client_of: Callable[[Any], str], clock: Clock | None = None
    ) -> None:
        from mcp.server.subscriptions import PromptsListChanged, ToolsListChanged

        self.shelf = Shelf(project)
        self.prompts = Prompts(project, self.shelf)
        lists = {ToolsListChanged(): service.version, PromptsListChanged(): self.prompts.version}
        self.watching = Watching(lists, self.shelf.stamp, client_of, clock)


def protocol_server(
    service: Offering,
    client_of: Callable[[Any], str],
    name: str = NAME,
    *,
    files: Files | None = None,
    clock: Clock | None = None,
    schema_of: Callable[[str], Mapping[str, Any] | None] | None = None,
) -> Server[Any]:
    """A server of the SDK; `client_of` tells by the request of a transport who calls.

    With `files` they are offered as well, and changes are told of. `schema_of` is what the SDK holds headers
    against that repeat arguments; without it that is found by listing all tools anew for each call.
    """
    from mcp.server import NotificationOptions, Server
    from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
    from mcp.shared.exceptions import MCPError
    from mcp_types import INVALID_PARAMS, ListToolsResult, SetLevelRequestParams

    rounds = Rounds(client_of, clock)

    async def list_tools(context: Context, params: PaginatedRequestParams | None) -> ListToolsResult:  # noqa: ARG001
        listed = await service.tools(client_of(context.request))
        return ListToolsResult(tools=[tool for one in listed if (tool := _tool(one)) is not None])

    async def call_tool(
        context: Context, params: CallToolRequestParams
    ) -> CallToolResult | InputRequiredResult:
        async def begin(client: str, talk: Talk) -> asyncio.Task[Answer]:
            try:
                arguments, trace = params.arguments or {}, _trace_of(context)
                return await service.begin(client, params.name, arguments, talk.tell, talk, trace=trace)
            except NotFoundError:
                raise MCPError(INVALID_PARAMS, f"Unknown tool: {params.name}") from None

        turn = await rounds.turn(context, params, begin)
        if turn.questions is not None:
            return turn.questions
        answer = await turn.task
        if turn.incapable is not None and answer.is_error:
            raise turn.incapable
        return _result(answer)

    class Telling(Server[Any]):
        def create_initialization_options(
            self, notification_options: NotificationOptions | None = None, *more: Any, **named: Any
        ) -> InitializationOptions:
            told = (
                NotificationOptions(prompts_changed=True, tools_changed=True)
                if files
                else notification_options
            )
            return super().create_initialization_options(told, *more, **named)

    server = Telling(
        name,
        version=__version__,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        get_tool_input_schema=schema_of,
    )
    security = RequestStateSecurity(
        keys=[os.urandom(32)], bind_principal=lambda context: client_of(context.request)
    )
    server.middleware.append(RequestStateBoundary(security, default_audience=name))
    server.add_request_handler("logging/setLevel", SetLevelRequestParams, set_level)
    if files is not None:
        Reading(files.shelf, files.prompts, rounds, client_of).handle(server)
        files.watching.handle(server)
    return server


def _trace_of(context: Context) -> Trace | None:
    meta = (context.params or {}).get("_meta") or {}
    return trace_of(meta, getattr(context.request, "headers", {}))


def trace_of(meta: Mapping[str, Any], headers: Mapping[str, str]) -> Trace | None:
    """What a request says in its `_meta`; else in the headers that it came with."""
    return Trace.read(meta.get(PARENT), meta.get(STATE)) or Trace.read(
        headers.get(PARENT), headers.get(STATE)
    )


def _tool(definition: dict[str, Any]) -> Tool | None:
    """A definition as the SDK knows it; one that it cannot take does not take the list with it."""
    from mcp_types import Tool
    from pydantic import ValidationError

    try:
        return Tool.model_validate(definition)
    except ValidationError as error:
        _log.warning("tool %s is not listed: %s", definition["name"], error)
        return None


def _result(answer: Answer) -> CallToolResult:
    from mcp_types import CallToolResult

    return _shaped(answer, CallToolResult.model_validate)


def wire_result(answer: Answer, version: str) -> dict[str, Any]:
    """The result of a call as that revision of the protocol has it."""
    from mcp_types import SERVER_INFO_META_KEY
    from mcp_types.methods import serialize_server_result
    from mcp_types.version import MODERN_PROTOCOL_VERSIONS

    alone = version in MODERN_PROTOCOL_VERSIONS  # since then each result says that it is one, and whose
    more = {"resultType": "complete"} if alone else {}

    def shape(found: dict[str, Any]) -> dict[str, Any]:
        shaped = serialize_server_result("tools/call", version, found | more)
        # With blocks that are not known it may pass for a result of the other kind, which has none.
        return {**shaped, "content": shaped["content"]}

    result = _shaped(answer, shape)
    if alone:
        result["_meta"][SERVER_INFO_META_KEY] = {"name": NAME, "version": __version__}
    return result


def _shaped(answer: Answer, shape: Callable[[dict[str, Any]], T]) -> T:
    from pydantic import ValidationError

    found = {"content": answer.blocks, "isError": answer.is_error, "_meta": answer.meta}
    if answer.structured is not msgspec.UNSET:
        found["structuredContent"] = answer.structured
    try:
        return shape(found)
    except (ValidationError, KeyError):  # blocks of a kind that the protocol does not know
        text = msgspec.json.encode(answer.blocks).decode()
        return shape({**found, "content": [{"type": "text", "text": text}]})
