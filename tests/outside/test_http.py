"""`builtin://http` against servers on this machine that answer well, badly, late, or not at all."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from luthier.clock import FakeClock, settle
from luthier.errors import (
    CallTimeoutError,
    ConnectError,
    ConnectionLostError,
    HttpError,
    MessageTooLargeError,
    ProtocolError,
)
from luthier.outside import HttpTool
from luthier.taint import UNTRUSTED
from luthier.tools.builtin import LocalTools
from luthier.web import UrlRules
from tests.outside.kit import call_of
from tests.wire.http.support import Answering, Asked, Site, bounded

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from luthier.tools import Reply
    from tests.wire.http.support import Handler


class Asking:
    def __init__(self, tool: HttpTool, site: Site) -> None:
        self.tool = tool
        self.site = site
        self.base = site.url.removesuffix("/mcp")
        self.rules = UrlRules.of(self.base + "/", production=False)

    async def ask(self, path: str = "/", **arguments: Any) -> Reply:
        call = call_of("http", {"url": self.base + path, **arguments}, web=self.rules)
        reply: Reply = await bounded(self.tool.carry(call))
        return reply


@asynccontextmanager
async def asking(answer: Handler) -> AsyncIterator[Asking]:
    tool = HttpTool({})
    async with Site(answer) as site:
        try:
            yield Asking(tool, site)
        finally:
            await tool.close()


def echo(asked: Asked, answering: Answering) -> None:
    answering.give(200, {"method": asked.method, "path": asked.path, "body": asked.body.decode()})


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
async def test_every_method_is_asked_as_it_is(method: str) -> None:
    async with asking(echo) as one:
        reply = await one.ask("/a", method=method, params={"q": "x y"})
    assert reply.content["body"] == {"method": method, "path": "/a?q=x+y", "body": ""}
    assert (reply.content["status"], reply.content["ok"], reply.is_error) == (200, True, False)
    assert one.tool.label == UNTRUSTED


async def test_head_has_no_body() -> None:
    def answer(_: Asked, answering: Answering) -> None:
        answering.head(200, "text/plain", content_length="5")

    async with asking(answer) as one:
        reply = await one.ask(method="HEAD")
    assert (reply.content["body"], reply.content["headers"]["content-length"]) == (None, "5")


async def test_what_is_sent_arrives() -> None:
    async with asking(echo) as one:
        await one.ask("/j", method="POST", body={"a": 1}, headers={"X-Key": "k"})
        await one.ask("/f", method="POST", form={"a": "b c"})
        await one.ask("/t", method="PUT", body="plain")
    sent = [(asked.headers["content-type"], asked.body) for asked in one.site.asked]
    assert sent == [
        ("application/json", b'{"a":1}'),
        ("application/x-www-form-urlencoded", b"a=b+c"),
        ("text/plain; charset=utf-8", b"plain"),
    ]
    assert one.site.asked[0].headers["x-key"] == "k"


@pytest.mark.parametrize("status", [200, 201, 400, 401, 403, 404, 429, 500, 503])
async def test_every_status_is_an_answer(status: int) -> None:
    async with asking(lambda _, answering: answering.give(status, {"said": 1}, retry_after="7")) as one:
        reply = await one.ask()
    assert (reply.content["status"], reply.is_error) == (status, status >= 400)
    assert reply.content["headers"]["retry-after"] == "7"
    assert len(one.site.asked) == 1, "and nothing is asked twice"


async def test_no_cookie_is_shown_or_sent_back() -> None:
    async with asking(lambda _, answering: answering.give(200, {}, set_cookie="session=abc; Path=/")) as one:
        assert "abc" not in str((await one.ask()).content)
        await one.ask()
    assert "cookie" not in one.site.asked[1].headers


class TestRedirects:
    async def test_within_the_origin_they_are_followed(self) -> None:
        def answer(asked: Asked, answering: Answering) -> None:
            answering.give(302, b"", location="/b") if asked.path == "/a" else echo(asked, answering)

        async with asking(answer) as one:
            assert (await one.ask("/a")).content["body"]["path"] == "/b"

    async def test_a_body_is_sent_on_only_where_the_status_says_so(self) -> None:
        def answer(asked: Asked, answering: Answering) -> None:
            moved = {"/keeps": 307, "/drops": 302}.get(asked.path)
            answering.give(moved, b"", location="/b") if moved else echo(asked, answering)

        async with asking(answer) as one:
            assert (await one.ask("/keeps", method="POST", body="x")).content["body"]["body"] == "x"
            with pytest.raises(HttpError, match="is not followed"):
                await one.ask("/drops", method="POST", body="x")

    @pytest.mark.parametrize(
        "location", ["http://localhost:{port}/x", "http://169.254.169.254/", "file:///etc"]
    )
    async def test_to_another_origin_they_are_not_and_no_header_goes_there(self, location: str) -> None:
        def answer(asked: Asked, answering: Answering) -> None:
            answering.give(307, b"", location=location.format(port=one.site.port))

        async with asking(answer) as one:
            with pytest.raises(HttpError, match="is not followed"):
                await one.ask("/a", headers={"Authorization": "Bearer t"})
        assert len(one.site.asked) == 1

    async def test_one_without_end_is_left(self) -> None:
        async with asking(lambda _, answering: answering.give(302, b"", location="/a")) as one:
            with pytest.raises(HttpError, match="without end"):
                await one.ask("/a")


class TestLarge:
    async def test_more_than_the_limit_is_not_read(self) -> None:
        async with asking(lambda _, answering: answering.give(200, b"x" * 1001, "text/plain")) as one:
            assert len((await one.ask(max_bytes=1001)).content["body"]) == 1001
            with pytest.raises(MessageTooLargeError):
                await one.ask(max_bytes=1000)

    @pytest.mark.parametrize("encoding", ["gzip", "deflate"])
    async def test_a_bomb_is_counted_as_it_unpacks(self, encoding: str) -> None:
        pack = gzip.compress if encoding == "gzip" else zlib.compress
        bomb = pack(b"\0" * 64 * 1024 * 1024)

        async with asking(
            lambda _, answering: answering.give(200, bomb, "text/plain", content_encoding=encoding)
        ) as one:
            with pytest.raises(MessageTooLargeError):
                await one.ask()

    async def test_one_without_end_is_left(self) -> None:
        async def answer(_: Asked, answering: Answering) -> None:
            answering.begin("text/plain")
            while not answering.writer.is_closing():
                answering.piece(b"x" * 65536)
                await answering.writer.drain()

        async with asking(answer) as one:
            with pytest.raises(MessageTooLargeError):
                await one.ask(max_bytes=1_000_000)

    async def test_what_is_packed_in_an_unknown_way_is_no_answer(self) -> None:
        async with asking(lambda _, answering: answering.give(200, b"x", content_encoding="br")) as one:
            with pytest.raises(ProtocolError, match="not asked for"):
                await one.ask()


class TestLost:
    async def test_a_connection_that_breaks_leaves_it_unknown(self) -> None:
        async with asking(lambda _, answering: answering.reset()) as one:
            with pytest.raises(ConnectionLostError) as caught:
                await one.ask(method="POST")
        assert caught.value.sent

    async def test_so_does_one_that_breaks_within_the_body(self) -> None:
        def answer(_: Asked, answering: Answering) -> None:
            answering.head(200, "text/plain", content_length="100")
            answering.writer.write(b"half")
            answering.cut()

        async with asking(answer) as one:
            with pytest.raises(ConnectionLostError):
                await one.ask()

    async def test_where_nobody_listens_nothing_was_sent(self) -> None:
        async with asking(echo) as one:
            pass
        with pytest.raises(ConnectError) as caught:
            await one.ask()
        assert not caught.value.sent
        await one.tool.close()

    @pytest.mark.parametrize("drips", [False, True])
    async def test_one_that_hangs_or_drips_is_left_when_its_time_is_up(self, drips: bool) -> None:  # noqa: FBT001
        clock = FakeClock()

        async def answer(_: Asked, answering: Answering) -> None:
            if drips:
                answering.begin("text/plain")
                answering.piece(b"x")
            begun.set()
            await answering.gone()

        begun = asyncio.Event()
        async with asking(answer) as one:
            tools = LocalTools(builtin=[one.tool], clock=clock)
            call = call_of("http", {"url": one.base + "/"}, web=one.rules, timeout=2.0)
            task = asyncio.create_task(tools.run(call))
            await bounded(begun.wait())
            await settle()
            await clock.advance(2.0)
            with pytest.raises(CallTimeoutError) as caught:
                await bounded(task)
        assert caught.value.sent, "whether it was done is not known"


async def test_an_address_that_was_not_spelled_out_is_an_error_of_the_tool() -> None:
    async with asking(echo) as one:
        reply = await one.tool.carry(call_of("http", {"url": one.site.url}))
    assert reply.is_error
    assert reply.content["error"]["kind"] == "arguments"
    assert one.site.asked == []


async def test_a_name_that_leads_to_this_machine_is_not_connected_to() -> None:
    """What it stands for shows only when it is looked up: `localtest` style names are caught there."""
    async with asking(echo) as one:
        rules = UrlRules(production=False)
        call = call_of("http", {"url": f"https://localhost.:{one.site.port}/"}, web=rules)
        assert (await one.tool.carry(call)).is_error
    assert one.site.asked == []
