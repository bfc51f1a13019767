"""The manager: connections made when first needed, kept, healed and closed; lists cached; calls carried.

A server that is slow or dead costs its own callers time and nobody else: each connection has its own owner,
each server its own queue.
"""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any

from luthier.clock import SystemClock
from luthier.connect.carrying import Carrier
from luthier.connect.learned import MemoryLearned
from luthier.connect.links import CLOSING, Links, owner_of
from luthier.connect.openings import Openings
from luthier.connect.report import ServerReport
from luthier.errors import WireError
from luthier.events import Observers, ServerNoise
from luthier.taint import UNTRUSTED, Label, Source
from luthier.uri import ToolUri
from luthier.wire import Handlers

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Mapping

    from luthier.clock import Clock
    from luthier.connect.learned import Learned
    from luthier.connect.lifecycle import Phase
    from luthier.connect.openings import Remotes
    from luthier.connect.registry import ServerRegistry
    from luthier.context import CallContext
    from luthier.tools import Manifest, Reply, Tool, ToolCall
    from luthier.wire import Transport
    from luthier.wire.auth.tokens import TokenStore

    Show = Callable[[str], Awaitable[None]]

TOOL_TIMEOUT = 30.0
"""Seconds for one call, where neither the call nor the entry says."""

CACHE_TTL = 300.0
"""Seconds that a list of tools is kept, where neither the entry nor the server says."""


class ConnectionManager:
    """`transports` gives ways to servers by id that replace what their entries say: for tests and mocks.

    `environ` is what references are expanded from and servers inherit from. `tokens` makes what keeps
    the tokens of logins, when the first server by URL is opened. `handlers` answer what servers ask.
    `show` gets the address at which a person is to log in; without it nobody is asked. Times are seconds.
    """

    def __init__(  # noqa: PLR0913  (its parts, each of which has a default)
        self,
        registry: ServerRegistry,
        *,
        clock: Clock | None = None,
        observers: Observers | None = None,
        learned: Learned | None = None,
        environ: Mapping[str, str] | None = None,
        transports: Mapping[str, Callable[[], Transport]] | None = None,
        tokens: Callable[[], TokenStore] | None = None,
        handlers: Handlers | None = None,
        show: Show | None = None,
        default_tool_timeout: float = TOOL_TIMEOUT,
        cache_ttl: float = CACHE_TTL,
    ) -> None:
        self._clock = clock or SystemClock()
        self._observers = observers = observers or Observers()
        self._environ = os.environ if environ is None else environ
        self._make_tokens = tokens
        self._show = show
        self._openings = Openings(
            clock=self._clock,
            learned=learned or MemoryLearned(),
            environ=self._environ,
            transports=transports or {},
            noise=self._noise,
            remotes=self._by_url,
        )
        self._links = Links(
            registry,
            self._openings,
            clock=self._clock,
            observers=observers,
            handlers=handlers or Handlers(),
            noise=self._noise,
            tool_timeout=default_tool_timeout,
            cache_ttl=cache_ttl,
        )
        self._carrier = Carrier(self._links, clock=self._clock, observers=observers)

    @property
    def registry(self) -> ServerRegistry:
        """The entries that are in force."""
        return self._links.registry

    def label_of(self, server: str) -> Label:
        """The label of what a server says by itself; of one that is not registered, the usual."""
        entry = self.registry.find(server)
        trust = UNTRUSTED if entry is None else entry.trust
        return trust.join(Label(sources=frozenset({Source(server, "")})))

    # What a server offers

    def known(self, uri: ToolUri, context: CallContext, max_age: float | None = None) -> Tool | None:
        """The tool at that address if it is at hand: connected, listed, and not too long ago.

        `max_age`, in seconds, is how long ago that may be; None: as the entry and the server say.
        """
        server = self._links.find(uri.server)
        link = None if server is None else server.links.get(owner_of(server.entry, context))
        if link is None:
            return None
        connection = link.connection
        if connection.live is None or link.seen != connection.sessions:
            return None
        return link.manifests.known(uri.name, max_age)

    async def manifest(
        self,
        server: str,
        *,
        fresh: bool = False,
        context: CallContext | None = None,
        timeout: float | None = None,
    ) -> Manifest:
        """The tools of a server, connecting to it if need be.

        Raises NotFoundError for an unknown server, WireError when it cannot be reached in time.
        """
        link = self._links.link(self._links.server(server), context)
        if link.connection.live is None or link.seen != link.connection.sessions:
            link.manifests.expire()  # the list is that of a server which has ended
        deadline = self._carrier.deadline(timeout, context)
        listed = link.manifests.manifest(fresh=fresh)
        uri = ToolUri.mcp(server, "")
        return await self._carrier.by(deadline, listed, uri, "while its tools were being listed")

    async def connect(self, server: str) -> None:
        """Connect now instead of at the first call. Raises NotFoundError and ConnectError."""
        await self._links.link(self._links.server(server), None).connection.session()

    def state(self, server: str) -> Phase:
        """Where its connection is in its life; of several, the most alive. Raises NotFoundError."""
        self.registry.get(server)
        found = self._links.find(server)
        phases = {link.connection.phase for link in found.links.values()} if found else set()
        alive: tuple[Phase, ...] = ("ready", "connecting", "backoff", "needs-login", "failed")
        return next((phase for phase in alive if phase in phases), "closed" if self._links.closed else "idle")

    async def try_out(self, server: str) -> ServerReport:
        """Connect afresh, once, list the tools and close: what came of it. Raises NotFoundError only.

        Calls and their connections are not touched.
        """
        found = self._links.server(server)
        link = self._links.new(found, retries=0, heals=False)
        began = self._clock.monotonic()
        error: WireError | None = None
        manifest: Manifest | None = None
        try:
            session = await link.connection.session()
            manifest = await session.list_tools(timeout=link.timeout)
        except WireError as fault:
            error = fault
        finally:
            seconds = self._clock.monotonic() - began
            await self._links.close([link])
        opened = link.opened
        return ServerReport(
            server=server,
            transport=opened.transport if opened else "",
            protocol=opened.session.version if opened else "",
            name=str(opened.session.server_info.get("name", "")) if opened else "",
            tools=tuple(tool.name for tool in manifest.tools) if manifest else (),
            dropped=manifest.dropped if manifest else (),
            isolation=opened.isolation if opened else (),
            seconds=seconds,
            error=error,
        )

    def takes_headers(self, server: str) -> bool:
        """Whether headers can go along with a call to this server. Raises NotFoundError."""
        return self._openings.by_url(self.registry.get(server))

    def carry(self, call: ToolCall, tool: Tool) -> Coroutine[Any, Any, Reply]:
        """Carry a call to its server and the answer back. Raises NotFoundError and WireError.

        A call's own timeout covers everything from here on. Without one, the server's covers the call and its
        waiting in the server's queue, connecting has its own, and the deadline of the context covers all.
        """
        return self._carrier.carry(call, tool)

    # The end

    async def use(self, registry: ServerRegistry) -> None:
        """Take another registry; connections of entries that changed or went are closed first."""
        await self._links.use(registry)

    async def reconnect(self, server: str) -> None:
        """End the connections to a server; the next call starts afresh. Calls in flight fail."""
        found = self._links.find(server)
        if found is None:
            return
        found.breakers.reset()
        links = list(found.links.values())
        for link in links:
            link.manifests.expire()
        await asyncio.gather(*(link.connection.reset(CLOSING) for link in links))

    async def close_all(self) -> None:
        """End every connection, also those being made, within `CLOSING` seconds, whatever the servers do."""
        try:
            await self._links.close_all()
        finally:
            await self._openings.close()

    def _by_url(self) -> Remotes:
        """What opens sessions by URL: loaded with the first server that needs it."""
        from luthier.connect.remotes import HttpRemotes
        from luthier.wire.auth.tokens import MemoryTokens

        make = self._make_tokens or MemoryTokens
        return HttpRemotes(clock=self._clock, environ=self._environ, tokens=make(), show=self._show)

    def _noise(self, server: str, message: str) -> None:
        label = self.label_of(server)
        self._observers.notify(ServerNoise(at=self._clock.now(), server=server, message=message, label=label))
