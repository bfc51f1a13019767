"""One MCP session with one server, whatever revision it speaks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from luthier._version import __version__
from luthier.errors import CallTimeoutError, ProtocolError, WireError
from luthier.secrets import Secret
from luthier.tools import Manifest
from luthier.wire.codec import value
from luthier.wire.definitions import Listing, page_decoder
from luthier.wire.era import MODERN_VERSIONS
from luthier.wire.faults import HEADER_MISMATCH, METHOD_NOT_FOUND, timed_out
from luthier.wire.listening import Listening
from luthier.wire.mirrors import mirrored
from luthier.wire.peer import Handlers, Peer
from luthier.wire.pending import OnProgress, Request
from luthier.wire.repair import UnreadableError
from luthier.wire.results import TaskStarted, read_reply
from luthier.wire.rounds import asked_back
from luthier.wire.tasks import TASKS, Following
from luthier.wire.transport import PLAIN, Routing

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping

    from msgspec import Raw

    from luthier.clock import Clock
    from luthier.tools import Reply
    from luthier.wire.definitions import Page
    from luthier.wire.link import Link
    from luthier.wire.mirrors import Mirrors

MAX_PAGES = 1000
"""Pages of one list that are read: a server with more repeats itself."""

CLIENT_INFO = {"name": "luthier", "version": __version__}
META = "io.modelcontextprotocol/"
"""The prefix of the protocol's own keys in `_meta`."""


def request_meta(version: str, handlers: Handlers, *, forms: bool = False) -> dict[str, Any]:
    """What every request of the modern era carries; `forms`: people can fill in forms, later on."""
    own: dict[str, Any] = {"elicitation": {}} if forms else {}
    return {
        f"{META}protocolVersion": version,
        f"{META}clientInfo": CLIENT_INFO,
        f"{META}clientCapabilities": own | handlers.capabilities | {"extensions": {TASKS: {}}},
    }


class Terms(msgspec.Struct, frozen=True, gc=False):
    """What each request of one call goes by.

    How long that may take from when it began, in monotonic seconds, who is told of its progress, and the
    headers that its caller gave.
    """

    began: float
    timeout: float | None
    timeout_max: float | None
    on_progress: OnProgress | None
    headers: dict[str, Secret] | None = None

    @property
    def until(self) -> float | None:
        """The last moment; None when there is none."""
        longest = self.timeout if self.timeout_max is None else self.timeout_max
        return None if longest is None else self.began + longest

    def at(self, now: float) -> Terms:
        """What is left of them then."""
        until = self.until
        if until is None:
            return self
        left = max(0.0, until - now)
        idle = left if self.timeout is None else min(self.timeout, left)
        longest = None if self.timeout_max is None else left
        return msgspec.structs.replace(self, began=now, timeout=idle, timeout_max=longest)


class Session:
    """A standing session. Calls may be made at once from any task of its loop. Raises WireErrors only.

    `version` is the revision settled on, `modern` its era. `server_info`, `capabilities` and `instructions`
    are what the server says of itself: to be shown, never trusted.
    """

    def __init__(self, link: Link, clock: Clock, handlers: Handlers) -> None:
        self.server = link.server
        self.version = ""
        self.modern = False
        self.server_info: dict[str, Any] = {}
        self.capabilities: dict[str, Any] = {}
        self.instructions = ""
        self._link = link
        self._clock = clock
        self._handlers = handlers
        self._peer = Peer(link, handlers)
        self._meta: dict[str, Any] | None = None
        self._with_forms: dict[str, Any] | None = None
        self._mirrors: dict[str, Mirrors] = {}
        self._listening: Listening | None = None

    def settle(self, version: str, answer: dict[str, Any]) -> None:
        """From here on this revision is spoken. `answer` is what `initialize` or `server/discover` gave."""
        self.version = self._link.version = version
        self.modern = version in MODERN_VERSIONS
        self._meta = request_meta(version, self._handlers) if self.modern else None
        self._with_forms = request_meta(version, self._handlers, forms=True) if self.modern else None
        info = answer.get("serverInfo")
        if self.modern:
            meta = answer.get("_meta")
            info = meta.get(f"{META}serverInfo") if isinstance(meta, dict) else None
        capabilities, instructions = answer.get("capabilities"), answer.get("instructions")
        self.server_info = info if isinstance(info, dict) else {}
        self.capabilities = capabilities if isinstance(capabilities, dict) else {}
        self.instructions = instructions if isinstance(instructions, str) else ""
        tools = self.capabilities.get("tools")
        if self.modern and isinstance(tools, dict) and tools.get("listChanged") is True:
            self._listen()

    async def list_tools(self, *, timeout: float | None) -> Manifest:
        """All pages of the tool list, in `timeout` seconds together."""
        began = self._clock.monotonic()
        listing = Listing(self.server, modern=self.modern)
        cursor: Any = None
        seen: set[str] = set()
        for _ in range(MAX_PAGES):
            page = await self._page(cursor, began, timeout)
            listing.add(page)
            cursor = page.next_cursor
            if cursor is None or cursor == "":
                break
            if str(cursor) in seen:
                self._link.noise.tell("the tool list was ended because its cursor repeats itself")
                break
            seen.add(str(cursor))
        else:
            self._link.noise.tell(f"the tool list was ended after {MAX_PAGES} pages")
        for oddity in listing.oddities:
            self._link.noise.tell(oddity)
        self._mirrors = listing.mirrors
        return Manifest(
            server=self.server,
            tools=tuple(listing.tools),
            dropped=tuple(listing.dropped),
            ttl_ms=listing.ttl_ms,
        )

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any],
        *,
        timeout: float | None,
        timeout_max: float | None = None,
        meta: dict[str, Any] | None = None,
        on_progress: OnProgress | None = None,
        headers: dict[str, Secret] | None = None,
        forms: dict[str, Any] | None = None,
    ) -> Reply:
        """One call.

        `timeout` is seconds without an answer or, where `timeout_max` bounds the whole, without progress.
        `meta` goes into the request's `_meta`; `headers` go along with each request of this call, over HTTP.
        Where the server makes a task of the call, that is followed to its end; where it asks back, the
        handlers answer. What they cannot answer is in the reply. `forms` not None: forms can be answered all
        the same, by another call with the same arguments whose `forms` are the responses, and the state.
        """
        params: dict[str, Any] = {"name": name, "arguments": arguments, **(forms or {})}
        own = self._with_forms if forms is not None else self._meta
        if meta:
            params["_meta"] = {**meta, **own} if own else meta
        elif own:
            params["_meta"] = own
        terms = Terms(self._clock.monotonic(), timeout, timeout_max, on_progress, headers)
        try:
            raw, odd = await self._send_call(params, terms)
            reply = read_reply(raw, odd, server=self.server, tool=name, modern=self.modern)
        except (ProtocolError, TaskStarted) as end:
            reply = await self._otherwise(end, params, terms)
        if reply.input_required is None:
            return reply
        return await self._asked_back(reply, params, terms)

    def _send_call(self, params: dict[str, Any], terms: Terms) -> Awaitable[tuple[Raw, tuple[str, ...]]]:
        name = params["name"]
        mirrors = self._mirrors.get(name) if self._mirrors else None
        repeated = None if mirrors is None else mirrored(mirrors, params["arguments"])
        return self._link.request(
            "tools/call",
            params,
            phase="call",
            tool=name,
            timeout=terms.timeout,
            timeout_max=terms.timeout_max,
            on_progress=terms.on_progress,
            routing=Routing("", repeated, terms.headers) if repeated or terms.headers else PLAIN,
        )

    async def _otherwise(
        self, end: ProtocolError | TaskStarted, params: dict[str, Any], terms: Terms
    ) -> Reply:
        """What a call comes to that was not simply answered."""
        name = params["name"]
        if isinstance(end, ProtocolError):
            if end.code != HEADER_MISMATCH or not self.modern:
                raise end
            # The tool has changed what it wants mirrored, so it has not been called: list, and call it again.
            await self.list_tools(timeout=terms.at(self._clock.monotonic()).timeout)
            try:
                raw, odd = await self._send_call(params, terms.at(self._clock.monotonic()))
                return read_reply(raw, odd, server=self.server, tool=name, modern=self.modern)
            except TaskStarted as handle:
                end = handle
        following = Following(
            self._link,
            self._clock,
            end,
            tool=name,
            meta=self._meta or {},
            silence=None if terms.timeout_max is None else terms.timeout,
            deadline=terms.until,
            answer=self._peer.answer,
            headers=terms.headers,
        )
        return await following.end()

    async def _asked_back(self, reply: Reply, params: dict[str, Any], terms: Terms) -> Reply:
        """What a call comes to that asks for something first."""

        async def again(more: dict[str, Any]) -> Reply:
            further, left = {**params, **more}, terms.at(self._clock.monotonic())
            try:
                raw, odd = await self._send_call(further, left)
                return read_reply(raw, odd, server=self.server, tool=params["name"], modern=self.modern)
            except (ProtocolError, TaskStarted) as end:
                return await self._otherwise(end, further, left)

        try:
            return await asked_back(
                reply, again=again, answer=self._peer.answer, clock=self._clock, deadline=terms.until
            )
        except TimeoutError:
            request = Request(0, "tools/call", params["name"], "call")
            request.waited = self._clock.monotonic() - terms.began
            raise timed_out(self.server, request, sent=True) from None

    async def ping(self, *, timeout: float) -> None:
        """Return if the server answers at all. A modern server is asked who it is, in place of `ping`."""
        method = "server/discover" if self.modern else "ping"
        try:
            await self._link.request(method, self._params(), phase="call", timeout=timeout)
        except ProtocolError as error:
            if error.code is None:
                raise

    @property
    def closed(self) -> bool:
        return self._link.closed

    async def wait_closed(self) -> WireError | None:
        """Return when the session has ended: why, or None if it was closed on purpose."""
        return await self._link.wait_closed()

    async def close(self) -> None:
        """End the session and its server. Always ends, within a bound."""
        self._peer.close()
        if self._listening is not None:
            self._listening.close()
        await self._link.close()

    def _listen(self) -> None:
        """Ask to be told of changes, which a modern server tells nobody of its own accord."""
        on_changed = self._handlers.on_tools_changed
        if on_changed is None:
            return
        if self._listening is None:
            self._listening = Listening(self._link, self._clock, self._listen_params, on_changed)
            self._peer.on_acknowledged = self._listening.acknowledged
        self._listening.begin()

    def _listen_params(self) -> dict[str, Any]:
        return {**self._params(), "notifications": {"toolsListChanged": True}}

    def _params(self) -> dict[str, Any]:
        return {"_meta": self._meta} if self._meta else {}

    async def _page(self, cursor: Any, began: float, timeout: float | None) -> Page:
        params = self._params() | ({} if cursor is None else {"cursor": cursor})
        left = None if timeout is None else max(0.0, began + timeout - self._clock.monotonic())
        try:
            raw, _ = await self._link.request("tools/list", params, phase="list", timeout=left)
            page, _ = value(raw, page_decoder)
        except CallTimeoutError as error:
            if cursor is None:
                raise
            # The page had what was left, but it is the list that took so long.
            request = Request(0, "tools/list", "", "list")
            request.waited = self._clock.monotonic() - began
            raise timed_out(self.server, request, sent=error.sent) from None
        except ProtocolError as error:
            if error.code == METHOD_NOT_FOUND and "tools" not in self.capabilities:
                return page_decoder.decode(b'{"tools": []}')
            raise
        except UnreadableError as error:
            raise ProtocolError(
                f"Server {self.server!r} answered tools/list with something that cannot be read: {error}.",
                server=self.server,
                phase="list",
            ) from None
        return page
