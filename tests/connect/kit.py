"""What the tests of connections share: a manager over servers in memory, and a notebook of events."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

from luthier.clock import FakeClock, settle
from luthier.connect import ConnectionManager, ServerRegistry
from luthier.context import CallContext
from luthier.events import Event, Observers
from luthier.spec import ServerEntry
from luthier.taint import Labelled
from luthier.tools import ToolCall
from luthier.uri import ToolUri

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from luthier.tools import Reply
    from luthier.wire import MemoryServer

T = TypeVar("T")
E = TypeVar("E")


class Notebook:
    """An observer that keeps what it was told."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def notify(self, event: Event) -> None:
        self.events.append(event)

    def of(self, kind: type[E]) -> list[E]:
        return [event for event in self.events if isinstance(event, kind)]


class House:
    """A manager, its clock, its notebook and its servers."""

    def __init__(
        self, *servers: MemoryServer, environment: str = "development", **entries: dict[str, Any]
    ) -> None:
        self.clock = FakeClock()
        self.notebook = Notebook()
        self.servers = {server.server_id: server for server in servers}
        for server in servers:
            server.clock = self.clock
        self.registry = ServerRegistry(
            (ServerEntry(id=id, command="python", **entries.get(id, {})) for id in self.servers),
            environment=environment,
        )
        self.manager = ConnectionManager(
            self.registry,
            clock=self.clock,
            observers=Observers([self.notebook]),
            environ={},
            transports={id: server.transport for id, server in self.servers.items()},
        )

    def start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        return asyncio.get_running_loop().create_task(work)

    async def settled(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of work that needs no time to pass."""
        task = self.start(work)
        await settle(100)
        assert task.done(), "it still waits for something"
        return await task

    async def call(self, server: str, tool: str, **options: Any) -> Reply:
        return await call(self.manager, wanted(server, tool, **options))


def wanted(
    server: str,
    tool: str,
    /,
    *,
    context: CallContext | None = None,
    timeout: float | None = None,
    id: str = "c1",
    **arguments: Any,
) -> ToolCall:
    """A call, as somebody intends it."""
    return ToolCall(
        id=id,
        uri=ToolUri.mcp(server, tool),
        arguments=Labelled(arguments),
        context=context or CallContext(),
        timeout=timeout,
    )


async def call(manager: ConnectionManager, wanted: ToolCall) -> Reply:
    """Look the tool up and carry the call, as the gate does."""
    found = (await manager.manifest(wanted.uri.server, context=wanted.context)).find(wanted.uri.name)
    assert found is not None
    return await manager.carry(wanted, found)
