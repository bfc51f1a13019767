"""A session that a server before 2026 has forgotten is begun anew, once for all requests that found out."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from luthier.clock import Deadline
from luthier.errors import ConnectError, ConnectionLostError, HttpError, ProtocolError, WireError
from luthier.wire.http import facts
from luthier.wire.http.bodies import is_result
from luthier.wire.http.facts import Asked
from luthier.wire.http.sse import STREAM, Event, EventParser
from luthier.wire.transport import Outgoing

if TYPE_CHECKING:
    from collections.abc import Callable

    from luthier.clock import Clock
    from luthier.wire.http.client import Answer
    from luthier.wire.http.requests import Requests
    from luthier.wire.http.streams import Streams
    from luthier.wire.http.target import HttpTarget

INITIALIZED = "notifications/initialized"
_NOTICE = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
_BEGIN = Asked(phase="handshake", method="initialize")
_CHANGED = b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'


class Renewal:
    """`first` is how the session was begun, `version` what was settled on.

    `on_renewed` is told when there is a new one.
    """

    def __init__(
        self,
        requests: Requests,
        streams: Streams,
        target: HttpTarget,
        clock: Clock,
        on_renewed: Callable[[], None],
    ) -> None:
        self.first: Outgoing | None = None
        self.version = ""
        self._requests = requests
        self._streams = streams
        self._target = target
        self._clock = clock
        self._on_renewed = on_renewed
        self._task: asyncio.Task[None] | None = None
        self._waiting: set[int] = set()  # requests that wait for the new session

    @property
    def task(self) -> asyncio.Task[None] | None:
        """What is under way, if anything is."""
        return self._task

    async def of(self, session: str, id: int) -> None:
        """Return when there is a session that is not that one. One request for all who wait."""
        if self._requests.session != session:
            return
        self._waiting.add(id)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._renew())
        await asyncio.shield(self._task)

    async def _renew(self) -> None:
        """Begin a new session. Where that cannot be, all who wait fail, having had no effect."""
        try:
            async with Deadline(self._clock, self._target.timeout):
                await self._begin_anew()
        except (WireError, TimeoutError) as error:
            self._lose(error)
        else:
            self._on_renewed()
            self._streams.receiver.response(None, _CHANGED)
        finally:
            self._task = None
            self._waiting.clear()

    async def _begin_anew(self) -> None:
        if self.first is None:
            raise facts.unreadable(self._target, _BEGIN, "the session was not begun here")
        answer = await self._requests.post(self.first)
        if not answer.ok:
            raise await answer.error()
        session = answer.headers.get("Mcp-Session-Id", "")
        await self._begun(answer)
        self._requests.session = session
        notice = Outgoing(data=_NOTICE, method=INITIALIZED, version=self.version)
        await (await self._requests.post(notice)).beginning()

    async def _begun(self, answer: Answer) -> None:
        """Read the answer to initialize, however it comes. Raises WireErrors."""
        if answer.kind != STREAM:
            if not is_result(await answer.read()):
                raise facts.unreadable(self._target, _BEGIN, "it is no result")
            return
        parser = EventParser(self._target.max_message_bytes)
        chunks = answer.chunks()
        try:
            async for chunk in chunks:
                for event in parser.feed(chunk):
                    if isinstance(event, Event) and is_result(event.data):
                        await self._streams.linger(chunks, answer)
                        return
        finally:
            await chunks.aclose()
        raise facts.cut_off(self._target, _BEGIN, "ended too early")

    def _lose(self, error: WireError | TimeoutError) -> None:
        reason = error.message if isinstance(error, WireError) else "it did not answer in time"
        lost = ConnectError(
            f"Server {self._target.server!r} forgot the session, and no new one could be begun: {reason}",
            server=self._target.server,
            phase="call",
            http=error if isinstance(error, HttpError) else None,
            hint=error.hint if isinstance(error, WireError) else "",
        )
        for id in self._waiting:
            self._streams.receiver.failed(id, lost)
        if isinstance(error, ProtocolError) or (isinstance(error, HttpError) and error.status // 100 == 4):  # noqa: PLR2004
            ended = ConnectionLostError(lost.message, server=self._target.server, hint=lost.hint)
            self._streams.receiver.ended(
                ended
            )  # another kind of server stands there now: it must be met anew
