"""The service as a server of the protocol, by the official SDK, which speaks every revision of it."""

from __future__ import annotations

import asyncio
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec

from luthier._version import __version__
from luthier.errors import LuthierError, NotFoundError
from luthier.redaction import logger
from luthier.trace import PARENT, STATE, Trace

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp.server import Server, ServerRequestContext
    from mcp_types import CallToolRequestParams, CallToolResult, ListToolsResult, PaginatedRequestParams, Tool

    from luthier.serve.answer import Answer
    from luthier.serve.steps import Told

    Context = ServerRequestContext[Any, Any]

T = TypeVar("T")

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
        *,
        trace: Trace | None = None,
    ) -> asyncio.Task[Answer]:
        """Start a call. Raises NotFoundError for no such tool."""
        ...

    async def close(self) -> None:
        """Call off all that is being done."""
        ...


def protocol_server(service: Offering, client_of: Callable[[Any], str], name: str = "luthier") -> Server[Any]:
    """A server of the SDK; `client_of` tells by the request of a transport who calls."""
    from mcp.server import Server
    from mcp.shared.exceptions import MCPError
    from mcp_types import INVALID_PARAMS, ListToolsResult

    async def list_tools(context: Context, params: PaginatedRequestParams | None) -> ListToolsResult:  # noqa: ARG001
        listed = await service.tools(client_of(context.request))
        return ListToolsResult(tools=[tool for one in listed if (tool := _tool(one)) is not None])

    async def call_tool(context: Context, params: CallToolRequestParams) -> CallToolResult:
        told: asyncio.Queue[Told | None] = asyncio.Queue()
        client = client_of(context.request)
        try:
            arguments, trace = params.arguments or {}, _trace_of(context)
            task = await service.begin(client, params.name, arguments, told.put_nowait, trace=trace)
        except NotFoundError:
            raise MCPError(INVALID_PARAMS, f"Unknown tool: {params.name}") from None
        task.add_done_callback(lambda _: told.put_nowait(None))
        try:
            while (step := await told.get()) is not None:
                await context.session.report_progress(step.done, step.total, step.message)
            return _result(await task)
        finally:
            task.cancel()  # once, where whoever asked went away; it winds down by itself

    return Server(name, version=__version__, on_list_tools=list_tools, on_call_tool=call_tool)


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
    from mcp_types.methods import serialize_server_result

    return _shaped(answer, lambda found: serialize_server_result("tools/call", version, found))


def _shaped(answer: Answer, shape: Callable[[dict[str, Any]], T]) -> T:
    from pydantic import ValidationError

    found = {"content": answer.blocks, "isError": answer.is_error, "_meta": answer.meta}
    if answer.structured is not msgspec.UNSET:
        found["structuredContent"] = answer.structured
    try:
        return shape(found)
    except ValidationError:  # blocks of a kind that the protocol does not know
        text = msgspec.json.encode(answer.blocks).decode()
        return shape({**found, "content": [{"type": "text", "text": text}]})
