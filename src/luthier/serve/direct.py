"""Calls that say nothing before their answer, answered in one piece: past the SDK's streams and models.

The SDK answers whatever is asked in a session with a stream of events, for what a server may have to say
meanwhile. A tool of a server behind us says nothing, unless its progress is asked for, and neither does an
ensemble that asks nobody anything. So such a call goes to the service at once where the SDK has just vouched
for its session, or, since 2026-07-28, for the request itself. All else goes to the SDK, which so hears of a
session often enough to keep it. What is odd about a request is told by the SDK too.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec

from luthier.clock import Clock, Deadline, SystemClock
from luthier.serve import modern
from luthier.serve.messages import MESSAGE, id_of
from luthier.serve.protocol import trace_of, wire_result
from luthier.trace import PARENT, STATE

if TYPE_CHECKING:
    from collections.abc import Iterable, MutableMapping

    from starlette.datastructures import Headers

    from luthier.serve.answer import Answer
    from luthier.serve.messages import App, Receive, Scope, Send
    from luthier.serve.service import Found, Service

VOUCHED = 60.0
"""Seconds that a session is known to be there after the SDK has answered in it."""

PATIENCE = 15.0
"""Seconds of silence after which whoever waits, and what stands between, is shown that we are still here."""

LISTEN = 0.1
"""Seconds after which whoever waits is listened for, as they may have gone away; what is quicker is not."""

VERSIONS = frozenset({"2025-06-18", "2025-11-25"})
"""Revisions whose sessions are known by header, and whose results have the same form."""

_SESSION = b"mcp-session-id"
_TRACE = (PARENT, STATE)
_READ = ("accept", "content-type", "mcp-protocol-version", "mcp-session-id", *_TRACE)
_JSON, _EVENTS = "application/json", "text/event-stream"
_CANCELLED = -32800


class _Call(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    arguments: dict[str, Any] = {}
    meta: dict[str, Any] = msgspec.field(name="_meta", default_factory=dict)


class _Request(msgspec.Struct, frozen=True):
    jsonrpc: Literal["2.0"]
    params: _Call


class _Asked(NamedTuple):
    """Who asks, in which session and revision of the protocol, and what headers say of its trace.

    `headers`: where the request is without a session, all that it was sent with. `is_usual`: it is sent as
    clients do, so that any answer will do.
    """

    client: str
    session: bytes
    version: str
    trace: dict[str, str]
    headers: Headers | None
    is_usual: bool


class _Flight:
    """A call that is being made, from before it is known what it is a call of."""

    def __init__(self) -> None:
        self._task: asyncio.Task[Answer] | None = None
        self._off = False

    def begin(self, task: asyncio.Task[Answer]) -> asyncio.Task[Answer]:
        self._task = task
        if self._off:
            task.cancel()
        return task

    def cancel(self) -> None:
        self._off = True
        if self._task is not None:
            self._task.cancel()


class Direct:
    """An ASGI application before that of the SDK, which is at `path`, and behind what reads the messages."""

    def __init__(self, app: App, service: Service, path: str, clock: Clock | None = None) -> None:
        self._app = app
        self._service = service
        self._path = path
        self._clock = clock or SystemClock()
        self._vouched: dict[bytes, tuple[str, float]] = {}  # the session's client, and until when
        self._flights: dict[tuple[bytes, str | int | None], _Flight] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] != self._path:
            await self._app(scope, receive, send)
            return
        asked, message = _asked(scope), scope.get(MESSAGE)
        if (
            asked is not None
            and isinstance(message, dict)
            and self._knows(asked)
            and await self._took(message, asked, receive, send)
        ):
            return
        await self._app(scope, receive, self._watched(scope, send))

    # Sessions.

    def _knows(self, asked: _Asked) -> bool:
        if asked.headers is not None:
            return True
        client, until = self._vouched.get(asked.session, ("", 0.0))
        return client == asked.client and self._clock.monotonic() < until

    def _watched(self, scope: Scope, send: Send) -> Send:
        """The same, and what the SDK says of the session is noted."""

        async def watched(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                session = _header(message["headers"], _SESSION)
                if message["status"] < 300 and scope["method"] != "DELETE":  # noqa: PLR2004  (it went well)
                    self._vouch(session, scope["user"].display_name)
                else:
                    self._vouched.pop(_header(scope["headers"], _SESSION), None)
            await send(message)

        return watched

    def _vouch(self, session: bytes, client: str) -> None:
        now = self._clock.monotonic()
        # The oldest come first; what has not been vouched for again is forgotten.
        while self._vouched and self._vouched[oldest := next(iter(self._vouched))][1] <= now:
            del self._vouched[oldest]
        if session:
            self._vouched.pop(session, None)
            self._vouched[session] = client, now + VOUCHED

    # Calls.

    async def _took(self, message: dict[str, Any], asked: _Asked, receive: Receive, send: Send) -> bool:
        """Whether the message was answered here."""
        params, id = message.get("params"), id_of(message)
        if not isinstance(params, dict):
            return False
        if message.get("method") == "notifications/cancelled":
            self._call_off(asked.session, params.get("requestId"))
        name, key = params.get("name"), (asked.session, id)
        if message.get("method") != "tools/call" or not isinstance(name, str) or key in self._flights:
            return False
        flight, leaving = _Flight(), None
        if asked.headers is None:  # of a request without a session the id says nothing
            self._flights[key] = flight
        try:
            found = await self._service.find(asked.client, name)
            modern.SCHEMA.set(None if found is None else found.schema)
            call = None if found is None or id is None else _direct(message, asked, found)
            if found is None or id is None or call is None:
                return False
            trace = trace_of(call.meta, asked.trace)
            task = flight.begin(self._service.start(asked.client, found, call.arguments, trace=trace))
            if not await self._done(task, LISTEN):
                leaving = asyncio.ensure_future(_left(receive))
                leaving.add_done_callback(lambda _: flight.cancel())
            await self._answer(task, id, asked, send)
        finally:
            self._flights.pop(key, None)
            if leaving is not None:
                leaving.cancel()
            flight.cancel()  # where whoever waits for it was called off
        return True

    def _call_off(self, session: bytes, request: object) -> None:
        if isinstance(request, str | int) and (flight := self._flights.get((session, request))) is not None:
            flight.cancel()

    async def _answer(self, task: asyncio.Task[Answer], id: str | int, asked: _Asked, send: Send) -> None:
        """In one piece; what takes long becomes a stream after all, whose comments show that we are here."""
        headers = [(_SESSION, asked.session)] if asked.session else []
        if await self._done(task, PATIENCE - LISTEN):
            text = _reply(task, id, asked.version)
            headers += [(b"content-type", _JSON.encode()), (b"content-length", b"%d" % len(text))]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": text})
            return
        headers += [(b"content-type", _EVENTS.encode()), (b"cache-control", b"no-cache, no-transform")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        done = False
        while not done:
            await send({"type": "http.response.body", "body": b": working\n\n", "more_body": True})
            done = await self._done(task, PATIENCE)
        event = b"event: message\ndata: %s\n\n" % _reply(task, id, asked.version)
        await send({"type": "http.response.body", "body": event})

    async def _done(self, task: asyncio.Task[Answer], seconds: float) -> bool:
        """Wait for it, so long."""
        if task.done():
            return True
        try:
            async with Deadline(self._clock, seconds):
                await asyncio.wait((task,))
        except TimeoutError:
            return False
        return True


def _asked(scope: Scope) -> _Asked | None:
    """Who asks, of a request as clients send them; None for one that the SDK is to look at."""
    from starlette.datastructures import Headers

    found: dict[str, str] = {}
    for name, value in scope["headers"]:
        if (known := name.decode("latin-1")) in _READ:
            found[known] = "" if known in found else value.decode("latin-1")  # what stands twice is odd
    accept, version = found.get("accept", ""), found.get("mcp-protocol-version", "")
    usual = found.get("content-type", "").startswith(_JSON) and _JSON in accept and _EVENTS in accept
    alone = version == modern.VERSION
    if scope["method"] != "POST" or not (alone or (usual and version in VERSIONS)):
        return None
    return _Asked(
        client=scope["user"].display_name,
        session=b"" if alone else found.get("mcp-session-id", "").encode("latin-1"),
        version=version,
        trace={name: found[name] for name in _TRACE if name in found},
        headers=Headers(scope=scope) if alone else None,
        is_usual=usual,
    )


def _direct(message: dict[str, Any], asked: _Asked, found: Found) -> _Call | None:
    """The call, where it is one that is answered here."""
    if not asked.is_usual or not found.is_silent:
        return None
    try:
        call = msgspec.convert(message, _Request).params
    except msgspec.ValidationError:
        return None
    if call.meta.get("progressToken") is not None:
        return None
    headers = asked.headers
    if headers is None:
        return call
    usual = modern.is_usual(message["params"], headers)
    return call if usual and modern.agrees(found.schema, call.arguments, headers) else None


def _header(headers: Iterable[tuple[bytes, bytes]], wanted: bytes) -> bytes:
    return next((value for name, value in headers if name.lower() == wanted), b"")


async def _left(receive: Receive) -> None:
    """Wait until whoever asked goes away."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _reply(task: asyncio.Task[Answer], id: str | int, version: str) -> bytes:
    found: dict[str, Any] = {"jsonrpc": "2.0", "id": id}
    if task.cancelled():
        found["error"] = {"code": _CANCELLED, "message": "Request cancelled"}
    else:
        found["result"] = wire_result(task.result(), version)
    return msgspec.json.encode(found)
