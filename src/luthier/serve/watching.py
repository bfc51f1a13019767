"""Who is told of changes: of the tools, of the prompts, and of files that are watched, in either era.

Files are looked at again and again while somebody wants to know, and only then.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from luthier.clock import Clock, SystemClock, sleep
from luthier.errors import NotFoundError
from luthier.redaction import logger
from luthier.serve.connections import connection_of, state_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from mcp.server import Server, ServerRequestContext
    from mcp.server.connection import Connection
    from mcp.server.subscriptions import ListenHandler, ServerEvent
    from mcp_types import (
        EmptyResult,
        NotificationParams,
        SubscribeRequestParams,
        SubscriptionsListenRequestParams,
        SubscriptionsListenResult,
        UnsubscribeRequestParams,
    )

    Context = ServerRequestContext[Any, Any]

EVERY = 0.25
"""Seconds between two looks."""

MOST_WATCHED = 256
"""Addresses that one client may watch at once."""

_WATCHED = "luthier.watched"
_log = logger("luthier.serve")


class Watching:
    """Looks at `lists`, each by the event of its change, and at what `stamp` says of an address.

    `stamp(client, address)` raises NotFoundError where there is no such thing for that client.
    """

    def __init__(
        self,
        lists: Mapping[Any, Callable[[], object]],
        stamp: Callable[[str, str], object],
        client_of: Callable[[Any], str],
        clock: Clock | None = None,
    ) -> None:
        from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler

        self._lists = lists
        self._stamp = stamp
        self._client_of = client_of
        self._clock = clock or SystemClock()
        self._bus = InMemorySubscriptionBus()
        self._listening: ListenHandler = ListenHandler(self._bus)
        self._watched: dict[tuple[str, str], int] = {}
        self._seen: dict[Any, object] = {}
        self._listeners = 0
        self._looking: asyncio.Task[None] | None = None

    def handle(self, server: Server[Any]) -> None:
        """Have the server answer what this is about."""
        from mcp_types import (
            NotificationParams,
            SubscribeRequestParams,
            SubscriptionsListenRequestParams,
            UnsubscribeRequestParams,
        )

        server.add_request_handler("subscriptions/listen", SubscriptionsListenRequestParams, self._listen)
        server.add_request_handler("resources/subscribe", SubscribeRequestParams, self._subscribe)
        server.add_request_handler("resources/unsubscribe", UnsubscribeRequestParams, self._unsubscribe)
        server.add_notification_handler("notifications/initialized", NotificationParams, self._initialized)

    def close(self) -> None:
        """End the streams of those who listen, with the answer that says so."""
        self._listening.close()

    # Since 2026-07-28: a request whose answer is what happens

    async def _listen(
        self, context: Context, params: SubscriptionsListenRequestParams
    ) -> SubscriptionsListenResult:
        client = self._client_of(context.request)
        asked = params.notifications.resource_subscriptions or []
        uris = [uri for uri in asked if self._is_there(client, uri)][:MOST_WATCHED]
        wanted = params.notifications.model_copy(update={"resource_subscriptions": uris or None})
        with self._heard(client, uris):
            return await self._listening(context, params.model_copy(update={"notifications": wanted}))

    # Before: a session that is told by itself

    async def _initialized(self, context: Context, _: NotificationParams) -> None:
        connection = connection_of(context)
        listener = _Listener(connection, self._client_of(context.request))
        heard = self._heard(listener.client, ())
        heard.__enter__()
        unsubscribe = self._bus.subscribe(listener.hear)

        def over() -> None:
            unsubscribe()
            for uri in listener.watched():
                self._leave(listener.client, uri)
            heard.__exit__(None, None, None)

        connection.exit_stack.callback(over)

    async def _subscribe(self, context: Context, params: SubscribeRequestParams) -> EmptyResult:
        from mcp.shared.exceptions import MCPError
        from mcp_types import INTERNAL_ERROR, EmptyResult

        uri, client = str(params.uri), self._client_of(context.request)
        if not self._is_there(client, uri):
            raise MCPError(-32002, "Resource not found", {"uri": uri})
        watched = state_of(context).setdefault(_WATCHED, set())
        if len(watched) >= MOST_WATCHED:
            raise MCPError(INTERNAL_ERROR, f"No more than {MOST_WATCHED} resources can be watched at once")
        if uri not in watched:
            watched.add(uri)
            self._join(client, uri)
        return EmptyResult()

    async def _unsubscribe(self, context: Context, params: UnsubscribeRequestParams) -> EmptyResult:
        from mcp_types import EmptyResult

        uri, watched = str(params.uri), state_of(context).get(_WATCHED, set())
        if uri in watched:
            watched.discard(uri)
            self._leave(self._client_of(context.request), uri)
        return EmptyResult()

    # Looking

    @contextmanager
    def _heard(self, client: str, uris: Iterable[str]) -> Iterator[None]:
        """Look while somebody listens."""
        for uri in uris:
            self._join(client, uri)
        self._listeners += 1
        if self._looking is None:
            self._look()
            self._looking = asyncio.create_task(self._keep_looking())
        try:
            yield
        finally:
            self._listeners -= 1
            for uri in uris:
                self._leave(client, uri)
            if not self._listeners and self._looking is not None:
                self._looking.cancel()
                self._looking = None
                self._seen.clear()

    def _join(self, client: str, uri: str) -> None:
        key = client, uri
        self._watched[key] = self._watched.get(key, 0) + 1
        self._seen.setdefault(key, self._stamped(client, uri))

    def _leave(self, client: str, uri: str) -> None:
        key = client, uri
        self._watched[key] -= 1
        if not self._watched[key]:
            del self._watched[key]
            self._seen.pop(key, None)

    async def _keep_looking(self) -> None:
        while True:
            await sleep(self._clock, EVERY)
            try:
                changed = self._look()
            except Exception:  # noqa: BLE001  (what cannot be looked at now is looked at again)
                _log.exception("what is watched could not be looked at")
                continue
            for event in changed:
                await self._bus.publish(event)

    def _look(self) -> list[ServerEvent]:
        """What has changed since the last look."""
        from mcp.server.subscriptions import ResourceUpdated

        found: dict[ServerEvent, None] = {}
        for kind, version in self._lists.items():
            if self._is_new(kind, version()):
                found[kind] = None
        for client, uri in list(self._watched):
            if self._is_new((client, uri), self._stamped(client, uri)):
                found[ResourceUpdated(uri=uri)] = None
        return list(found)

    def _is_new(self, key: Any, version: object) -> bool:
        known = key in self._seen and self._seen[key] == version
        first = key not in self._seen
        self._seen[key] = version
        return not known and not first

    def _is_there(self, client: str, uri: str) -> bool:
        try:
            self._stamp(client, uri)
        except NotFoundError:
            return False
        return True

    def _stamped(self, client: str, uri: str) -> object:
        try:
            return self._stamp(client, uri)
        except NotFoundError:
            return None


class _Listener:
    """A session of the old kind: told of lists, and of the addresses that it watches."""

    def __init__(self, connection: Connection, client: str) -> None:
        self.client = client
        self._connection = connection
        self._waiting: dict[ServerEvent, None] = {}
        self._telling: asyncio.Task[None] | None = None

    def watched(self) -> set[str]:
        found: set[str] = self._connection.state.get(_WATCHED, set())
        return found

    def hear(self, event: ServerEvent) -> None:
        """Have it told; what waits to be told is told once."""
        from mcp.server.subscriptions import ResourceUpdated

        if isinstance(event, ResourceUpdated) and event.uri not in self.watched():
            return
        self._waiting[event] = None
        if self._telling is None:
            self._telling = asyncio.create_task(self._tell())

    async def _tell(self) -> None:
        from mcp.shared.subscriptions import event_to_notification

        try:
            while self._waiting:
                event = next(iter(self._waiting))
                del self._waiting[event]
                note = event_to_notification(event, {}).model_dump(
                    mode="json", by_alias=True, exclude_none=True
                )
                await self._connection.notify(note["method"], note.get("params"))
        finally:
            self._telling = None
