"""A project with one server in memory, and what is offered of it."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

from mcp import Client

from luthier import Runtime
from luthier.serve import Service
from luthier.serve.protocol import Files, protocol_server
from luthier.testing import MemoryAudit, MemoryServer
from luthier.wire import Hang, Progress, Result

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from luthier.clock import Clock

STEP = {"name": "greet", "operation": "tools", "config": {"mcp": "greeter", "tool": "greet"}}
GREETING: dict[str, Any] = {
    "ensemble": "greeting",
    "description": "Greets.",
    "inputs": {"name": {"type": "string", "required": True}},
    "trigger": {"type": "mcp", "output_schema": {"type": "object", "required": ["said"]}},
    "agents": [STEP, {"name": "again", "operation": "transform", "config": {"value": "${greet.output}"}}],
    "outputs": {"said": "${again.output}"},
}
STUCK: dict[str, Any] = {
    "ensemble": "stuck",
    "trigger": {"type": "mcp"},
    "agents": [
        {"name": "first", "operation": "transform", "config": {"value": 1}},
        {
            "name": "hang",
            "operation": "tools",
            "config": {"mcp": "greeter", "tool": "hang"},
            "depends_on": ["first"],
        },
    ],
}
HIDDEN: dict[str, Any] = {**GREETING, "ensemble": "hidden", "trigger": {"type": "mcp", "clients": ["boss"]}}
TELLING: dict[str, Any] = {
    "ensemble": "telling",
    "trigger": {"type": "mcp"},
    "agents": [{"name": "tell", "operation": "transform", "config": {"value": "${env.KEY_OF_HOUSE}"}}],
}
UNSERVED: dict[str, Any] = {**GREETING, "ensemble": "unserved", "trigger": []}
ENSEMBLES = [GREETING, STUCK, HIDDEN, TELLING, UNSERVED]
SECRET = "the-key-of-the-house"


def greeter() -> MemoryServer:
    return MemoryServer(
        "greeter",
        {
            "greet": lambda arguments: f"Hello, {arguments['name']}",
            "fail": Result({"content": [{"type": "text", "text": "no"}], "isError": True}),
            "odd": Result({"content": [{"type": "smell", "of": "roses"}]}),
            "hang": Hang(),
            "slow": Progress(3, then="done"),
        },
        schemas={
            "greet": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
        },
    )


async def given_up(peer: Client) -> None:
    """Call what never ends, and give it up once it is at work."""
    at_work = asyncio.Event()

    async def notice(progress: float, total: float | None, message: str | None) -> None:
        at_work.set()

    call = asyncio.create_task(peer.call_tool("stuck", progress_callback=notice))
    await at_work.wait()
    call.cancel()
    with suppress(asyncio.CancelledError):
        await call


def house(
    root: Path,
    *,
    server: MemoryServer | None = None,
    entry: dict[str, Any] | None = None,
    serve: dict[str, Any] | None = None,
    says: dict[str, Any] | None = None,
    **parts: Any,
) -> Runtime:
    parts = {"ensembles": ENSEMBLES, "audit": MemoryAudit(), **parts}
    return Runtime.open(
        {
            "mcpServers": {"greeter": {"command": "python", "args": ["none.py"], **(entry or {})}},
            "expose_env": ["KEY_OF_HOUSE"],
            "serve": serve or {},
            **(says or {}),
        },
        root=root,
        transports={"greeter": (server or greeter()).transport},
        environ={"KEY_OF_HOUSE": SECRET, "CI": "c" * 40, "BOSS": "b" * 40, "HOOK": "h" * 40},
        **parts,
    )


THEIRS = (
    "elicitation_callback",
    "sampling_callback",
    "list_roots_callback",
    "logging_callback",
    "message_handler",
    "log_level",
)
"""What the client does itself."""


@asynccontextmanager
async def caller(
    root: Path, client: str = "ci", mode: Any = "auto", *, clock: Clock | None = None, **parts: Any
) -> AsyncIterator[tuple[Client, Service]]:
    """The official client, without a wire; `told` gets what it is told, the rest answers for it."""
    theirs = {name: parts.pop(name) for name in THEIRS if name in parts}
    async with house(root, **parts) as runtime:
        service = Service(runtime)
        files = Files(service, runtime.project, lambda _: client, clock)
        server = protocol_server(service, lambda _: client, files=files, clock=clock)
        try:
            async with Client(server, mode=mode, **theirs) as peer:
                yield peer, service
        finally:
            files.watching.close()
            await service.close()
