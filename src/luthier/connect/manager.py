"""The manager: connections made when first needed, kept, healed and closed; lists cached; calls carried.

A server that is slow or dead costs its own callers time and nobody else: each connection has its own owner,
each server its own queue. Nothing that was sent is ever sent again from here.
"""

from __future__ import annotations

import asyncio
import os
import random
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from luthier.clock import Deadline, SystemClock
from luthier.connect.breakers import Breakers
from luthier.connect.connection import Connection, ended_within
from luthier.connect.healing import Healer
from luthier.connect.learned import MemoryLearned
from luthier.connect.lifecycle import Policy
from luthier.connect.limiter import Limiter
from luthier.connect.manifests import ManifestCache
from luthier.connect.openings import Openings
from luthier.connect.report import ServerReport
from luthier.connect.schemas import Schemas
from luthier.errors import (
    CallTimeoutError,
    ConnectError,
    ConnectionLostError,
    HttpError,
    ProtocolError,
    WireError,
)
from luthier.events import CallProgressed, Observers, ServerNoise
from luthier.tools.output import checked
from luthier.uri import ToolUri
from luthier.wire import Handlers
from luthier.wire.faults import UNSUPPORTED_VERSION

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping
    from typing import TypeVar

    from luthier.clock import Clock
    from luthier.connect.learned import Learned
    from luthier.connect.lifecycle import Phase
    from luthier.connect.openings import Opened, Remotes
    from luthier.connect.registry import ServerRegistry
    from luthier.context import CallContext
    from luthier.spec import ServerEntry
    from luthier.tools import Manifest, Reply, Tool, ToolCall
    from luthier.wire import Leave, Session, Transport
    from luthier.wire.auth.tokens import TokenStore

    Show = Callable[[str], Awaitable[None]]
    T = TypeVar("T")

TOOL_TIMEOUT = 30.0
"""Seconds for one call, where neither the call nor the entry says."""

PROGRESS = 10.0
"""How many times its timeout a call may take while its server reports progress."""

CACHE_TTL = 300.0
"""Seconds that a list of tools is kept, where neither the entry nor the server says."""

READING = 1.0
"""Seconds for a list that was being read, or a healer, to notice that its connection was closed."""

CLOSING = 8.0
"""Seconds for a connection to end: a server has 2 s after its stdin is closed and 2 s after SIGTERM."""

PROBING = 2.0
"""Seconds for a server to show that it is still there, after an answer that says otherwise."""


_GONE = frozenset({404, 405, 410})
"""HTTP statuses by which a server says that it is not spoken to at this address in this way."""


class _Link:
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


class _Server:
    """One entry, its limits, and its connections by the owner of the credentials."""

    __slots__ = ("breakers", "entry", "fingerprint", "key", "limiter", "links", "timeout", "timeout_max")

    def __init__(self, entry: ServerEntry, fingerprint: str, timeout: float, clock: Clock) -> None:
        self.entry = entry
        self.fingerprint = fingerprint
        self.key = f"{entry.id}:{fingerprint[:16]}"  # what is learned is kept under it
        self.limiter = Limiter(entry.max_concurrent_calls)
        self.breakers = Breakers(entry.id, entry.breaker, clock)
        self.links: dict[str, _Link] = {}
        self.timeout = entry.tool_timeout if entry.tool_timeout is not None else timeout
        longest = entry.tool_timeout_max
        self.timeout_max = max(longest if longest is not None else self.timeout * PROGRESS, self.timeout)


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
        self.registry = registry
        self._clock = clock or SystemClock()
        self._observers = observers or Observers()
        self._environ = os.environ if environ is None else environ
        self._make_tokens = tokens
        self._handlers = handlers or Handlers()
        self._show = show
        self._openings = Openings(
            clock=self._clock,
            learned=learned or MemoryLearned(),
            environ=self._environ,
            transports=transports or {},
            noise=self._noise,
            remotes=self._by_url,
        )
        self._default_tool_timeout = default_tool_timeout
        self._cache_ttl = cache_ttl
        self._outputs = Schemas()
        self._servers: dict[str, _Server] = {}
        self._closed = False

    # What a server offers

    def known(self, uri: ToolUri, context: CallContext) -> Tool | None:
        """The tool at that address if it is at hand: connected, listed, and not too long ago."""
        server = self._servers.get(uri.server)
        link = None if server is None else server.links.get(_owner(server.entry, context))
        if link is None:
            return None
        connection = link.connection
        if connection.live is None or link.seen != connection.sessions:
            return None
        return link.manifests.known(uri.name)

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
        link = self._link(self._server(server), context)
        if link.connection.live is None or link.seen != link.connection.sessions:
            link.manifests.expire()  # the list is that of a server which has ended
        deadline = self._deadline(timeout, context)
        listed = link.manifests.manifest(fresh=fresh)
        return await self._by(deadline, listed, ToolUri.mcp(server, ""), "while its tools were being listed")

    async def connect(self, server: str) -> None:
        """Connect now instead of at the first call. Raises NotFoundError and ConnectError."""
        await self._link(self._server(server), None).connection.session()

    def state(self, server: str) -> Phase:
        """Where its connection is in its life; of several, the most alive. Raises NotFoundError."""
        self.registry.get(server)
        found = self._servers.get(server)
        phases = {link.connection.phase for link in found.links.values()} if found else set()
        alive: tuple[Phase, ...] = ("ready", "connecting", "backoff", "needs-login", "failed")
        return next((phase for phase in alive if phase in phases), "closed" if self._closed else "idle")

    async def try_out(self, server: str) -> ServerReport:
        """Connect afresh, once, list the tools and close: what came of it. Raises NotFoundError only.

        Calls and their connections are not touched.
        """
        found = self._server(server)
        link = self._new_link(found, retries=0, heals=False)
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
            await self._close([link])
        opened = link.opened
        return ServerReport(
            server=server,
            transport=opened.transport if opened else "",
            protocol=opened.session.version if opened else "",
            name=str(opened.session.server_info.get("name", "")) if opened else "",
            tools=tuple(tool.name for tool in manifest.tools) if manifest else (),
            dropped=manifest.dropped if manifest else (),
            seconds=seconds,
            error=error,
        )

    # Calls

    async def carry(self, call: ToolCall, tool: Tool) -> Reply:
        """Carry a call to its server and the answer back. Raises NotFoundError and WireError.

        A call's own timeout covers everything from here on. Without one, the server's covers the call and its
        waiting in the server's queue, connecting has its own, and the deadline of the context covers all.
        """
        server = self._server(call.uri.server)
        link = self._link(server, call.context)
        deadline = self._deadline(call.timeout, call.context)
        admitted = server.breakers.ask(call.uri.name)
        link.calls += 1
        try:
            try:
                reply = await self._send(server, link, call, deadline)
            except ConnectionLostError as error:
                if error.sent:
                    raise
                # The connection had ended before it took the call: once more, on another.
                reply = await self._send(server, link, call, deadline)
        except BaseException as error:
            server.breakers.raised(call.uri.name, admitted, error)
            await self._look_at(server, link, error, own=1, deadline=deadline)
            raise
        finally:
            link.calls -= 1
        server.breakers.answered(call.uri.name, admitted, reply)
        if tool.output_schema is None:
            return reply
        return checked(reply, tool, self._outputs.output(tool))

    async def _send(self, server: _Server, link: _Link, call: ToolCall, deadline: float | None) -> Reply:
        session = link.connection.live or await self._session(link, call.uri, deadline)
        now = self._clock.monotonic()
        soft, longest = _limits(server, call, now, deadline)
        limited = server.limiter.limit is not None
        if limited:
            await self._by(soft, server.limiter.acquire(), call.uri, "waiting for its turn")
        try:
            if limited:
                session = await self._session(link, call.uri, soft)  # the one before may have ended meanwhile
                now = self._clock.monotonic()
            if soft <= now:
                raise _too_late(call.uri, "before it was sent")
            return await session.call_tool(
                call.uri.name,
                call.arguments.value,
                timeout=soft - now,
                timeout_max=None if longest is None else longest - now,
                on_progress=partial(self._progressed, call),
            )
        finally:
            if limited:
                server.limiter.release()

    async def _session(self, link: _Link, uri: ToolUri, deadline: float | None) -> Session:
        live = link.connection.live
        if live is not None:
            return live
        try:
            return await self._by(
                deadline, link.connection.session(), uri, "while its server was being connected"
            )
        except CallTimeoutError as error:
            if link.connection.last_error is not None:
                error.hint = f"The last try failed: {link.connection.last_error}"
            raise

    async def _look_at(
        self,
        server: _Server,
        link: _Link,
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

    async def _is_gone(self, link: _Link, deadline: float | None) -> bool:
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

    async def _by(self, deadline: float | None, awaitable: Awaitable[T], uri: ToolUri, when: str) -> T:
        if deadline is None:
            return await awaitable
        try:
            async with Deadline(self._clock, deadline - self._clock.monotonic()):
                return await awaitable
        except TimeoutError:
            raise _too_late(uri, when) from None

    def _deadline(self, timeout: float | None, context: CallContext | None) -> float | None:
        own = None if timeout is None else self._clock.monotonic() + timeout
        return _earlier(own, None if context is None else context.deadline)

    # The end

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
        await self._close(link for server in gone for link in server.links.values())

    async def reconnect(self, server: str) -> None:
        """End the connections to a server; the next call starts afresh. Calls in flight fail."""
        found = self._servers.get(server)
        if found is None:
            return
        found.breakers.reset()
        links = list(found.links.values())
        for link in links:
            link.manifests.expire()
        await asyncio.gather(*(link.connection.reset(CLOSING) for link in links))

    async def close_all(self) -> None:
        """End every connection, also those being made, within `CLOSING` seconds, whatever the servers do."""
        self._closed = True
        try:
            await self._close(link for server in self._servers.values() for link in server.links.values())
        finally:
            await self._openings.close()

    async def _close(self, links: Iterable[_Link]) -> None:
        links = list(links)
        for link in links:
            link.healer.stop()
        await asyncio.gather(*(link.connection.close(CLOSING) for link in links))
        others = [task for link in links for task in (link.manifests.reading, link.healer.task)]
        await ended_within((task for task in others if task is not None), self._clock, READING)

    # Making connections

    def _server(self, id: str) -> _Server:
        server = self._servers.get(id)
        if server is None:
            entry = self.registry.get(id)
            server = _Server(entry, self.registry.fingerprint(id), self._default_tool_timeout, self._clock)
            self._servers[id] = server
        return server

    def _link(self, server: _Server, context: CallContext | None) -> _Link:
        owner = _owner(server.entry, context)
        link = server.links.get(owner)
        if link is None:
            if self._closed:
                raise ConnectError("All connections were closed.", server=server.entry.id, retryable=False)
            link = server.links[owner] = self._new_link(server)
        return link

    def _new_link(self, server: _Server, *, retries: int | None = None, heals: bool = True) -> _Link:
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
        link = _Link(
            connection,
            ManifestCache(fetched, ttl=ttl, clock=self._clock, on_kept=kept),
            Healer(connection, self._clock, random.random),
            entry.timeout,
        )
        noise = partial(self._noise, entry.id)
        handlers = msgspec.structs.replace(
            self._handlers, on_tools_changed=link.manifests.changed, on_noise=noise
        )
        return link

    def _by_url(self) -> Remotes:
        """What opens sessions by URL: loaded with the first server that needs it."""
        from luthier.connect.remotes import HttpRemotes
        from luthier.wire.auth.tokens import MemoryTokens

        make = self._make_tokens or MemoryTokens
        return HttpRemotes(clock=self._clock, environ=self._environ, tokens=make(), show=self._show)

    async def _fetch(self, server: _Server, link: _Link) -> Manifest:
        try:
            return await self._list(server, link)
        except ConnectionLostError:
            return await self._list(server, link)  # listing changes nothing, so it may be asked twice

    async def _list(self, server: _Server, link: _Link) -> Manifest:
        session = await link.connection.session()
        seen = link.connection.sessions
        try:
            manifest = await session.list_tools(timeout=link.timeout)
        except WireError as error:
            await self._look_at(server, link, error)
            raise
        link.seen = seen
        if link.opened is not None:
            self._openings.learn(server.entry, server.key, link.opened)  # its era may have been told late
        for dropped in manifest.dropped:
            self._noise(manifest.server, f"tool {dropped.name!r} was dropped: {dropped.reason}")
        return manifest

    # Telling

    def _noise(self, server: str, message: str) -> None:
        self._observers.notify(ServerNoise(at=self._clock.now(), server=server, message=message))

    def _kept_list(self, server: str, error: WireError) -> None:
        self._noise(server, f"the list of tools could not be read again, the old one is kept: {error}")

    def _progressed(self, call: ToolCall, progress: float, total: float | None, message: str) -> None:
        self._observers.notify(
            CallProgressed(
                at=self._clock.now(),
                call_id=call.id,
                uri=call.uri,
                progress=progress,
                total=total,
                message=message,
                run=call.context.run,
                step=call.context.step,
            )
        )


def _says_gone(error: BaseException) -> bool:
    return isinstance(error, HttpError) and error.status in _GONE


def _is_rest(link: _Link) -> bool:
    return link.opened is not None and link.opened.transport == "rest"


def _owner(entry: ServerEntry, context: CallContext | None) -> str:
    """Whose credentials a connection uses: everybody shares the entry's, unless it says otherwise."""
    return "" if entry.share or context is None else context.principal


def _limits(
    server: _Server, call: ToolCall, now: float, deadline: float | None
) -> tuple[float, float | None]:
    """When a call's time is up, and until when progress may put that off (None: not at all)."""
    if call.timeout is not None and deadline is not None:
        return deadline, None
    soft, longest = now + server.timeout, now + server.timeout_max
    return (soft, longest) if deadline is None else (min(soft, deadline), min(longest, deadline))


def _earlier(one: float | None, other: float | None) -> float | None:
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)


def _too_late(uri: ToolUri, when: str) -> CallTimeoutError:
    return CallTimeoutError(
        f"There was no time left for {uri} {when}.",
        server=uri.server,
        tool=uri.name,
        phase="call",
        sent=False,
    )
