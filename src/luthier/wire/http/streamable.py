"""Streamable HTTP, of both eras: every message is a POST of its own, its answer the response to it.

Modern requests stand alone. Before 2026 a server may keep a session: its id is sent along, one that it
has forgotten is begun anew, once for all requests that found out together, and a standing stream brings what
the server says of its own accord.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from luthier.clock import Deadline
from luthier.errors import WireError
from luthier.wire.era import HANDSHAKE_VERSIONS
from luthier.wire.http import facts
from luthier.wire.http.bodies import beginning, is_error, is_message
from luthier.wire.http.facts import asked_for
from luthier.wire.http.renewal import INITIALIZED, Renewal
from luthier.wire.http.requests import Requests
from luthier.wire.http.sse import STREAM
from luthier.wire.http.streams import Standing, Streams

if TYPE_CHECKING:
    from collections.abc import Callable

    from luthier.clock import Clock
    from luthier.wire.http.client import Answer, HttpClient
    from luthier.wire.http.target import HttpTarget
    from luthier.wire.transport import Outgoing, Receiver

NOTICE = 10.0
"""Seconds for a notification to be taken, and for what came before it to be waited for."""

CLOSING = 2.0
"""Seconds for everything that is under way to end when the transport is closed."""

_SPEAKS_FOR_ITSELF = frozenset({401, 403, 407, 408, 429})


class StreamableTransport:
    """A transport that is a URL. It ends only when it is closed, or when a session cannot be begun anew."""

    stderr_tail = ""
    congested = False

    def __init__(
        self,
        client: HttpClient,
        target: HttpTarget,
        clock: Clock,
        on_noise: Callable[[str], None] | None = None,
    ) -> None:
        self._target = target
        self._clock = clock
        self._on_noise = on_noise
        self._requests = Requests(client, target)
        self._streams = Streams(self._requests, target, clock)
        self._standing = Standing(self._requests, self._streams, target, clock)
        self._renewal = Renewal(self._requests, self._streams, target, clock, self._renewed)
        self._tasks: dict[int, asyncio.Task[None]] = {}  # by the id of the request; others below zero
        self._others = 0
        self._initialized: asyncio.Task[None] | None = None  # the notice, while it is on its way
        self._closed = False
        self._receiver: Receiver

    async def start(self, receiver: Receiver) -> None:
        self._receiver = self._streams.receiver = receiver

    def send(self, message: Outgoing) -> None:
        if self._closed:
            return
        key = message.id
        if key is None:
            self._others -= 1
            key = self._others
        task = asyncio.get_running_loop().create_task(self._carry(message, key))
        self._tasks[key] = task
        if message.method == INITIALIZED:
            self._initialized, self._renewal.version = task, message.version

    def cancel(self, id: int, notice: Outgoing, /) -> None:
        task = self._tasks.pop(id, None)
        if task is not None:
            task.cancel()
            if notice.version in HANDSHAKE_VERSIONS:
                self.send(notice)

    async def drain(self) -> None:
        """Nothing is ever queued here."""

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        tasks = set(self._tasks.values())
        if self._renewal.task is not None:
            tasks.add(self._renewal.task)
        for task in tasks:
            task.cancel()
        try:
            async with Deadline(self._clock, CLOSING):
                if tasks:
                    await asyncio.wait(tasks)
                if self._requests.session:
                    await self._requests.end_session(self._renewal.version)
        except (TimeoutError, WireError):
            self._noise("the session was not ended properly")

    # One message.

    async def _carry(self, message: Outgoing, key: int) -> None:
        id = message.id
        try:
            if id is None:
                await self._tell(message)
            else:
                await self._ask(message, id)
        except WireError as error:
            if id is None:
                self._noise(f"{message.method or 'an answer'} was not taken: {error.message}")
            else:
                self._receiver.failed(id, error)
        except Exception as error:  # noqa: BLE001  (whatever happens, nobody may wait in vain)
            self._noise(f"{message.method} failed in an unforeseen way: {error!r}")
            if id is not None:
                self._receiver.failed(
                    id, facts.cut_off(self._target, asked_for(message), f"failed: {error!r}")
                )
        finally:
            self._tasks.pop(key, None)

    async def _tell(self, message: Outgoing) -> None:
        try:
            async with Deadline(self._clock, NOTICE):
                answer = await self._requests.post(message)
                if not answer.ok:
                    raise await answer.error()
                await answer.beginning()
        except TimeoutError:
            self._noise(f"{message.method} was not taken within {NOTICE:g} s")
        if message.method == INITIALIZED:
            self._initialized = None
            self._listen()

    async def _ask(self, message: Outgoing, id: int) -> None:
        if self._initialized is not None:
            await asyncio.wait({self._initialized})  # bounded, as every notice is
        if message.method == "initialize":
            self._renewal.first = message
        session = self._requests.session
        answer = await self._requests.post(message)
        if session and answer.status in (400, 404) and message.version in HANDSHAKE_VERSIONS:
            body = await answer.beginning()
            if answer.status == 400 and b"session" not in body.lower():  # noqa: PLR2004
                self._refused(id, answer, body)
                return
            # The server knows no such session, so it has not acted on this: it may be sent again.
            await self._renewal.of(session, id)
            answer = await self._requests.post(message)
        if message.method == "initialize" and answer.ok:
            self._requests.session = answer.headers.get("Mcp-Session-Id", "")
        if not answer.ok:
            self._refused(id, answer, await answer.beginning(self._target.max_message_bytes))
        elif await self._answered(message, id, answer):
            return
        else:
            raise facts.unreadable(self._target, asked_for(message), "it holds no answer")

    def _refused(self, id: int, answer: Answer, body: bytes) -> None:
        """No success: an error of the protocol where the body is one, else the status as it is."""
        rejected = answer.status // 100 == 4 and answer.status not in _SPEAKS_FOR_ITSELF  # noqa: PLR2004
        if rejected and is_error(body) and self._receiver.response(id, body):
            return
        raise answer.error_of(body)

    async def _answered(self, message: Outgoing, id: int, answer: Answer) -> bool:
        """Whether the response settles the request, or another way will."""
        if answer.kind == STREAM:
            return await self._streams.answered(message, answer)
        body = await answer.read()
        if not body.strip():
            if self._standing.open and answer.status == 202:  # noqa: PLR2004
                return True  # its answer comes in the standing stream
            raise facts.unreadable(
                self._target, asked_for(message), f"HTTP {answer.status} without an answer"
            )
        if facts.is_html(answer.kind, body):
            raise facts.page_instead(self._target, asked_for(message), body)
        if not self._receiver.response(id, body):
            what = "it holds no answer" if is_message(body) else f"it is not JSON: {beginning(body)}"
            raise facts.unreadable(self._target, asked_for(message), what, hint="Check `url` of that server.")
        return True

    def _renewed(self) -> None:
        self._noise("the server had forgotten the session: a new one was begun")
        self._listen()

    def _listen(self) -> None:
        """Open the standing stream, where the server has one."""
        if not self._closed:
            self._others -= 1
            key = self._others
            self._tasks[key] = asyncio.get_running_loop().create_task(self._stand(key))

    async def _stand(self, key: int) -> None:
        try:
            await self._standing.follow(self._renewal.version)
        finally:
            self._tasks.pop(key, None)

    def _noise(self, text: str) -> None:
        if self._on_noise is not None and not self._closed:
            self._on_noise(text)
