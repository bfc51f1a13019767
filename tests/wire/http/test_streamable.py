"""Streamable HTTP of both eras: what goes out, what comes back, and how a lost session is found again."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from typing import Any

import pytest

from luthier.errors import (
    CallTimeoutError,
    ConnectError,
    ConnectionLostError,
    HttpError,
    MessageTooLargeError,
    ProtocolError,
)
from luthier.wire import Handlers
from tests.wire.http.support import (
    LEGACY,
    Answering,
    Asked,
    Site,
    answer,
    bounded,
    call,
    error,
    legacy,
    modern,
    modern_result,
    on_call,
    result_of,
    session_at,
    text,
    until,
)

# The two eras


async def test_a_modern_server_is_asked_request_by_request() -> None:
    async with Site(modern) as site, session_at(site.url) as session:
        assert session.modern
        await bounded(session.list_tools(timeout=5))
        assert await call(session, "hi") == "hi"
        assert site.rpcs() == ["server/discover", "tools/list", "tools/call"]
        asked = site.asked[-1]
        assert asked.headers["mcp-protocol-version"] == "2026-07-28"
        assert asked.headers["mcp-method"] == "tools/call"
        assert asked.headers["mcp-name"] == "echo"
        assert "mcp-session-id" not in asked.headers
        assert asked.json["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] == "2026-07-28"
        assert site.asked[0].headers["mcp-protocol-version"] == "2026-07-28"
        assert "cookie" not in asked.headers


async def test_names_that_headers_cannot_carry_are_encoded() -> None:
    async with Site(modern) as site, session_at(site.url) as session:
        await bounded(session.call_tool("größe", {}, timeout=5))
        assert site.asked[-1].headers["mcp-name"] == "=?base64?Z3LDtsOfZQ==?="


async def test_a_server_of_the_old_era_gets_its_handshake() -> None:
    async with Site() as site, session_at(site.url) as session:
        assert session.version == LEGACY
        assert await call(session) == "hi"
        assert site.rpcs()[:3] == ["server/discover", "initialize", "notifications/initialized"]
        assert "mcp-protocol-version" not in site.asked[1].headers
        asked = next(asked for asked in site.asked if asked.rpc == "tools/call")
        assert asked.headers["mcp-protocol-version"] == LEGACY
        assert "mcp-method" not in asked.headers


@pytest.mark.parametrize("status", [200, 400, 404, 405, 500])
async def test_whatever_a_server_says_to_discovery_it_may_be_an_old_one(status: int) -> None:
    def odd(asked: Asked, answering: Answering) -> None:
        if asked.rpc == "server/discover":
            answering.give(status, b"what?", kind="text/plain")
        else:
            legacy(asked, answering)

    async with Site(odd) as site, session_at(site.url) as session:
        assert not session.modern
        assert await call(session) == "hi"


async def test_a_server_that_resets_when_discovered_is_spoken_to_in_the_old_way() -> None:
    def odd(asked: Asked, answering: Answering) -> None:
        if asked.rpc == "server/discover":
            answering.reset()
        else:
            legacy(asked, answering)

    async with Site(odd) as site, session_at(site.url) as session:
        assert await call(session) == "hi"


@pytest.mark.parametrize("status", [400, 200])
async def test_a_modern_server_of_another_revision_is_not_initialized(status: int) -> None:
    def other(asked: Asked, answering: Answering) -> None:
        answering.give(status, error(asked.json["id"], -32022, "no", {"supported": ["2031-01-01"]}))

    async with Site(other) as site:
        with pytest.raises(ConnectError, match="speaks only 2031-01-01"):
            async with session_at(site.url, pinned=None):
                pass
        assert "initialize" not in site.rpcs()


async def test_a_header_mismatch_to_discovery_means_a_modern_server() -> None:
    def strict(asked: Asked, answering: Answering) -> None:
        if len(site.asked) == 1:
            answering.give(400, error(asked.json["id"], -32020, "mismatch"))
        else:
            modern(asked, answering)

    async with Site(strict) as site, session_at(site.url) as session:
        assert session.modern
        assert site.rpcs() == ["server/discover", "server/discover"]


# Forms of answers


@pytest.mark.parametrize("status", [200, 202, 204, 500])
async def test_whatever_comes_to_a_notification_the_session_goes_on(status: int) -> None:
    def odd(asked: Asked, answering: Answering) -> None:
        if asked.rpc == "notifications/initialized":
            answering.give(status, b'{"odd": true}' if status in (200, 500) else b"")
        else:
            legacy(asked, answering)

    async with Site(odd) as site, session_at(site.url) as session:
        assert await call(session) == "hi"


async def test_nothing_is_asked_before_the_handshake_is_taken() -> None:
    taken = asyncio.Event()

    async def slow(asked: Asked, answering: Answering) -> None:
        if asked.rpc == "notifications/initialized":
            await taken.wait()
        legacy(asked, answering)

    async with Site(slow) as site, session_at(site.url) as session:
        calling = asyncio.create_task(call(session))
        await until(lambda: "notifications/initialized" in site.rpcs())
        assert "tools/call" not in site.rpcs()
        taken.set()
        assert await bounded(calling) == "hi"


def _answers(kind: str, body: Any) -> Any:
    def handler(asked: Asked, answering: Answering) -> None:
        found = body(asked.json["id"]) if callable(body) else body
        answering.give(200, found, kind=kind)

    return on_call(handler)


@pytest.mark.parametrize(
    "kind", ["", "text/plain", "application/octet-stream", "APPLICATION/JSON; charset=utf-8"]
)
async def test_json_is_read_whatever_it_is_called(kind: str) -> None:
    async with (
        Site(_answers(kind, lambda id: answer(id, text("read")))) as site,
        session_at(site.url) as session,
    ):
        assert await call(session) == "read"


async def test_json_over_several_lines_in_a_batch_or_under_an_id_as_text_is_read() -> None:
    for body in (
        lambda id: (
            b'{\n "jsonrpc": "2.0",\n "id": %d,\n "result": {"content": [{"type":"text","text":"a"}]}\n}' % id
        ),
        lambda id: [answer(id, text("a"))],
        lambda id: answer(str(id), text("a")),
        lambda id: (
            b"\xef\xbb\xbf"
            + b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"a"}]}}' % id
        ),
    ):
        async with Site(_answers("application/json", body)) as site, session_at(site.url) as session:
            assert await call(session) == "a"


@pytest.mark.parametrize(
    ("body", "match"),
    [
        (lambda _: b"", "HTTP 200 without an answer"),
        (lambda _: b"not json", "not JSON: not json"),
        (lambda _: b"{broken", "not JSON: {broken"),
        (lambda _: {"jsonrpc": "2.0", "method": "notifications/message"}, "no answer"),
        (lambda _: answer(12345, text("a")), "names another request"),
        (lambda _: b"<!DOCTYPE html><title>Log in</title>", "a login page titled 'Log in'"),
        (lambda _: b"<html><body>Welcome</body></html>", "a web page"),
    ],
)
async def test_an_answer_that_is_none_fails_its_call_at_once(body: Any, match: str) -> None:
    async with Site(_answers("application/json", body)) as site, session_at(site.url) as session:
        with pytest.raises(ProtocolError, match=match):
            await call(session)
        site.answer = legacy
        assert await call(session) == "hi"


@pytest.mark.parametrize("id", [None, 999, "x"])
async def test_an_error_under_another_id_is_this_requests_error(id: Any) -> None:
    async with (
        Site(_answers("application/json", error(id, -32050, "no such"))) as site,
        session_at(site.url) as session,
    ):
        with pytest.raises(ProtocolError, match="no such") as caught:
            await call(session)
        assert caught.value.code == -32050


async def test_an_error_of_the_protocol_is_one_whatever_its_status() -> None:
    async def refuse(asked: Asked, answering: Answering) -> None:
        answering.give(404, error(asked.json["id"], -32602, "no such tool"))

    async with Site(on_call(refuse)) as site, session_at(site.url) as session:
        with pytest.raises(ProtocolError, match="no such tool") as caught:
            await call(session)
        assert caught.value.code == -32602


async def test_an_answer_that_was_accepted_for_later_without_a_stream_fails() -> None:
    async with (
        Site(on_call(lambda _, answering: answering.give(202))) as site,
        session_at(site.url) as session,
    ):
        with pytest.raises(ProtocolError, match="HTTP 202 without an answer"):
            await call(session)


@pytest.mark.parametrize("status", [401, 403, 404, 405, 413, 429, 500, 502, 503, 504, 530])
async def test_a_status_is_told_with_its_facts(status: int) -> None:
    def fail(_: Asked, answering: Answering) -> None:
        answering.give(
            status,
            b'{"error": {"message": "the reason"}}' + b" " * 5000,
            Retry_After="7",
            WWW_Authenticate="Bearer",
            X_Request_Id="r-1",
        )

    async with Site(on_call(fail)) as site, session_at(site.url) as session:
        with pytest.raises(HttpError, match=rf"HTTP {status} Said.*the reason") as caught:
            await call(session)
        facts = caught.value.facts()
        assert (facts["status"], facts["retry_after"], facts["www_authenticate"]) == (status, 7.0, "Bearer")
        assert facts["request_id"] == "r-1"
        assert facts["tool"] == "echo"
        assert len(facts["excerpt"]) == 2048
        site.answer = legacy
        assert await call(session) == "hi"


async def test_a_proxys_page_is_named() -> None:
    def fail(_: Asked, answering: Answering) -> None:
        answering.give(502, b"<html><title>Bad Gateway</title></html>", kind="text/html")

    async with Site(on_call(fail)) as site, session_at(site.url) as session:
        with pytest.raises(HttpError, match="a proxy's error page titled 'Bad Gateway'"):
            await call(session)


# Bodies


@pytest.mark.parametrize(
    ("encoding", "pack"),
    [
        ("gzip", gzip.compress),
        ("deflate", zlib.compress),
        ("deflate", lambda data: zlib.compress(data, wbits=-15)),
        ("identity", bytes),
        ("gzip", lambda data: gzip.compress(data[:10]) + gzip.compress(data[10:])),
        ("x-gzip", lambda data: gzip.compress(data) + b"\0\0\0"),
    ],
)
async def test_compressed_answers_are_read(encoding: str, pack: Any) -> None:
    def packed(asked: Asked, answering: Answering) -> None:
        body = (
            b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"packed"}]}}'
            % asked.json["id"]
        )
        answering.give(200, pack(body), Content_Encoding=encoding)

    async with Site(on_call(packed)) as site, session_at(site.url) as session:
        assert await call(session) == "packed"


@pytest.mark.parametrize(
    ("encoding", "body", "kind"),
    [
        ("gzip", b"this is not gzip at all", ProtocolError),
        ("gzip", gzip.compress(b'{"a": 1}' * 100)[:-9], ProtocolError),
        ("gzip", gzip.compress(b"x" * 50)[:12] + b"\xff" * 50, ProtocolError),
        ("br", b"x", ProtocolError),
        ("gzip", gzip.compress(b"[" + b" " * 50_000_000), MessageTooLargeError),
    ],
    ids=["nothing of it", "cut", "broken", "not asked for", "a bomb"],
)
async def test_what_does_not_unpack_or_unpacks_to_too_much_fails_its_call(
    encoding: str, body: bytes, kind: Any
) -> None:
    def packed(_: Asked, answering: Answering) -> None:
        answering.give(200, body, Content_Encoding=encoding)

    async with Site(on_call(packed)) as site, session_at(site.url, max_message_bytes=100_000) as session:
        with pytest.raises(kind):
            await call(session)
        site.answer = legacy
        assert await call(session) == "hi"


async def test_a_body_over_the_limit_is_not_read_to_its_end() -> None:
    async def endless(asked: Asked, answering: Answering) -> None:
        answering.begin("application/json")
        while not answering.writer.is_closing():
            answering.piece(b" " * 65536)
            await answering.writer.drain()

    async with Site(on_call(endless)) as site, session_at(site.url, max_message_bytes=100_000) as session:
        with pytest.raises(MessageTooLargeError, match="max_message_bytes"):
            await call(session)
        site.answer = legacy
        assert await call(session) == "hi"


async def test_a_large_answer_is_read_whole() -> None:
    large = "y" * 3_000_000
    async with (
        Site(_answers("application/json", lambda id: answer(id, text(large)))) as site,
        session_at(site.url) as session,
    ):
        assert await call(session) == large


async def test_a_slow_drip_ends_with_its_deadline_and_its_connection() -> None:
    left = asyncio.Event()

    async def drip(asked: Asked, answering: Answering) -> None:
        answering.begin("application/json")
        try:
            while not answering.writer.is_closing():
                answering.piece(b" ")
                await answering.writer.drain()
                await asyncio.sleep(0.01)
        except ConnectionError:
            pass
        left.set()

    async with Site(on_call(drip)) as site, session_at(site.url) as session:
        with pytest.raises(CallTimeoutError):
            await call(session, timeout=0.2)
        await bounded(left.wait())
        site.answer = legacy
        assert await call(session) == "hi"


@pytest.mark.parametrize("era", [legacy, modern])
@pytest.mark.parametrize("way", ["reset", "cut", "head", "body"])
async def test_a_connection_that_breaks_off_loses_its_own_call_only(way: str, era: Any) -> None:
    started, release = asyncio.Event(), asyncio.Event()

    async def broken(asked: Asked, answering: Answering) -> None:
        if asked.json["params"]["arguments"]["text"] == "steady":
            started.set()
            await release.wait()
            answering.give(200, result_of(asked))
            return
        if way == "head":
            answering.writer.write(b"HTTP/1.1 200 O")
        elif way == "body":
            answering.head(200, "application/json", content_length="500")
            answering.writer.write(b'{"jsonrpc"')
        await answering.writer.drain()
        if way == "reset":
            answering.reset()
        else:
            answering.cut()

    async with Site(on_call(broken, era)) as site, session_at(site.url) as session:
        steady = asyncio.create_task(call(session, "steady"))
        await bounded(started.wait())
        with pytest.raises(ConnectionLostError, match="not known") as caught:
            await call(session, "lost")
        assert caught.value.sent
        release.set()
        assert await bounded(steady) == "steady"
        assert await call(session, "steady") == "steady"


async def test_headers_without_end_are_refused() -> None:
    async def huge(_: Asked, answering: Answering) -> None:
        answering.writer.write(
            b"HTTP/1.1 200 OK\r\nX-Large: " + b"x" * 200_000 + b"\r\nContent-Length: 0\r\n\r\n"
        )

    async with Site(on_call(huge)) as site, session_at(site.url) as session:
        with pytest.raises(ProtocolError, match="not HTTP"):
            await call(session)
        site.answer = legacy
        assert await call(session) == "hi"


async def test_what_is_not_http_is_named() -> None:
    async def other(_: Asked, answering: Answering) -> None:
        answering.writer.write(b"SSH-2.0-OpenSSH_9.9\r\n\r\n")

    async with Site(on_call(other)) as site, session_at(site.url) as session:
        with pytest.raises(ProtocolError, match="not HTTP"):
            await call(session)


# Redirects


def _moved(status: int, location: str) -> Any:
    def handler(asked: Asked, answering: Answering) -> None:
        if asked.path == "/mcp":
            answering.give(status, Location=location)
        else:
            legacy(asked, answering)

    return handler


@pytest.mark.parametrize("status", [307, 308])
async def test_a_redirect_within_the_origin_is_followed_with_method_and_body(status: int) -> None:
    async with (
        Site(_moved(status, "/mcp/")) as site,
        session_at(site.url, headers={"Authorization": "Bearer t"}) as session,
    ):
        assert await call(session) == "hi"
        asked = next(asked for asked in site.asked if asked.path == "/mcp/" and asked.rpc == "tools/call")
        assert asked.headers["authorization"] == "Bearer t"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_no_other_redirect_is_followed(status: int) -> None:
    location = "http://elsewhere.example/mcp?token=secret"
    async with (
        Site(on_call(lambda _, answering: answering.give(status, Location=location))) as site,
        session_at(site.url) as session,
    ):
        with pytest.raises(HttpError, match=r"redirects .* to http://elsewhere.example/mcp, which") as caught:
            await call(session)
        assert "secret" not in str(caught.value)
        assert caught.value.status == status


async def test_redirects_in_a_circle_end() -> None:
    async with (
        Site(on_call(lambda _, answering: answering.give(307, Location="/mcp"))) as site,
        session_at(site.url) as session,
    ):
        with pytest.raises(HttpError, match="without end"):
            await call(session)


# Streams


async def test_a_stream_brings_progress_and_the_answer() -> None:
    def stream(asked: Asked, answering: Answering) -> None:
        id = asked.json["id"]
        token = asked.json["params"]["_meta"]["progressToken"]
        answering.begin()
        answering.piece(b": hello\r\n\r\n")
        params = {"progressToken": token, "progress": 1, "total": 2, "message": "half"}
        answering.event({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
        answering.event(b"not for us", name="ping")
        answering.event(answer(id, text("streamed")), name="message")
        answering.finish()

    told: list[Any] = []
    async with Site(on_call(stream)) as site, session_at(site.url) as session:
        assert await call(session, on_progress=lambda *what: told.append(what)) == "streamed"
        assert told == [(1, 2, "half")]


async def test_a_stream_that_goes_on_after_its_answer_is_left() -> None:
    left = asyncio.Event()

    async def chatty(asked: Asked, answering: Answering) -> None:
        answering.begin()
        answering.event(answer(asked.json["id"], text("streamed")))
        await answering.gone()
        left.set()

    async with Site(on_call(chatty)) as site, session_at(site.url) as session:
        assert await call(session) == "streamed"
        await bounded(left.wait())


async def test_the_last_event_of_a_stream_may_lack_its_end() -> None:
    def unfinished(asked: Asked, answering: Answering) -> None:
        id = asked.json["id"]
        answering.give(
            200,
            b'data: {"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"end"}]}}' % id,
            kind="text/event-stream",
        )

    async with Site(on_call(unfinished)) as site, session_at(site.url) as session:
        assert await call(session) == "end"


@pytest.mark.parametrize("era", [legacy, modern])
@pytest.mark.parametrize("rest", [b"", b'data: {"jsonrpc":"2.0","id":', b"data: x"])
async def test_a_stream_that_ends_early_without_an_id_loses_its_call(rest: bytes, era: Any) -> None:
    def cut(_: Asked, answering: Answering) -> None:
        answering.give(200, b": hello\n\n" + rest, kind="text/event-stream")

    async with Site(on_call(cut, era)) as site, session_at(site.url) as session:
        with pytest.raises(ConnectionLostError, match="ended before the answer"):
            await call(session)
        assert await call_after(session, site, era) == "hi"


async def call_after(session: Any, site: Site, era: Any) -> str:
    site.answer = era
    return await call(session)


@pytest.mark.parametrize("way", ["finish", "reset"])
async def test_a_stream_of_the_old_era_is_resumed_after_its_last_event(way: str) -> None:
    waiting: list[int] = []

    async def cut(asked: Asked, answering: Answering) -> None:
        if asked.method == "GET" and "last-event-id" in asked.headers:
            if len(waiting) == 1:
                waiting.append(0)
                answering.begin()
                answering.event(b"", id="e2")
                answering.cut()
                return
            answering.begin()
            answering.event(answer(waiting[0], text(asked.headers["last-event-id"])))
            answering.finish()
        elif asked.rpc == "tools/call":
            waiting.append(asked.json["id"])
            answering.begin()
            answering.piece(b"retry: 10\nid: e1\ndata:\n\n")
            await answering.writer.drain()
            if way == "finish":
                answering.finish()
            else:
                answering.cut()
        else:
            legacy(asked, answering)

    async with Site(cut) as site, session_at(site.url) as session:
        assert await call(session) == "e2"
        assert site.rpcs().count("tools/call") == 1


@pytest.mark.parametrize("status", [405, 500])
async def test_a_stream_that_cannot_be_resumed_loses_its_call(status: int) -> None:
    def cut(asked: Asked, answering: Answering) -> None:
        if asked.method == "GET":
            answering.give(status)
        elif asked.rpc == "tools/call":
            answering.give(200, b"retry: 1\nid: e1\ndata:\n\n", kind="text/event-stream")
        else:
            legacy(asked, answering)

    async with Site(cut) as site, session_at(site.url) as session:
        with pytest.raises(ConnectionLostError, match="could not be resumed"):
            await call(session)


async def test_a_stream_that_breaks_each_time_without_news_is_given_up() -> None:
    def cut(asked: Asked, answering: Answering) -> None:
        if asked.method == "GET":
            if "last-event-id" in asked.headers:
                answering.reset()
            else:
                answering.give(405)
        elif asked.rpc == "tools/call":
            answering.give(200, b"retry: 1\nid: e1\ndata:\n\n", kind="text/event-stream")
        else:
            legacy(asked, answering)

    async with Site(cut) as site, session_at(site.url) as session:
        with pytest.raises(ConnectionLostError, match="could not be resumed"):
            await call(session)


async def test_an_event_over_the_limit_fails_its_call() -> None:
    def large(asked: Asked, answering: Answering) -> None:
        answering.begin()
        answering.event(answer(asked.json["id"], text("z" * 5000)))
        answering.finish()

    async with Site(on_call(large)) as site, session_at(site.url, max_message_bytes=4096) as session:
        with pytest.raises(MessageTooLargeError):
            await call(session)
        site.answer = legacy
        assert await call(session) == "hi"


async def test_a_broken_event_fails_its_call_and_noise_does_not() -> None:
    def noisy(asked: Asked, answering: Answering) -> None:
        answering.begin()
        answering.event(b"hello there")
        broken = asked.json["params"]["arguments"]["text"] == "broken"
        id = asked.json["id"]
        answering.event(b'{"jsonrpc":"2.0","id":%d,"result":{' % id if broken else answer(id, text("fine")))
        answering.finish()

    async with Site(on_call(noisy)) as site, session_at(site.url) as session:
        assert await call(session) == "fine"
        with pytest.raises(ProtocolError, match="cannot be read"):
            await call(session, "broken")


async def test_a_stream_without_end_ends_with_its_deadline() -> None:
    async def endless(_: Asked, answering: Answering) -> None:
        answering.begin()
        while not answering.writer.is_closing():
            answering.piece(b": still there\n\n")
            await answering.writer.drain()
            await asyncio.sleep(0.01)

    async with Site(on_call(endless)) as site, session_at(site.url) as session:
        with pytest.raises(CallTimeoutError):
            await call(session, timeout=0.2)
        site.answer = legacy
        assert await call(session) == "hi"


# Cancellation


async def test_a_modern_call_is_cancelled_by_leaving_its_stream() -> None:
    left = asyncio.Event()

    async def hang(_: Asked, answering: Answering) -> None:
        answering.begin()
        await answering.gone()
        left.set()

    async with Site(on_call(hang, modern)) as site, session_at(site.url) as session:
        calling = asyncio.create_task(call(session))
        await until(lambda: "tools/call" in site.rpcs())
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await bounded(calling)
        await bounded(left.wait())
        assert "notifications/cancelled" not in site.rpcs()


async def test_a_call_whose_body_never_comes_leaves_its_connection() -> None:
    left = asyncio.Event()

    async def hang(_: Asked, answering: Answering) -> None:
        answering.head(200, "application/json", content_length="10")
        await answering.gone()
        left.set()

    async with Site(on_call(hang, modern)) as site, session_at(site.url) as session:
        with pytest.raises(CallTimeoutError):
            await call(session, timeout=0.2)
        await bounded(left.wait())


async def test_an_old_call_is_cancelled_by_a_notification() -> None:
    async def hang(_: Asked, answering: Answering) -> None:
        await answering.gone()

    async with Site(on_call(hang)) as site, session_at(site.url) as session:
        with pytest.raises(CallTimeoutError):
            await call(session, timeout=0.1)
        await until(lambda: "notifications/cancelled" in site.rpcs())
        ids = {asked.rpc: asked.json for asked in site.asked if asked.method == "POST"}
        assert ids["notifications/cancelled"]["params"]["requestId"] == ids["tools/call"]["id"]


# The session of the old era


class Sessions:
    """A server with sessions, which it can forget."""

    def __init__(self, *, stream: bool = False, lost: int = 404, body: bytes = b"") -> None:
        self.known: set[str] = set()
        self.count = 0
        self.stream = stream
        self.lost = lost
        self.body = body
        self.streams: list[Answering] = []
        self.refuse_new = 0
        self.as_stream = False

    async def __call__(self, asked: Asked, answering: Answering) -> None:
        session = asked.headers.get("mcp-session-id", "")
        if asked.method == "POST" and asked.rpc in ("initialize", "server/discover"):
            self._begin(asked, answering)
        elif session not in self.known:
            answering.give(self.lost, self.body or b"Session not found")
        elif asked.method == "DELETE":
            self.known.discard(session)
            answering.give(200)
        elif asked.method == "GET" and self.stream:
            answering.begin()
            self.streams.append(answering)
            await answering.gone()
        else:
            legacy(asked, answering)

    def _begin(self, asked: Asked, answering: Answering) -> None:
        if asked.rpc == "server/discover":
            legacy(asked, answering)
        elif self.refuse_new:
            answering.give(self.refuse_new, b"not now")
        else:
            self.count += 1
            self.known.add(f"s{self.count}")
            headers = {"Mcp-Session-Id": f"s{self.count}"}
            if self.as_stream:
                answering.begin(**headers)
                answering.event(result_of(asked))
                answering.finish()
            else:
                answering.give(200, result_of(asked), **headers)


async def test_a_session_is_echoed_and_ended() -> None:
    sessions = Sessions()
    async with Site(sessions) as site:
        async with session_at(site.url) as session:
            assert await call(session) == "hi"
            assert site.asked[-1].headers["mcp-session-id"] == "s1"
        assert site.rpcs()[-1] == "DELETE"
        assert sessions.known == set()


@pytest.mark.parametrize("as_stream", [False, True])
async def test_a_forgotten_session_is_begun_anew_once_for_all(as_stream: bool) -> None:  # noqa: FBT001
    sessions = Sessions()
    sessions.as_stream = as_stream
    changes: list[int] = []
    handlers = Handlers(on_tools_changed=lambda: changes.append(1))
    async with Site(sessions) as site, session_at(site.url, handlers=handlers) as session:
        sessions.known.clear()
        said = await bounded(asyncio.gather(*(call(session, f"n{i}") for i in range(12))))
        assert said == [f"n{i}" for i in range(12)]
        assert sessions.count == 2
        assert site.rpcs().count("initialize") == 2
        again = [asked for asked in site.asked if asked.rpc == "initialize"][1]
        assert "mcp-session-id" not in again.headers
        assert changes == [1]
        assert await call(session) == "hi"


async def test_a_server_that_says_400_to_a_session_it_does_not_know_is_understood() -> None:
    sessions = Sessions(lost=400, body=b'{"error": "Bad Request: No valid session ID provided"}')
    async with Site(sessions) as site, session_at(site.url) as session:
        sessions.known.clear()
        assert await call(session) == "hi"


async def test_another_400_is_an_error_of_its_call() -> None:
    sessions = Sessions()

    async def bad(asked: Asked, answering: Answering) -> None:
        if asked.rpc == "tools/call":
            answering.give(400, b"bad arguments")
        else:
            await sessions(asked, answering)

    async with Site(bad) as site, session_at(site.url) as session:
        with pytest.raises(HttpError, match="bad arguments"):
            await call(session)
        assert sessions.count == 1


async def test_a_call_is_sent_again_only_once() -> None:
    sessions = Sessions()

    async def never(asked: Asked, answering: Answering) -> None:
        if asked.rpc == "tools/call":
            answering.give(404, b"not here")
        else:
            await sessions(asked, answering)

    async with Site(never) as site, session_at(site.url) as session:
        with pytest.raises(HttpError, match="HTTP 404"):
            await call(session)
        assert site.rpcs().count("tools/call") == 2


async def test_where_no_session_can_be_begun_all_calls_fail_without_effect_and_the_session_ends() -> None:
    sessions = Sessions()
    async with Site(sessions) as site, session_at(site.url) as session:
        sessions.known.clear()
        sessions.refuse_new = 410
        outcomes = await bounded(asyncio.gather(*(call(session) for _ in range(3)), return_exceptions=True))
        for outcome in outcomes:
            assert isinstance(outcome, ConnectError)
            assert not outcome.sent
            assert outcome.http is not None
            assert outcome.http.status == 410
        assert await bounded(session.wait_closed()) is not None


async def test_where_a_session_cannot_be_begun_for_now_the_next_call_tries_again() -> None:
    sessions = Sessions()
    async with Site(sessions) as site, session_at(site.url) as session:
        sessions.known.clear()
        sessions.refuse_new = 503
        with pytest.raises(ConnectError, match="no new one could be begun"):
            await call(session)
        sessions.refuse_new = 0
        assert await call(session) == "hi"


async def test_a_new_session_that_does_not_come_is_not_waited_for_without_end() -> None:
    sessions = Sessions()

    async def silent(asked: Asked, answering: Answering) -> None:
        if asked.rpc == "initialize" and sessions.count:
            await answering.gone()
        else:
            await sessions(asked, answering)

    async with Site(silent) as site, session_at(site.url) as session:
        sessions.known.clear()
        with pytest.raises(CallTimeoutError):
            await call(session, timeout=0.2)


@pytest.mark.parametrize("odd", ["not json", "stream"])
async def test_a_new_session_needs_a_result(odd: str) -> None:
    sessions = Sessions()

    async def strange(asked: Asked, answering: Answering) -> None:
        if asked.rpc == "initialize" and sessions.count:
            answering.give(200, b"data: x\n\n", kind="text/event-stream" if odd == "stream" else "text/plain")
        else:
            await sessions(asked, answering)

    async with Site(strange) as site, session_at(site.url) as session:
        sessions.known.clear()
        with pytest.raises(ConnectError, match="no new one could be begun"):
            await call(session)


# The standing stream of the old era


async def test_the_standing_stream_brings_changes_and_is_opened_again() -> None:
    sessions = Sessions(stream=True)
    changes: list[int] = []
    handlers = Handlers(on_tools_changed=lambda: changes.append(1))
    changed = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
    async with Site(sessions) as site, session_at(site.url, handlers=handlers) as session:
        await until(lambda: sessions.streams)
        sessions.streams[0].piece(b"retry: 5\n\n")
        sessions.streams[0].event(changed, id="c1")
        await until(lambda: changes == [1])
        sessions.streams[0].reset()
        await until(lambda: len(sessions.streams) == 2)
        gets = [asked for asked in site.asked if asked.method == "GET"]
        assert gets[1].headers["last-event-id"] == "c1"
        assert gets[1].headers["mcp-session-id"] == "s1"
        sessions.streams[1].event(changed, id="c2")
        await until(lambda: changes == [1, 1])
        assert await call(session) == "hi"


async def test_an_answer_that_was_accepted_for_later_comes_in_the_standing_stream() -> None:
    sessions = Sessions(stream=True)

    async def later(asked: Asked, answering: Answering) -> None:
        if asked.rpc == "tools/call":
            answering.give(202)
            sessions.streams[0].event(answer(asked.json["id"], text("later")))
        else:
            await sessions(asked, answering)

    noise: list[str] = []
    async with (
        Site(later) as site,
        session_at(site.url, handlers=Handlers(on_noise=noise.append)) as session,
    ):
        await until(lambda: sessions.streams)
        sessions.streams[0].event({"jsonrpc": "2.0", "id": 77, "method": "ping"})
        await until(lambda: any(asked.body.find(b'"id":77') > 0 for asked in site.asked))
        sessions.streams[0].event(b"x" * 20)
        assert await call(session) == "later"


async def test_large_events_of_the_standing_stream_are_passed_over() -> None:
    sessions = Sessions(stream=True)
    noise: list[str] = []
    handlers = Handlers(on_noise=noise.append)
    async with (
        Site(sessions) as site,
        session_at(site.url, handlers=handlers, max_message_bytes=2048) as session,
    ):
        await until(lambda: sessions.streams)
        sessions.streams[0].event(b"x" * 5000)
        await until(lambda: any("thrown away" in line for line in noise))
        assert await call(session) == "hi"


# Mirrored arguments


def _mirroring(wanted: list[str]) -> Any:
    def handler(asked: Asked, answering: Answering) -> None:
        message = asked.json
        if message["method"] == "tools/list":
            schema = {"type": "object", "properties": {"text": {"type": "string", "x-mcp-header": wanted[0]}}}
            bad = {"type": "object", "properties": {"text": {"type": "number", "x-mcp-header": "X"}}}
            tools = [{"name": "echo", "inputSchema": schema}, {"name": "bad", "inputSchema": bad}]
            answering.give(200, answer(message["id"], {"tools": tools, "resultType": "complete"}))
        elif message["method"] == "tools/call":
            header = asked.headers.get(f"mcp-param-{wanted[0].lower()}")
            if header is None:
                answering.give(400, error(message["id"], -32020, "header mismatch"))
            else:
                answering.give(200, answer(message["id"], text(header)))
        else:
            answering.give(200, modern_result(asked))

    return handler


async def test_arguments_are_mirrored_and_tools_that_may_not_want_it_are_dropped() -> None:
    async with Site(_mirroring(["Region"])) as site, session_at(site.url) as session:
        manifest = await bounded(session.list_tools(timeout=5))
        assert [tool.uri.name for tool in manifest.tools] == ["echo"]
        assert [(tool.name, "x-mcp-header" in tool.reason) for tool in manifest.dropped] == [("bad", True)]
        assert await call(session, "süd") == "=?base64?c8O8ZA==?="


async def test_after_a_mismatch_of_headers_the_tools_are_listed_and_the_call_is_sent_once_more() -> None:
    wanted = ["Region"]
    async with Site(_mirroring(wanted)) as site, session_at(site.url) as session:
        await bounded(session.list_tools(timeout=5))
        wanted[0] = "Zone"
        assert await call(session, "south") == "south"
        assert site.rpcs()[-3:] == ["tools/call", "tools/list", "tools/call"]


async def test_a_second_mismatch_is_told() -> None:
    def never(asked: Asked, answering: Answering) -> None:
        if asked.rpc == "tools/call":
            answering.give(400, error(asked.json["id"], -32020, "header mismatch"))
        else:
            modern(asked, answering)

    async with Site(never) as site, session_at(site.url) as session:
        with pytest.raises(ProtocolError, match="header mismatch"):
            await call(session)
        assert site.rpcs().count("tools/call") == 2


# Headers of the entry


async def test_headers_of_the_entry_go_out_and_cannot_change_those_of_the_protocol() -> None:
    headers = {"X-Team": "a", "mcp-method": "evil", "content-type": "text/evil", "Mcp-Session-Id": "evil"}
    async with Site(modern) as site, session_at(site.url, headers=headers) as session:
        await call(session)
        asked = site.asked[-1]
        assert asked.headers["x-team"] == "a"
        assert asked.headers["mcp-method"] == "tools/call"
        assert asked.headers["content-type"] == "application/json"
        assert "mcp-session-id" not in asked.headers


async def test_a_header_that_would_smuggle_another_is_refused_without_being_shown() -> None:
    async with Site(modern) as site:
        with pytest.raises(ConnectError, match="cannot be asked") as caught:
            async with session_at(site.url, headers={"X-A": "hush\r\nX-B: c"}):
                pass
        assert "hush" not in str(caught.value)
        assert not caught.value.retryable
        assert site.asked == []


async def test_closing_ends_what_is_under_way() -> None:
    async def hang(_: Asked, answering: Answering) -> None:
        await answering.gone()

    async with Site(on_call(hang)) as site, session_at(site.url) as session:
        calling = asyncio.create_task(call(session))
        await until(lambda: "tools/call" in site.rpcs())
        await bounded(session.close())
        with pytest.raises(ConnectionLostError):
            await bounded(calling)
        await bounded(session.close())
