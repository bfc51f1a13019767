"""The client under test of the conformance suite: does over our manager what each scenario asks.

`python -m tests.conformance.driver URL`, with MCP_CONFORMANCE_SCENARIO, _PROTOCOL_VERSION and, for some
scenarios, _CONTEXT (a JSON object) in the environment. Ends with status 0 if all could be done.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from luthier.connect import ConnectionManager, MemoryLearned, ServerRegistry
from luthier.context import CallContext
from luthier.spec import read_project
from luthier.taint import Labelled
from luthier.tools import ToolCall
from luthier.uri import ToolUri
from luthier.wire import Handlers
from luthier.wire.auth.tokens import MemoryTokens

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from luthier.tools import Reply

SERVER = "suite"
SCENARIO = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
VERSION = os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION", "")
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


async def calls_all_at_once(client: Client) -> None:
    await asyncio.gather(*(client.call(name) for name in await client.names()))


async def calls_as_told(client: Client) -> None:
    await client.names()
    for call in CONTEXT["toolCalls"]:
        await client.call(call["name"], call["arguments"])


async def hands_a_schema_back(client: Client) -> None:
    tools = (await client.manager.manifest(SERVER)).tools
    rich, echo = tools
    await client.call(echo.name, {"schema": rich.input_schema})


async def accept_defaults(params: dict[str, Any]) -> dict[str, Any]:
    """A person who agrees to whatever the server proposes."""
    fields = params.get("requestedSchema", {}).get("properties", {}).items()
    agreed = {name: field["default"] for name, field in fields if "default" in field}
    return {"action": "accept", "content": agreed}


SCENARIOS: dict[str, Callable[[Client], Awaitable[None]]] = {
    "initialize": lists,
    "tools_call": adds,
    "sep-2322-client-request-state": calls_all_at_once,
    "json-schema-ref-no-deref": lists,
    "json-schema-2020-12-preservation": hands_a_schema_back,
    "http-custom-headers": calls_as_told,
    "http-invalid-tool-headers": calls_all,
}


CREDENTIALS = {
    "auth/client-credentials-jwt",
    "auth/client-credentials-basic",
    "auth/enterprise-managed-authorization",
}
DOCUMENT = "https://conformance-test.local/client-metadata.json"
"""Where the suite believes our client metadata document to be."""


def auth(url: str) -> dict[str, Any] | None:
    """What an operator would write into the entry of that server."""
    if not SCENARIO.startswith("auth/"):
        return None
    if SCENARIO not in CREDENTIALS:
        known: dict[str, Any] = {
            key: CONTEXT[key] for key in ("client_id", "client_secret", "issuer") if key in CONTEXT
        }
        return {"type": "oauth", "interactive": True, "client_id": DOCUMENT} | known
    resource = fetched(url, "oauth-protected-resource")
    server = fetched(resource["authorization_servers"][0], "oauth-authorization-server")
    secret = CONTEXT.get("private_key_pem") or CONTEXT["client_secret"]
    known = {"client_id": CONTEXT["client_id"], "client_secret": secret, "issuer": server["issuer"]}
    if "idp_id_token" in CONTEXT:
        provider = ("idp_client_id", "idp_token_endpoint")
        known |= dict(zip(("idp_client_id", "idp_token_url"), map(CONTEXT.get, provider), strict=True))
        known["id_token"] = CONTEXT["idp_id_token"]
    return {"type": "oauth", "token_url": server["token_endpoint"], **known}


def fetched(url: str, kind: str) -> Any:
    """What an operator reads before writing an entry: the metadata that belongs to an address."""
    parts = urlsplit(url)
    path = parts.path.rstrip("/")
    where = f"{parts.scheme}://{parts.netloc}/.well-known/{kind}{path}"
    with urllib.request.urlopen(where, timeout=5) as answer:  # noqa: S310  (the suite's own address)
        return json.load(answer)


async def browse(address: str) -> None:
    """Log in as the suite's one user: its login page sends us straight back. Returns before that is done."""

    def follow() -> None:
        urllib.request.urlopen(address, timeout=10).close()  # noqa: S310  (the suite's own address)

    asyncio.get_running_loop().run_in_executor(None, follow)


async def drive(url: str) -> None:
    said = {"url": url, "transport": "http", "protocol": VERSION, "allow_private": True}
    told = auth(url)
    project = read_project({"mcpServers": {SERVER: said | ({"auth": told} if told else {})}}, root=Path.cwd())
    manager = ConnectionManager(
        ServerRegistry.of(project),
        learned=MemoryLearned(),
        environ={},
        tokens=MemoryTokens,
        handlers=Handlers(elicitation=accept_defaults),
        show=browse,
    )
    try:
        await SCENARIOS.get(SCENARIO, calls_the_first)(Client(manager))
    finally:
        await manager.close_all()


if __name__ == "__main__":
    asyncio.run(drive(sys.argv[-1]))
