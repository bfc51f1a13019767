"""The transports by HTTP by themselves: what is late is left, and what is closed stays closed."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from luthier.clock import FakeClock
from luthier.wire import Outgoing, Transport
from luthier.wire.http import HttpClient, OutgoingHttp
from luthier.wire.http.ladder import http_transport
from luthier.wire.http.streamable import CLOSING, NOTICE
from tests.wire.http.support import LEGACY, Answering, Asked, Site, bounded, legacy, target_of, until
from tests.wire.http.test_legacy_sse import Sse

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from luthier.errors import WireError
    from tests.wire.http.support import Handler

KINDS: list[Any] = ["http", "sse", "rest"]


class Ear:
    """A receiver that keeps what it is given."""

    def __init__(self) -> None:
        self.answers: list[Any] = []
        self.failures: list[tuple[int, WireError]] = []

    def message(self, data: bytes) -> None:
        self.response(None, data)

    def response(self, _id: int | None, data: bytes) -> bool:
        self.answers.append(msgspec.json.decode(data))
        return True

    def oversized(self, head: bytes, tail: bytes, size: int) -> None:
        raise AssertionError((head, tail, size))

    def failed(self, id: int, error: WireError) -> None:
        self.failures.append((id, error))

    def ended(self, error: WireError | None) -> None:
        raise AssertionError(error)


class Stubborn:
    """Credentials for a POST that never come, and do not notice that nobody waits for them."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.released = asyncio.Event()

    async def headers(self, request: OutgoingHttp) -> dict[str, str]:
        while request.method == "POST" and not self.released.is_set():
            self.asked.set()
            try:
                await self.released.wait()
            except asyncio.CancelledError:
                continue
        return {}

    async def challenged(self, *_: object) -> bool:
        return False

    def signing(self) -> None:
        return None


class Open:
    """One transport that has been started, and what it said."""

    def __init__(self, transport: Transport, clock: FakeClock, ear: Ear, noise: list[str]) -> None:
        self.transport = transport
        self.clock = clock
        self.ear = ear
        self.noise = noise

    def ask(self, method: str, id: int | None = 1, **params: Any) -> None:
        message = {"jsonrpc": "2.0", "method": method, "params": params} | ({} if id is None else {"id": id})
        self.transport.send(Outgoing(data=msgspec.json.encode(message), id=id, method=method, version=LEGACY))


@asynccontextmanager
async def opened(kind: Any, url: str, **fields: Any) -> AsyncIterator[Open]:
    clock, ear, noise = FakeClock(), Ear(), list[str]()
    client = HttpClient({})
    transport = http_transport(client, target_of(url, **fields), kind, clock, noise.append)
    await bounded(transport.start(ear))
    try:
        yield Open(transport, clock, ear, noise)
    finally:
        await bounded(client.close())


def handler(kind: str) -> Handler:
    return Sse() if kind == "sse" else legacy


@pytest.mark.parametrize("kind", KINDS)
async def test_a_request_that_does_not_let_go_is_left_behind_when_closing_takes_too_long(kind: Any) -> None:
    stubborn = Stubborn()
    async with Site(handler(kind)) as site, opened(kind, site.url, authorizer=stubborn) as there:
        there.ask("tools/call", name="echo", arguments={})
        await bounded(stubborn.asked.wait())
        closing = asyncio.create_task(there.transport.close())
        await there.clock.advance(CLOSING - 0.1)
        assert not closing.done()
        await there.clock.advance(0.2)
        await bounded(closing)
        stubborn.released.set()
        await bounded(there.transport.close())


@pytest.mark.parametrize("kind", KINDS)
async def test_what_is_closed_sends_nothing_and_may_be_closed_again(kind: Any) -> None:
    async with Site(handler(kind)) as site, opened(kind, site.url) as there:
        await bounded(there.transport.close())
        asked = len(site.asked)
        there.ask("tools/list")
        there.transport.cancel(7, Outgoing(data=b"{}", method="notifications/cancelled", version=LEGACY))
        await bounded(there.transport.drain())
        await bounded(there.transport.close())
        assert len(site.asked) == asked


@pytest.mark.parametrize("kind", KINDS)
async def test_what_was_never_started_can_be_closed(kind: Any) -> None:
    client = HttpClient({})
    await bounded(http_transport(client, target_of("http://127.0.0.1:1/mcp"), kind, FakeClock()).close())
    await bounded(client.close())


@pytest.mark.parametrize("kind", ["http", "sse"])
async def test_a_notification_that_is_not_taken_in_time_is_noise_and_no_more(kind: Any) -> None:
    usual = handler(kind)

    async def slow(asked: Asked, out: Answering) -> None:
        if asked.rpc == "notifications/odd":
            await out.gone()
        elif (done := usual(asked, out)) is not None:
            await done

    async with Site(slow) as site, opened(kind, site.url) as there:
        there.ask("notifications/odd", None)
        await until(lambda: "notifications/odd" in site.rpcs())
        await there.clock.advance(NOTICE + 0.1)
        await until(lambda: there.noise)
        assert there.noise == [f"notifications/odd was not taken within {NOTICE:g} s"]
        there.ask("ping")
        await until(lambda: there.ear.answers)
        await bounded(there.transport.close())


async def test_rest_answers_for_itself_what_it_has_no_words_for() -> None:
    async with Site() as site, opened("rest", site.url) as there:
        there.ask("ping", 1)
        there.ask("prompts/list", 2)
        there.ask("notifications/initialized", None)
        await until(lambda: len(there.ear.answers) == 2)
        pong, refusal = sorted(there.ear.answers, key=lambda message: int(message["id"]))
        assert pong["result"] == {}
        assert (refusal["error"]["code"], refusal["error"]["message"]) == (-32601, "REST has no prompts/list")
        assert site.asked == []
        await bounded(there.transport.close())
