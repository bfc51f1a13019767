"""HTTP with SSE, as of 2024-11-05: one stream brings everything, and messages are posted where it says."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from luthier.clock import Deadline
from luthier.errors import ConnectError, ConnectionLostError, WireError
from luthier.text import one_line
from luthier.wire.frame import Oversized
from luthier.wire.http import facts
from luthier.wire.http.facts import Asked, asked_for
from luthier.wire.http.sse import STREAM, Event, EventParser
from luthier.wire.http.streamable import CLOSING, NOTICE
from luthier.wire.http.target import endpoints

if TYPE_CHECKING:
    from collections.abc import Callable

    from luthier.clock import Clock
    from luthier.wire.http.client import Answer, HttpClient
    from luthier.wire.http.target import HttpTarget
    from luthier.wire.transport import Outgoing, Receiver

_OPEN = Asked(phase="handshake", method="the request for its stream")


class SseTransport:
    """A transport that is a stream. When that ends, the transport has ended."""

    stderr_tail = ""
    congested = False

    def __init__(
        self,
        client: HttpClient,
        target: HttpTarget,
        clock: Clock,
        on_noise: Callable[[str], None] | None = None,
    ) -> None:
        self._client = client
        self._target = target
        self._clock = clock
        self._on_noise = on_noise
        self._endpoints: tuple[str, ...] = ()  # where messages go: the first, until that proves wrong
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._others = 0
        self._reader: asyncio.Task[None] | None = None
        self._receiver: Receiver
        self._over = False

    async def start(self, receiver: Receiver) -> None:
        """Open the stream, and wait for it to say where messages go. Raises ConnectError."""
        self._receiver = receiver
        opened = asyncio.get_running_loop().create_future()
        self._reader = asyncio.get_running_loop().create_task(self._read(opened))
        try:
            error = await opened
        except asyncio.CancelledError:
            self._reader.cancel()
            raise
        if error is not None:
            raise _refused(self._target, error)

    def send(self, message: Outgoing) -> None:
        if self._over:
            return
        key = message.id
        if key is None:
            self._others -= 1
            key = self._others
        self._tasks[key] = asyncio.get_running_loop().create_task(self._carry(message, key))

    def cancel(self, id: int, notice: Outgoing, /) -> None:
        task = self._tasks.pop(id, None)
        if task is not None:
            task.cancel()
        self.send(notice)

    async def drain(self) -> None:
        """Nothing is ever queued here."""

    async def close(self) -> None:
        self._over = True
        tasks = set(self._tasks.values()) | ({self._reader} if self._reader is not None else set())
        for task in tasks:
            task.cancel()
        if not tasks:
            return
        try:
            async with Deadline(self._clock, CLOSING):
                await asyncio.wait(tasks)
        except TimeoutError:
            self._noise("the stream was not ended properly")

    # The stream

    async def _read(self, opened: asyncio.Future[WireError | None]) -> None:
        error: WireError
        try:
            headers = {**self._target.headers, "Accept": STREAM}
            answer = await self._client.open(self._target, _OPEN, "GET", self._target.url, headers, b"")
            await self._follow(answer, opened)
            error = facts.cut_off(self._target, _OPEN, "ended")
        except WireError as failure:
            error = failure
        except Exception as failure:  # noqa: BLE001  (whatever happens, nobody may wait in vain)
            error = facts.cut_off(self._target, _OPEN, f"failed: {failure!r}")
        if not opened.done():
            opened.set_result(error)
        elif not self._over:
            self._over = True
            self._receiver.ended(
                ConnectionLostError(
                    f"The stream of server {self._target.server!r} has ended.",
                    server=self._target.server,
                    hint=error.hint,
                )
            )

    async def _follow(self, answer: Answer, opened: asyncio.Future[WireError | None]) -> None:
        if not answer.ok:
            raise await answer.error()
        if answer.kind != STREAM:
            body = await answer.beginning()
            if facts.is_html(answer.kind, body):
                raise facts.page_instead(self._target, _OPEN, body)
            raise facts.unreadable(self._target, _OPEN, "it is no stream of events")
        parser = EventParser(self._target.max_message_bytes)
        chunks = answer.chunks()
        try:
            async for chunk in chunks:
                for event in parser.feed(chunk):
                    self._take(event, opened)
            last = parser.end()
            if last is not None:
                self._take(last, opened)
        finally:
            await chunks.aclose()

    def _take(self, event: Event | Oversized, opened: asyncio.Future[WireError | None]) -> None:
        if isinstance(event, Oversized):
            self._receiver.oversized(event.head, event.tail, event.size)
        elif event.name == "endpoint":
            named = event.data.decode(errors="replace")
            found = endpoints(self._target.url, named)
            if not found:
                said = f"it wants messages sent to another origin: {one_line(named, 200)}"
                raise facts.unreadable(self._target, _OPEN, said)
            self._endpoints = found
            if not opened.done():
                opened.set_result(None)
        elif event.name in ("", "message") or b'"jsonrpc"' in event.data:
            self._receiver.response(None, event.data)

    # Messages

    async def _carry(self, message: Outgoing, key: int) -> None:
        try:
            async with Deadline(self._clock, NOTICE if message.id is None else None):
                await self._post(message)
        except WireError as error:
            if message.id is None:
                self._noise(f"{message.method or 'an answer'} was not taken: {error.message}")
            else:
                self._receiver.failed(message.id, error)
        except TimeoutError:
            self._noise(f"{message.method or 'an answer'} was not taken within {NOTICE:g} s")
        except Exception as error:  # noqa: BLE001  (whatever happens, nobody may wait in vain)
            self._noise(f"{message.method} failed in an unforeseen way: {error!r}")
            if message.id is not None:
                lost = facts.cut_off(self._target, asked_for(message), f"failed: {error!r}")
                self._receiver.failed(message.id, lost)
        finally:
            self._tasks.pop(key, None)

    async def _post(self, message: Outgoing) -> None:
        target = self._target.given(message.headers)
        headers = {**target.headers, "Content-Type": "application/json"}
        if message.version:
            headers["MCP-Protocol-Version"] = message.version
        asked = asked_for(message)
        for url in self._endpoints:
            answer = await self._client.open(target, asked, "POST", url, headers, message.data)
            if answer.status in (404, 405) and url != self._endpoints[-1]:
                answer.drop()
                continue  # not taken there: a proxy may have hidden a part of the path
            self._endpoints = (url,)
            break
        if not answer.ok:
            raise await answer.error()
        body = await answer.read()
        if message.id is not None and body.lstrip().startswith(b"{"):
            self._receiver.response(message.id, body)  # some answer right here

    def _noise(self, text: str) -> None:
        if self._on_noise is not None and not self._over:
            self._on_noise(text)


def _refused(target: HttpTarget, error: WireError) -> ConnectError:
    if isinstance(error, ConnectError):
        return error
    return facts.no_session(target.server, error)
