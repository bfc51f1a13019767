"""The connections of all servers: made when first needed, looked at when an answer is odd, and put away.

Each server has its own queue and its own breakers, each connection its own owner, list and healer.
"""

from __future__ import annotations

import asyncio
import random
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from luthier.connect.breakers import Breakers
from luthier.connect.connection import Connection, ended_within
from luthier.connect.healing import Healer
from luthier.connect.lifecycle import Policy
from luthier.connect.limiter import Limiter
from luthier.connect.manifests import ManifestCache
from luthier.errors import ConnectError, ConnectionLostError, HttpError, ProtocolError, WireError
from luthier.events import ToolsAnnounced
from luthier.wire.faults import UNSUPPORTED_VERSION

if TYPE_CHECKING:
    from collections.abc import Iterable

    from luthier.clock import Clock
    from luthier.connect.openings import Noise, Opened, Openings
    from luthier.connect.registry import ServerRegistry
    from luthier.context import CallContext
    from luthier.events import Observers
    from luthier.spec import ServerEntry
    from luthier.tools import Manifest
    from luthier.wire import Handlers, Leave, Session

PROGRESS = 10.0
"""How many times its timeout a call may take while its server reports progress."""

READING = 1.0
"""Seconds for a list that was being read, or a healer, to notice that its connection was closed."""

CLOSING = 8.0
"""Seconds for a connection to end: a server has 2 s after its stdin is closed and 2 s after SIGTERM."""

PROBING = 2.0
"""Seconds for a server to show that it is still there, after an answer that says otherwise."""

MOST_CALLERS = 64
"""Connections to one server that are kept for single callers; beyond it the one idle longest is ended."""

_GONE = frozenset({404, 405, 410})
"""HTTP statuses by which a server says that it is not spoken to at this address in this way."""


class Link:
    """One connection and what belongs to it."""

    __slots__ = ("calls", "connection", "healer", "manifests", "opened", "seen", "timeout")

    def __init__(
        self, connection: Connection, manifests: ManifestCache, healer: Healer, timeout: float
    ) -> None:
        self.connection = connection
        self.manifests = manifests
        self.healer = healer
        self.timeout = timeout  # of listing
        self.seen = 0  # the number of the session whose list is at hand
        self.calls = 0  # under way
        self.opened: Opened | None = None  # last

    @property
    def idle(self) -> bool:
        """Whether nobody waits for anything of it."""
        return not self.calls and self.manifests.reading is None and self.connection.phase != "connecting"


class Server:
    """One entry, its limits, and its connections by the owner of the credentials."""

    __slots__ = ("breakers", "entry", "fingerprint", "key", "limiter", "links", "timeout", "timeout_max")

    def __init__(self, entry: ServerEntry, fingerprint: str, timeout: float, clock: Clock) -> None:
        self.entry = entry
        self.fingerprint = fingerprint
        self.key = f"{entry.id}:{fingerprint[:16]}"  # what is learned is kept under it
        self.limiter = Limiter(entry.max_concurrent_calls)
        self.breakers = Breakers(entry.id, entry.breaker, clock)
        self.links: dict[str, Link] = {}
        self.timeout = entry.tool_timeout if entry.tool_timeout is not None else timeout
        longest = entry.tool_timeout_max
        self.timeout_max = max(longest if longest is not None else self.timeout * PROGRESS, self.timeout)


class Links:
    """Servers by id, and their connections. `tool_timeout` and `cache_ttl` stand where an entry says nothing.

    `noise` is told what was odd about which server.
    """

    def __init__(
        self,
        registry: ServerRegistry,
        openings: Openings,
        *,
        clock: Clock,
        observers: Observers,
        handlers: Handlers,
        noise: Noise,
        tool_timeout: float,
        cache_ttl: float,
    ) -> None:
        self.registry = registry
        self.closed = False
        self._openings = openings
        self._clock = clock
        self._observers = observers
        self._handlers = handlers
        self._noise = noise
        self._tool_timeout = tool_timeout
        self._cache_ttl = cache_ttl
        self._servers: dict[str, Server] = {}
        self._ending: set[asyncio.Task[None]] = set()  # connections that made room for others

    def find(self, id: str) -> Server | None:
        """A server that has been spoken to."""
        return self._servers.get(id)

    def server(self, id: str) -> Server:
        """The server of an entry. Raises NotFoundError."""
        server = self._servers.get(id)
        if server is None:
            entry = self.registry.get(id)
            server = Server(entry, self.registry.fingerprint(id), self._tool_timeout, self._clock)
            self._servers[id] = server
        return server

    def link(self, server: Server, context: CallContext | None) -> Link:
        """The connection that serves this caller. Raises ConnectError when all were closed."""
        owner = owner_of(server.entry, context)
        link = server.links.get(owner)
        if link is None:
            if self.closed:
                raise ConnectError("All connections were closed.", server=server.entry.id, retryable=False)
            self._make_room(server)
            link = server.links[owner] = self.new(server)
        elif owner:
            server.links[owner] = server.links.pop(owner)  # the last is the one used last
        return link

    def _make_room(self, server: Server) -> None:
        idle = (owner for owner, link in server.links.items() if link.idle)
        if len(server.links) >= MOST_CALLERS and (owner := next(idle, None)) is not None:
            name = f"luthier closing of {server.entry.id}"
            ending = self.close([server.links.pop(owner)])
            task = asyncio.get_running_loop().create_task(ending, name=name)
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)

    def new(self, server: Server, *, retries: int | None = None, heals: bool = True) -> Link:
        """A connection to be. `retries` None: as the entry says. `heals`: tried again in the background."""
        entry = server.entry

        async def opened(attempt: int, leave: Leave) -> Session:
            link.opened = await self._openings.open(
                entry, self.registry, server.key, attempt, handlers, leave
            )
            return link.opened.session

        async def fetched() -> Manifest:
            return await self._fetch(server, link)

        def failed(error: WireError) -> None:
            link.healer.failed(error)

        connection = Connection(
            entry.id,
            opened,
            policy=Policy(entry.max_retries if retries is None else retries),
            clock=self._clock,
            observers=self._observers,
            draw=random.random,
            on_failed=failed if heals else None,
        )
        ttl = entry.cache_ttl if entry.cache_ttl is not None else self._cache_ttl
        kept = partial(self._kept_list, entry.id)
        link = Link(
            connection,
            ManifestCache(fetched, ttl=ttl, clock=self._clock, on_kept=kept),
            Healer(connection, self._clock, random.random),
            entry.timeout,
        )
        noise = partial(self._noise, entry.id)

        def announced() -> None:
            link.manifests.changed()
            self._observers.notify(ToolsAnnounced(at=self._clock.now(), server=entry.id))

        handlers = msgspec.structs.replace(self._handlers, on_tools_changed=announced, on_noise=noise)
        return link

    # The end

    async def close_all(self) -> None:
        """End every connection, also those being made, and make none any more."""
        self.closed = True
        await self.close(link for server in self._servers.values() for link in server.links.values())
        await ended_within(self._ending, self._clock, CLOSING)

    async def use(self, registry: ServerRegistry) -> None:
        """Take another registry; connections of entries that changed or went are closed first."""
        self.registry = registry
        gone = [
            server
            for id, server in self._servers.items()
            if id not in registry or registry.fingerprint(id) != server.fingerprint
        ]
        for server in gone:
            del self._servers[server.entry.id]
        await self.close(link for server in gone for link in server.links.values())

    async def close(self, links: Iterable[Link]) -> None:
        """End these connections, within `CLOSING` seconds, whatever the servers do."""
        links = list(links)
        for link in links:
            link.healer.stop()
        await asyncio.gather(*(link.connection.close(CLOSING) for link in links))
        others = [task for link in links for task in (link.manifests.reading, link.healer.task)]
        await ended_within((task for task in others if task is not None), self._clock, READING)

    # Odd answers

    async def look_at(
        self,
        server: Server,
        link: Link,
        error: BaseException,
        *,
        own: int = 0,
        deadline: float | None = None,
    ) -> None:
        """Where an error says that another server answers there now: start over, once no call is under way.

        `own` is how many calls ended in that error.
        """
        outdated = isinstance(error, ProtocolError) and error.code == UNSUPPORTED_VERSION
        gone = _says_gone(error) and not _is_rest(link) and link.calls <= own
        if outdated or (gone and await self._is_gone(link, deadline)):
            self._openings.forget(server.key)
            if link.calls <= own:
                link.manifests.expire()
                await link.connection.reset(CLOSING)

    async def _is_gone(self, link: Link, deadline: float | None) -> bool:
        """Whether the server is away from its address, and does not only refuse one request in that way."""
        session = link.connection.live
        if session is None:
            return False
        seconds = PROBING if deadline is None else min(PROBING, deadline - self._clock.monotonic())
        try:
            await session.ping(timeout=seconds)
        except WireError as error:
            return _says_gone(error)
        return False

    # Lists

    async def _fetch(self, server: Server, link: Link) -> Manifest:
        try:
            return await self._list(server, link)
        except ConnectionLostError:
            return await self._list(server, link)  # listing changes nothing, so it may be asked twice

    async def _list(self, server: Server, link: Link) -> Manifest:
        session = await link.connection.session()
        seen = link.connection.sessions
        try:
            manifest = await session.list_tools(timeout=link.timeout)
        except WireError as error:
            await self.look_at(server, link, error)
            raise
        link.seen = seen
        if link.opened is not None:
            self._openings.learn(server.entry, server.key, link.opened)  # its era may have been told late
        for dropped in manifest.dropped:
            self._noise(manifest.server, f"tool {dropped.name!r} was dropped: {dropped.reason}")
        return manifest

    def _kept_list(self, server: str, error: WireError) -> None:
        self._noise(server, f"the list of tools could not be read again, the old one is kept: {error}")


def _says_gone(error: BaseException) -> bool:
    return isinstance(error, HttpError) and error.status in _GONE


def _is_rest(link: Link) -> bool:
    return link.opened is not None and link.opened.transport == "rest"


def owner_of(entry: ServerEntry, context: CallContext | None) -> str:
    """Whose credentials a connection uses: everybody shares the entry's, unless it says otherwise."""
    return "" if entry.share or context is None else context.principal
