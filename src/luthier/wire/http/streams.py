"""Streams of events as answers: read to the answer, and resumed where they break off before it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from luthier.clock import sleep
from luthier.errors import ConnectionLostError, HttpError, WireError
from luthier.wire.era import MODERN_VERSIONS
from luthier.wire.frame import Oversized
from luthier.wire.http import facts
from luthier.wire.http.bodies import is_message
from luthier.wire.http.facts import asked_for
from luthier.wire.http.sse import STREAM, Event, EventParser

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from luthier.clock import Clock
    from luthier.wire.http.client import Answer
    from luthier.wire.http.requests import Requests
    from luthier.wire.http.target import HttpTarget
    from luthier.wire.transport import Outgoing, Receiver

LINGER = 0.5
"""Seconds that a stream may go on after its answer, so that its connection can be used again."""

RETRY = 1.0
"""Seconds before a stream that broke is asked for again, where the server has not said."""

LONGEST_RETRY = 30.0
RESUMES = 5
"""Times in a row that a stream is resumed without anything new in it."""


class Streams:
    """Reads the streams of one server and hands on to `receiver` what is in them."""

    def __init__(self, requests: Requests, target: HttpTarget, clock: Clock) -> None:
        self.receiver: Receiver
        self._requests = requests
        self._target = target
        self._clock = clock

    async def answered(self, message: Outgoing, answer: Answer) -> bool:
        """Read the stream until it answers. Where it breaks off before that, it is resumed if it can be."""
        parser = EventParser(self._target.max_message_bytes)
        reason = "ended before the answer was there"
        try:
            if await self.read(answer, parser, message):
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
                answer = await self._requests.get(message.version, before, message.headers)
                if not answer.ok or answer.kind != STREAM:
                    answer.drop()
                    break
                parser = EventParser(self._target.max_message_bytes, before)
                parser.retry = retry
                if await self.read(answer, parser, message):
                    return True
            except HttpError:
                break
            except WireError:
                continue
            finally:
                if parser.last_id != before:
                    tries = 0
        raise facts.cut_off(self._target, asked_for(message), "broke off and could not be resumed")

    async def read(self, answer: Answer, parser: EventParser, asked: Outgoing | None) -> bool:
        """Hand on all events of a stream; whether the request is settled by them. None: until it ends."""
        chunks = answer.chunks()
        settled = False
        try:
            async for chunk in chunks:
                for event in parser.feed(chunk):
                    settled = self._event(event, asked) or settled
                if settled and asked is not None:
                    await self.linger(chunks, answer)
                    return True
                if parser.overflowing and asked is not None:
                    return self._too_large(asked)  # it may have no end
            last = parser.end()
            if last is not None and (isinstance(last, Oversized) or is_message(last.data)):
                settled = self._event(last, asked)
            return settled
        finally:
            await chunks.aclose()

    def _too_large(self, asked: Outgoing) -> bool:
        if asked.id is not None:
            self.receiver.failed(asked.id, facts.too_large(self._target, asked_for(asked)))
        return True

    def _event(self, event: Event | Oversized, asked: Outgoing | None) -> bool:
        if isinstance(event, Oversized):
            if asked is not None:
                return self._too_large(asked)
            self.receiver.oversized(event.head, event.tail, event.size)
            return False
        if event.name not in ("", "message") and b'"jsonrpc"' not in event.data:
            return False
        return self.receiver.response(None if asked is None else asked.id, event.data)

    async def linger(self, chunks: AsyncGenerator[bytes, None], answer: Answer) -> None:
        """Let a stream that has answered come to its end, briefly."""
        timer = self._clock.call_later(LINGER, answer.drop)
        try:
            async for _ in chunks:
                pass
        except WireError:
            pass
        finally:
            timer.cancel()


class Standing:
    """The stream in which a server of the old era says what it has to say of its own accord."""

    def __init__(self, requests: Requests, streams: Streams, target: HttpTarget, clock: Clock) -> None:
        self.open = False
        self._requests = requests
        self._streams = streams
        self._target = target
        self._clock = clock

    async def follow(self, version: str) -> None:
        """Read it, and what comes after it when it breaks off, as long as the session is this one."""
        parser = EventParser(self._target.max_message_bytes)
        session = self._requests.session
        wait = RETRY
        try:
            while self._requests.session == session:
                before = parser.last_id
                try:
                    answer = await self._requests.get(version, before)
                    if not answer.ok or answer.kind != STREAM:
                        answer.drop()
                        return  # most servers have none
                    self.open = True
                    await self._streams.read(answer, parser, None)
                except HttpError:
                    return
                except WireError:
                    pass
                self.open = False
                wait = RETRY if parser.last_id != before else min(2 * wait, LONGEST_RETRY)
                pause = wait if parser.retry is None else max(parser.retry, wait - RETRY)
                parser = EventParser(self._target.max_message_bytes, parser.last_id)
                await sleep(self._clock, min(pause, LONGEST_RETRY))
        finally:
            self.open = False
