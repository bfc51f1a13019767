"""HTTP with SSE: the stream says where messages go, brings the answers, and is the connection."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from luthier.errors import CallTimeoutError, ConnectError, ConnectionLostError, HttpError, ProtocolError
from luthier.wire import Handlers
from tests.wire.http.support import (
    Answering,
    Asked,
    Site,
    bounded,
    call,
    result_of,
    session_at,
    until,
)


class Sse:
    """A server of this kind. `endpoint` is what it names, `posts` the path that it really listens at."""

    def __init__(self, endpoint: str = "/messages?s=1", posts: str = "/messages?s=1") -> None:
        self.endpoint = endpoint
        self.posts = posts
        self.stream: Answering
        self.status = 202
        self.inline = False
        self.mute = False

    async def __call__(self, asked: Asked, answering: Answering) -> None:
        if asked.method == "GET":
            self.stream = answering
            answering.begin()
            if self.endpoint:
                answering.event(self.endpoint.encode(), name="endpoint")
            await answering.gone()
            return
        if asked.path != self.posts:
            answering.give(404)
            return
        found = result_of(asked, "2024-11-05")
        status = self.status if asked.rpc == "tools/call" else 202
        if self.inline and found is not None:
            answering.give(200, found)
            return
        answering.give(status, b"Accepted", kind="text/plain")
        if found is not None and status == 202 and not (self.mute and asked.rpc == "tools/call"):
            self.stream.event(found, name="message")


async def test_messages_go_where_the_stream_says() -> None:
    async with Site(Sse()) as site, session_at(site.url, "sse", headers={"X-Team": "a"}) as session:
        assert session.version == "2024-11-05"
        assert await call(session) == "hi"
        assert {asked.path for asked in site.asked[1:]} == {"/messages?s=1"}
        assert all(asked.headers["x-team"] == "a" for asked in site.asked)


@pytest.mark.parametrize("status", [404, 405])
async def test_a_prefix_that_a_proxy_hides_is_kept(status: int) -> None:
    sse = Sse("/messages?s=1", "/proxy/messages?s=1")

    async def behind(asked: Asked, answering: Answering) -> None:
        if asked.method == "POST" and asked.path != sse.posts:
            answering.give(status)
        else:
            await sse(asked, answering)

    async with (
        Site(behind) as site,
        session_at(f"http://127.0.0.1:{site.port}/proxy/sse", "sse") as session,
    ):
        assert await call(session) == "hi"
        assert [asked.path for asked in site.asked].count("/messages?s=1") == 1


async def test_nothing_is_sent_to_another_origin() -> None:
    async with Site() as other, Site(Sse(f"{other.url}/messages")) as site:
        with pytest.raises(ConnectError, match="another origin"):
            async with session_at(site.url, "sse"):
                pass
        assert other.asked == []


async def test_answers_right_in_the_response_are_taken() -> None:
    sse = Sse()
    sse.inline = True
    async with Site(sse) as site, session_at(site.url, "sse") as session:
        assert await call(session) == "hi"


@pytest.mark.parametrize("status", [400, 404, 405, 500])
async def test_a_message_that_is_not_taken_fails_its_call_only(status: int) -> None:
    sse = Sse()
    async with Site(sse) as site, session_at(site.url, "sse") as session:
        sse.status = status
        with pytest.raises(HttpError, match=f"HTTP {status}"):
            await call(session)
        sse.status = 202
        assert await call(session) == "hi"


async def test_the_end_of_the_stream_is_the_end_of_the_connection() -> None:
    sse = Sse()
    sse.mute = True
    async with Site(sse) as site, session_at(site.url, "sse") as session:
        calling = asyncio.create_task(call(session))
        await until(lambda: "tools/call" in site.rpcs())
        sse.stream.reset()
        with pytest.raises(ConnectionLostError, match="stream of server 'far' has ended") as caught:
            await bounded(calling)
        assert caught.value.sent
        assert await bounded(session.wait_closed()) is not None


async def test_odd_events_are_passed_over() -> None:
    sse = Sse()
    noise: list[str] = []
    handlers = Handlers(on_noise=noise.append)
    async with (
        Site(sse) as site,
        session_at(site.url, "sse", max_message_bytes=4096, handlers=handlers) as session,
    ):
        sse.stream.event(b"x" * 10_000)
        sse.stream.event(b"hello", name="greeting")
        sse.stream.event(b"not json")
        assert await call(session) == "hi"
        assert any("thrown away" in line for line in noise)


async def test_a_call_that_takes_too_long_is_cancelled() -> None:
    sse = Sse()
    sse.mute = True
    async with Site(sse) as site, session_at(site.url, "sse") as session:
        with pytest.raises(CallTimeoutError):
            await call(session, timeout=0.1)
        await until(lambda: "notifications/cancelled" in site.rpcs())


async def test_notifications_that_are_not_taken_are_noise() -> None:
    sse = Sse()
    noise: list[str] = []

    async def picky(asked: Asked, answering: Answering) -> None:
        if asked.rpc == "notifications/initialized":
            answering.give(500)
        else:
            await sse(asked, answering)

    async with (
        Site(picky) as site,
        session_at(site.url, "sse", handlers=Handlers(on_noise=noise.append)) as session,
    ):
        assert await call(session) == "hi"
        await until(lambda: any("was not taken" in line for line in noise))


def _give(status: int, body: bytes, kind: str) -> Any:
    return lambda _, answering: answering.give(status, body, kind=kind)


@pytest.mark.parametrize(
    ("answer", "match"),
    [
        (_give(404, b"nothing", "text/plain"), "HTTP 404"),
        (_give(200, b"<html><title>Sign in</title>", "text/html"), "a login page"),
        (_give(200, b"{}", "application/json"), "no stream of events"),
        (_give(200, b": bye\n\n", "text/event-stream"), "ended"),
    ],
    ids=["404", "login", "json", "ended"],
)
async def test_what_is_no_such_stream_is_named(answer: Any, match: str) -> None:
    async with Site(answer) as site:
        with pytest.raises(ConnectError, match=match):
            async with session_at(site.url, "sse"):
                pass


async def test_a_stream_that_says_nothing_is_not_waited_for_without_end() -> None:
    async with Site(Sse(endpoint="")) as site:
        with pytest.raises(ConnectError, match="did not answer within"):
            async with session_at(site.url, "sse", timeout=0.2):
                pass


async def test_an_event_without_its_end_is_taken() -> None:
    def once(_: Asked, answering: Answering) -> None:
        answering.give(200, b"event: endpoint\ndata: http://other.example/", kind="text/event-stream")

    async with Site(once) as site:
        with pytest.raises(ConnectError, match="another origin"):
            async with session_at(site.url, "sse"):
                pass


async def test_a_server_that_speaks_nonsense_fails_the_handshake() -> None:
    sse = Sse()

    async def nonsense(asked: Asked, answering: Answering) -> None:
        if asked.method == "POST":
            answering.give(200, b'{"jsonrpc":"2.0","id":1,"result":', kind="application/json")
        else:
            await sse(asked, answering)

    async with Site(nonsense) as site:
        with pytest.raises((ConnectError, ProtocolError)):
            async with session_at(site.url, "sse", timeout=5):
                pass
