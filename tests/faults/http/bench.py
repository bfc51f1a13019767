"""Puts the faulty HTTP server under the real stack."""

from __future__ import annotations

import asyncio
import os
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from luthier import Runtime
from luthier.clock import SystemClock
from luthier.connect import ConnectionManager, MemoryLearned, ServerRegistry
from luthier.events import Observers
from luthier.spec import read_project
from tests.faults.bench import CLOSING, Bench, House, Watcher, until
from tests.faults.http.peer import HttpPeer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from luthier.connect import Learned
    from luthier.spec import ServerEntry
    from tests.faults.http.peer import Notes


@dataclass
class HttpBench(Bench):
    """One test's place: a folder, the server in its mode, and what the server noted."""

    peer: HttpPeer | None = None
    transport: str = "http"

    @property
    def server(self) -> HttpPeer:
        assert self.peer is not None
        return self.peer

    @property
    def journal(self) -> Notes:
        return self.server.notes

    def fields(self, *_: str, **fields: Any) -> dict[str, Any]:
        """An entry as a project file would say it."""
        entry = {
            "url": self.server.url,
            "transport": self.transport,
            "max_retries": 0,
            "protocol": self.protocol,
            **fields,
        }
        return {key: value for key, value in entry.items() if value is not None}

    @asynccontextmanager
    async def house(  # type: ignore[override]  # without the parts that concern processes
        self,
        *entries: ServerEntry,
        environ: Mapping[str, str] | None = None,
        learned: Learned | None = None,
    ) -> AsyncIterator[House]:
        """A manager over these entries; afterwards everything is closed, and no connection may be left."""
        watcher = Watcher()
        manager = ConnectionManager(
            ServerRegistry(entries or [self.entry()], allowed_commands=("python",), root=self.root),
            clock=SystemClock(),
            observers=Observers([watcher]),
            learned=learned or MemoryLearned(),
            environ=os.environ if environ is None else environ,
        )
        try:
            yield House(manager, self.journal, watcher, self)
        finally:
            async with asyncio.timeout(CLOSING):
                await manager.close_all()
        await self.nothing_is_left()

    @asynccontextmanager
    async def runtime(
        self,
        servers: Mapping[str, Any] | None = None,
        *,
        project: Mapping[str, Any] | None = None,
        **parts: Any,
    ) -> AsyncIterator[Runtime]:
        said = project or {"mcpServers": servers or {"faulty": self.fields()}}
        async with Runtime.open(said, root=self.root, **parts) as rt:
            yield rt
        await self.nothing_is_left()

    async def nothing_is_left(self) -> None:
        """Every connection to the server is closed."""
        await until(lambda: self.server.server.open == 0, what="all connections are closed")

    def read(self, fields: dict[str, Any], *, id: str = "faulty") -> ServerEntry:
        return read_project({"mcpServers": {id: fields}}, root=self.root).servers[id]
