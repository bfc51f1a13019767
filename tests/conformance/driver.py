"""The client under test of the conformance suite: does over our manager what each scenario asks.

`python -m tests.conformance.driver URL`, with MCP_CONFORMANCE_SCENARIO, _PROTOCOL_VERSION and, for some
scenarios, _CONTEXT (a JSON object) in the environment. Ends with status 0 if all could be done.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from luthier.clock import SystemClock
from luthier.connect import ConnectionManager, MemoryLearned, ServerRegistry
from luthier.context import CallContext
from luthier.spec import read_project
from luthier.taint import Labelled
from luthier.tools import ToolCall
from luthier.uri import ToolUri

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from luthier.tools import Reply

SERVER = "suite"
CONTEXT: dict[str, Any] = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))


class Client:
    """One server behind the manager."""

    def __init__(self, manager: ConnectionManager) -> None:
        self.manager = manager

    async def names(self) -> list[str]:
        return [tool.name for tool in (await self.manager.manifest(SERVER)).tools]

    async def call(self, tool: str, arguments: dict[str, Any] | None = None) -> Reply:
        found = (await self.manager.manifest(SERVER)).find(tool)
        if found is None:
            raise SystemExit(f"the server lists no tool {tool}")
        return await self.manager.carry(
            ToolCall(
                id="call",
                uri=ToolUri.mcp(SERVER, tool),
                arguments=Labelled(arguments or {}),
                context=CallContext(),
            ),
            found,
        )


async def lists(client: Client) -> None:
    await client.names()


async def adds(client: Client) -> None:
    await client.names()
    await client.call("add_numbers", {"a": 5, "b": 3})


async def calls_the_first(client: Client) -> None:
    """What most scenarios only need somebody for: a list, and a call."""
    for name in (await client.names())[:1]:
        await client.call(name)


async def calls_all(client: Client) -> None:
    for name in await client.names():
        await client.call(name, {"region": "us-west1"})


async def calls_as_told(client: Client) -> None:
    await client.names()
    for call in CONTEXT["toolCalls"]:
        await client.call(call["name"], call["arguments"])


async def hands_a_schema_back(client: Client) -> None:
    tools = (await client.manager.manifest(SERVER)).tools
    rich, echo = tools
    await client.call(echo.name, {"schema": rich.input_schema})


SCENARIOS: dict[str, Callable[[Client], Awaitable[None]]] = {
    "initialize": lists,
    "tools_call": adds,
    "json-schema-ref-no-deref": lists,
    "json-schema-2020-12-preservation": hands_a_schema_back,
    "http-custom-headers": calls_as_told,
    "http-invalid-tool-headers": calls_all,
}


def entry(url: str) -> dict[str, Any]:
    """What a project file would say of the suite's server."""
    return {"url": url, "transport": "http", "protocol": os.environ["MCP_CONFORMANCE_PROTOCOL_VERSION"]}


async def drive(url: str) -> None:
    project = read_project({"mcpServers": {SERVER: entry(url)}}, root=Path.cwd())
    manager = ConnectionManager(
        ServerRegistry.of(project), clock=SystemClock(), learned=MemoryLearned(), environ=os.environ
    )
    try:
        await SCENARIOS.get(os.environ["MCP_CONFORMANCE_SCENARIO"], calls_the_first)(Client(manager))
    finally:
        await manager.close_all()


if __name__ == "__main__":
    asyncio.run(drive(sys.argv[-1]))
