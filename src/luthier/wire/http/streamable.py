"""Streamable HTTP, of both eras: every message is a POST of its own, its answer the response to it.

Modern requests stand alone. Before 2026 a server may keep a session: its id is sent along, one that it
has forgotten is begun anew, once for all requests that found out together, and a standing stream brings what
the server says of its own accord.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from msgspec import UNSET

from luthier.clock import Deadline, sleep
from luthier.errors import ConnectError, ConnectionLostError, HttpError, ProtocolError, WireError
from luthier.text import one_line
from luthier.wire.codec import REFUSED, decode
from luthier.wire.era import HANDSHAKE_VERSIONS, LATEST_MODERN, MODERN_VERSIONS
from luthier.wire.frame import Oversized
from luthier.wire.http import facts
from luthier.wire.http.facts import Asked, asked_for
from luthier.wire.http.sse import Event, EventParser
from luthier.wire.mirrors import header_value
from luthier.wire.transport import Outgoing

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping

    from luthier.clock import Clock
    from luthier.wire.http.client import Answer, HttpClient
    from luthier.wire.http.target import HttpTarget
    from luthier.wire.transport import Receiver

NOTICE = 10.0
"""Seconds for a notification to be taken, and for what came before it to be waited for."""

CLOSING = 2.0
"""Seconds for everything that is under way to end when the transport is closed."""

LINGER = 0.5
"""Seconds that a stream may go on after its answer, so that its connection can be used again."""

RETRY = 1.0
"""Seconds before a stream that broke is asked for again, where the server has not said."""

LONGEST_RETRY = 30.0
RESUMES = 5
"""Times in a row that a stream is resumed without anything new in it."""

STREAM = "text/event-stream"
_POST = {"Content-Type": "application/json", "Accept": f"application/json, {STREAM}"}
_OWN = frozenset(
    {
        "content-type",
        "accept",
        "content-length",
        "mcp-session-id",
        "mcp-protocol-version",
        "mcp-method",
        "mcp-name",
    }
)
_INITIALIZED = "notifications/initialized"
_INITIALIZED_NOTICE = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
_BEGIN = Asked(phase="handshake", method="initialize")
_CHANGED = b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'
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
        self._client = client
        self._target = target
        self._clock = clock
        self._on_noise = on_noise
        self._custom = {name: value for name, value in target.headers.items() if name.lower() not in _OWN}
        self._headers: dict[tuple[str, str, str], dict[str, str]] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}  # by the id of the request; others below zero
        self._others = 0
        self._receiver: Receiver
        self._closed = False
        self._session = ""
        self._initialize: Outgoing | None = None
        self._version = ""
        self._initialized: asyncio.Task[None] | None = None  # the notice, while it is on its way
        self._renewing: asyncio.Task[None] | None = None
        self._waiting: set[int] = set()  # requests that wait for the new session
        self._listening = False  # whether the standing stream is open

    async def start(self, receiver: Receiver) -> None:
        self._receiver = receiver

    def send(self, message: Outgoing) -> None:
        if self._closed:
            return
        key = message.id
        if key is None:
            self._others -= 1
            key = self._others
        task = asyncio.get_running_loop().create_task(self._carry(message, key))
        self._tasks[key] = task
        if message.method == _INITIALIZED:
            self._initialized, self._version = task, message.version

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
        if self._renewing is not None:
            tasks.add(self._renewing)
        for task in tasks:
            task.cancel()
        try:
            async with Deadline(self._clock, CLOSING):
                if tasks:
                    await asyncio.wait(tasks)
                if self._session:
                    await self._end_session()
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
                answer = await self._post(message)
                if not answer.ok:
                    raise await answer.error()
                await answer.beginning()
        except TimeoutError:
            self._noise(f"{message.method} was not taken within {NOTICE:g} s")
        if message.method == _INITIALIZED:
            self._initialized = None
            self._listen()

    async def _ask(self, message: Outgoing, id: int) -> None:
        if self._initialized is not None:
            await asyncio.wait({self._initialized})  # bounded, as every notice is
        if message.method == "initialize":
            self._initialize = message
        session = self._session
        answer = await self._post(message)
        if session and answer.status in (400, 404) and message.version in HANDSHAKE_VERSIONS:
            body = await answer.beginning()
            if answer.status == 400 and b"session" not in body.lower():  # noqa: PLR2004
                self._refused(id, answer, body)
                return
            # The server knows no such session, so it has not acted on this: it may be sent again.
            await self._renewed(session, id)
            answer = await self._post(message)
        if message.method == "initialize" and answer.ok:
            self._session = answer.headers.get("Mcp-Session-Id", "")
            self._headers.clear()
        if not answer.ok:
            self._refused(id, answer, await answer.beginning(self._target.max_message_bytes))
        elif await self._answered(message, id, answer):
            return
        else:
            raise facts.unreadable(self._target, asked_for(message), "it holds no answer")

    def _refused(self, id: int, answer: Answer, body: bytes) -> None:
        """No success: an error of the protocol where the body is one, else the status as it is."""
        rejected = answer.status // 100 == 4 and answer.status not in _SPEAKS_FOR_ITSELF  # noqa: PLR2004
        if rejected and _is_error(body) and self._receiver.response(id, body):
            return
        raise answer.error_of(body)

    async def _answered(self, message: Outgoing, id: int, answer: Answer) -> bool:
        """Whether the response settles the request, or another way will."""
        if answer.kind == STREAM:
            return await self._streamed(message, answer)
        body = await answer.read()
        if not body.strip():
            if self._listening and answer.status == 202:  # noqa: PLR2004
                return True  # its answer comes in the standing stream
            raise facts.unreadable(
                self._target, asked_for(message), f"HTTP {answer.status} without an answer"
            )
        if facts.is_html(answer.kind, body):
            raise facts.page_instead(self._target, asked_for(message), body)
        if not self._receiver.response(id, body):
            what = "it holds no answer" if _is_message(body) else f"it is not JSON: {_beginning(body)}"
            raise facts.unreadable(self._target, asked_for(message), what, hint="Check `url` of that server.")
        return True

    async def _post(self, message: Outgoing) -> Answer:
        return await self._client.open(
            self._target,
            asked_for(message),
            "POST",
            self._target.url,
            self._headers_of(message),
            message.data,
        )

    def _headers_of(self, message: Outgoing) -> Mapping[str, str]:
        version = message.version
        if not version and message.method == "server/discover":
            version = LATEST_MODERN
        modern = version in MODERN_VERSIONS
        key = (version, message.method, message.name) if modern else (version, "", "")
        headers = self._headers.get(key)
        if headers is None:
            headers = {**self._custom, **_POST}
            if version:
                headers["MCP-Protocol-Version"] = version
            if modern:
                headers["Mcp-Method"] = message.method
                if message.name:
                    headers["Mcp-Name"] = header_value(message.name)
            elif self._session and message.method != "initialize":
                headers["Mcp-Session-Id"] = self._session
            if message.method != "initialize":
                if len(self._headers) >= 1024:  # noqa: PLR2004
                    self._headers.clear()
                self._headers[key] = headers
        return {**headers, **message.mirrored} if message.mirrored else headers

    # Streams.

    async def _streamed(self, message: Outgoing, answer: Answer) -> bool:
        """Read the stream until it answers. Where it breaks off before that, it is resumed if it can be."""
        parser = EventParser(self._target.max_message_bytes)
        reason = "ended before the answer was there"
        try:
            if await self._read(answer, parser, message):
                return True
        except ConnectionLostError as error:
            reason = "broke off"
            if parser.last_id is None or message.version in MODERN_VERSIONS:
                raise facts.cut_off(self._target, asked_for(message), reason) from error
        if parser.last_id is None or message.version in MODERN_VERSIONS:
            raise facts.cut_off(self._target, asked_for(message), reason)
        return await self._resumed(message, parser)

    async def _resumed(self, message: Outgoing, parser: EventParser) -> bool:
        """Ask for what comes after the last event that came, until the answer is among it."""
        tries = 0
        while tries < RESUMES:
            tries += 1
            await sleep(self._clock, min(RETRY if parser.retry is None else parser.retry, LONGEST_RETRY))
            before, retry = parser.last_id, parser.retry
            try:
                answer = await self._get(message.version, before)
                if not answer.ok or answer.kind != STREAM:
                    answer.drop()
                    break
                parser = EventParser(self._target.max_message_bytes, before)
                parser.retry = retry
                if await self._read(answer, parser, message):
                    return True
            except HttpError:
                break
            except WireError:
                continue
            finally:
                if parser.last_id != before:
                    tries = 0
        raise facts.cut_off(self._target, asked_for(message), "broke off and could not be resumed")

    async def _read(self, answer: Answer, parser: EventParser, asked: Outgoing | None) -> bool:
        """Hand on all events of a stream; whether the request is settled by them. None: until it ends."""
        chunks = answer.chunks()
        settled = False
        try:
            async for chunk in chunks:
                for event in parser.feed(chunk):
                    settled = self._event(event, asked) or settled
                if settled and asked is not None:
                    await self._linger(chunks, answer)
                    return True
                if parser.overflowing and asked is not None:
                    return self._too_large(asked)  # it may have no end
            last = parser.end()
            if last is not None and (isinstance(last, Oversized) or _is_message(last.data)):
                settled = self._event(last, asked)
            return settled
        finally:
            await chunks.aclose()

    def _too_large(self, asked: Outgoing) -> bool:
        if asked.id is not None:
            self._receiver.failed(asked.id, facts.too_large(self._target, asked_for(asked)))
        return True

    def _event(self, event: Event | Oversized, asked: Outgoing | None) -> bool:
        if isinstance(event, Oversized):
            if asked is not None:
                return self._too_large(asked)
            self._receiver.oversized(event.head, event.tail, event.size)
            return False
        if event.name not in ("", "message") and b'"jsonrpc"' not in event.data:
            return False
        return self._receiver.response(None if asked is None else asked.id, event.data)

    async def _linger(self, chunks: AsyncGenerator[bytes, None], answer: Answer) -> None:
        """Let a stream that has answered come to its end, briefly."""
        timer = self._clock.call_later(LINGER, answer.drop)
        try:
            async for _ in chunks:
                pass
        except WireError:
            pass
        finally:
            timer.cancel()

    async def _get(self, version: str, last_id: str | None) -> Answer:
        headers = {**self._custom, "Accept": STREAM}
        if version:
            headers["MCP-Protocol-Version"] = version
        if self._session:
            headers["Mcp-Session-Id"] = self._session
        if last_id is not None:
            headers["Last-Event-ID"] = last_id
        asked = Asked(phase="list", method="the request for its stream")
        return await self._client.open(self._target, asked, "GET", self._target.url, headers, b"")

    def _listen(self) -> None:
        """Open the standing stream, where the server has one."""
        if not self._closed:
            self._others -= 1
            key = self._others
            self._tasks[key] = asyncio.get_running_loop().create_task(self._stand(key, self._session))

    async def _stand(self, key: int, session: str) -> None:
        parser = EventParser(self._target.max_message_bytes)
        wait = RETRY
        try:
            while self._session == session and not self._closed:
                before = parser.last_id
                try:
                    answer = await self._get(self._version, before)
                    if not answer.ok or answer.kind != STREAM:
                        answer.drop()
                        return  # most servers have none
                    self._listening = True
                    await self._read(answer, parser, None)
                except HttpError:
                    return
                except WireError:
                    pass
                self._listening = False
                wait = RETRY if parser.last_id != before else min(2 * wait, LONGEST_RETRY)
                pause = wait if parser.retry is None else max(parser.retry, wait - RETRY)
                parser = EventParser(self._target.max_message_bytes, parser.last_id)
                await sleep(self._clock, min(pause, LONGEST_RETRY))
        finally:
            self._listening = False
            self._tasks.pop(key, None)

    # The session, before 2026.

    async def _renewed(self, session: str, id: int) -> None:
        """Return when there is a session that is not that one. One request for all who wait."""
        if self._session != session:
            return
        self._waiting.add(id)
        if self._renewing is None:
            self._renewing = asyncio.get_running_loop().create_task(self._renew())
        await asyncio.shield(self._renewing)

    async def _renew(self) -> None:
        """Begin a new session. Where that cannot be, all who wait fail, having had no effect."""
        try:
            async with Deadline(self._clock, self._target.timeout):
                await self._begin_anew()
        except (WireError, TimeoutError) as error:
            self._lose(error)
        else:
            self._noise("the server had forgotten the session: a new one was begun")
            self._listen()
            self._receiver.response(None, _CHANGED)
        finally:
            self._renewing = None
            self._waiting.clear()

    async def _begin_anew(self) -> None:
        first = self._initialize
        if first is None:
            raise facts.unreadable(self._target, _BEGIN, "the session was not begun here")
        answer = await self._post(first)
        if not answer.ok:
            raise await answer.error()
        session = answer.headers.get("Mcp-Session-Id", "")
        await self._begun(answer)
        self._session = session
        self._headers.clear()
        notice = Outgoing(data=_INITIALIZED_NOTICE, method=_INITIALIZED, version=self._version)
        await (await self._post(notice)).beginning()

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
            self._receiver.failed(id, lost)
        if isinstance(error, ProtocolError) or (isinstance(error, HttpError) and error.status // 100 == 4):  # noqa: PLR2004
            ended = ConnectionLostError(lost.message, server=self._target.server, hint=lost.hint)
            self._receiver.ended(ended)  # another kind of server stands there now: it must be met anew

    async def _begun(self, answer: Answer) -> None:
        """Read the answer to initialize, however it comes. Raises WireErrors."""
        if answer.kind != STREAM:
            if not _is_result(await answer.read()):
                raise facts.unreadable(self._target, _BEGIN, "it is no result")
            return
        parser = EventParser(self._target.max_message_bytes)
        chunks = answer.chunks()
        try:
            async for chunk in chunks:
                for event in parser.feed(chunk):
                    if isinstance(event, Event) and _is_result(event.data):
                        await self._linger(chunks, answer)
                        return
        finally:
            await chunks.aclose()
        raise facts.cut_off(self._target, _BEGIN, "ended too early")

    async def _end_session(self) -> None:
        headers = {**self._custom, "Mcp-Session-Id": self._session}
        if self._version:
            headers["MCP-Protocol-Version"] = self._version
        asked = Asked(phase="close", method="the end of the session")
        answer = await self._client.open(self._target, asked, "DELETE", self._target.url, headers, b"")
        answer.drop()

    def _noise(self, text: str) -> None:
        if self._on_noise is not None and not self._closed:
            self._on_noise(text)


def _beginning(body: bytes) -> str:
    return one_line(body[:400].decode(errors="replace"), 100)


def _is_message(data: bytes) -> bool:
    try:
        decode(data)
    except REFUSED:
        return False
    return True


def _is_error(body: bytes) -> bool:
    """Whether a body is an error of the protocol."""
    try:
        error = decode(body).error
    except REFUSED:
        return False
    return isinstance(error, dict) and isinstance(error.get("code"), int)


def _is_result(body: bytes) -> bool:
    try:
        return decode(body).result is not UNSET
    except REFUSED:
        return False
