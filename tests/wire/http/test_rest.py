"""The REST dialect, to the byte, and the ladder of transports."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from luthier.errors import CallTimeoutError, ConnectError, ConnectionLostError, HttpError, ProtocolError
from luthier.wire.http import OutgoingHttp, Remembered
from luthier.wire.http.client import RENEWALS
from tests.wire.http.support import (
    Answering,
    Asked,
    Site,
    bounded,
    call,
    error,
    legacy,
    modern,
    session_at,
    text,
    until,
)
from tests.wire.http.test_legacy_sse import Sse

LISTED = {"tools": [{"name": "echo", "description": "Say", "inputSchema": {"type": "object"}}]}


def rest(asked: Asked, answering: Answering) -> None:
    if asked.method == "GET" and asked.path == "/mcp/tools":
        answering.give(200, LISTED)
    elif asked.method == "POST" and asked.path.startswith("/mcp/tools/"):
        answering.give(200, text(asked.path))
    else:
        answering.give(404)


async def test_a_call_is_a_post_of_exactly_the_name_and_the_arguments() -> None:
    async with Site(rest) as site, session_at(site.url, "rest", headers={"X-Team": "a"}) as session:
        manifest = await bounded(session.list_tools(timeout=5))
        assert [tool.uri.name for tool in manifest.tools] == ["echo"]
        reply = await bounded(session.call_tool("a b/ö", {"b": 1, "a": [1.5, "ü"]}, timeout=5))
        assert reply.blocks[0]["text"] == "/mcp/tools/a%20b%2F%C3%B6"
        assert not reply.is_error
        listed, called = site.asked
        assert (listed.method, listed.path, listed.body) == ("GET", "/mcp/tools", b"")
        assert called.body == '{"name":"a b/ö","arguments":{"b":1,"a":[1.5,"ü"]}}'.encode()
        assert called.headers["content-type"] == "application/json"
        assert called.headers["x-team"] == listed.headers["x-team"] == "a"
        await bounded(session.list_tools(timeout=5))
        await bounded(session.ping(timeout=5))
        assert len(site.asked) == 3


async def test_an_error_of_the_tool_is_a_reply() -> None:
    def failing(asked: Asked, answering: Answering) -> None:
        if asked.method == "POST":
            answering.give(200, {**text("broken"), "isError": True})
        else:
            rest(asked, answering)

    async with Site(failing) as site, session_at(site.url, "rest") as session:
        reply = await bounded(session.call_tool("echo", {}, timeout=5))
        assert reply.is_error


@pytest.mark.parametrize(
    ("give", "kind", "match"),
    [
        ((500, b"oops", "text/plain"), HttpError, "HTTP 500 Said.*oops"),
        ((200, b"<html><title>Log in</title>", "text/html"), ProtocolError, "a login page"),
        ((200, b"nothing", "text/plain"), ProtocolError, "cannot be used"),
    ],
    ids=["status", "page", "text"],
)
async def test_what_is_no_answer_fails_its_call(give: Any, kind: Any, match: str) -> None:
    def failing(asked: Asked, answering: Answering) -> None:
        if asked.method == "POST":
            answering.give(give[0], give[1], kind=give[2])
        else:
            rest(asked, answering)

    async with Site(failing) as site, session_at(site.url, "rest") as session:
        with pytest.raises(kind, match=match):
            await call(session)
        site.answer = rest
        assert await call(session) == "/mcp/tools/echo"


async def test_lenient_json_is_read() -> None:
    def odd(asked: Asked, answering: Answering) -> None:
        if asked.method == "POST":
            answering.give(200, b'\xef\xbb\xbf{"content": [{"type": "text", "text": "n"}], "score": NaN}')
        else:
            answering.give(200, LISTED["tools"])

    async with Site(odd) as site, session_at(site.url, "rest") as session:
        assert await call(session) == "n"
        assert len((await bounded(session.list_tools(timeout=5))).tools) == 1


@pytest.mark.parametrize("body", [{}, {"tools": 1}, [1]], ids=["none", "number", "list"])
async def test_a_list_that_is_none_is_no_session(body: Any) -> None:
    async with Site(lambda _, answering: answering.give(200, body)) as site:
        if body == [1]:
            async with session_at(site.url, "rest"):
                pass
            return
        with pytest.raises(ConnectError, match="no list of tools"):
            async with session_at(site.url, "rest"):
                pass


async def test_a_call_that_takes_too_long_is_left() -> None:
    left = asyncio.Event()

    async def hang(asked: Asked, answering: Answering) -> None:
        if asked.method == "POST":
            await answering.gone()
            left.set()
        else:
            rest(asked, answering)

    async with Site(hang) as site, session_at(site.url, "rest") as session:
        with pytest.raises(CallTimeoutError):
            await call(session, timeout=0.1)
        await bounded(left.wait())
        calling = asyncio.create_task(call(session))
        await until(lambda: site.rpcs().count("POST") >= 0 and len(site.asked) == 3)
        await bounded(session.close())
        with pytest.raises(Exception, match="closed"):
            await bounded(calling)


# The ladder


class Signer:
    """Credentials that can be refused."""

    def __init__(self, again: bool = False) -> None:  # noqa: FBT001, FBT002
        self.seen: list[OutgoingHttp] = []
        self.challenges: list[int] = []
        self.again = again

    async def headers(self, request: OutgoingHttp) -> dict[str, str]:
        self.seen.append(request)
        return {"Authorization": f"T{len(self.challenges)}"}

    async def challenged(self, status: int, headers: Any, sent: Any) -> bool:
        assert sent["Authorization"] == f"T{len(self.challenges)}"
        assert headers["WWW-Authenticate"] == "Bearer"
        self.challenges.append(status)
        return self.again


async def test_credentials_sign_what_is_sent() -> None:
    signer = Signer()
    async with Site(rest) as site, session_at(site.url, "rest", authorizer=signer) as session:
        await call(session)
        assert signer.seen[0] == OutgoingHttp("GET", f"{site.url}/tools", b"")
        assert signer.seen[1].body == site.asked[1].body
        assert site.asked[1].headers["authorization"] == "T0"


async def test_after_a_challenge_the_request_is_sent_once_more() -> None:
    signer = Signer(again=True)

    def guarded(asked: Asked, answering: Answering) -> None:
        if asked.headers["authorization"] == "T0":
            answering.give(401, WWW_Authenticate="Bearer")
        else:
            modern(asked, answering)

    async with Site(guarded) as site, session_at(site.url, authorizer=signer) as session:
        assert await call(session) == "hi"
        assert signer.challenges == [401]


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("status", [401, 403])
async def test_a_server_that_wants_a_login_says_so_at_once(status: int, again: bool) -> None:  # noqa: FBT001
    signer = Signer(again=again)
    refuse = lambda _, answering: answering.give(status, WWW_Authenticate="Bearer")  # noqa: E731
    async with Site(refuse) as site:
        with pytest.raises(ConnectError, match="luthier servers login far") as caught:
            async with session_at(site.url, "auto", authorizer=signer):
                pass
        assert caught.value.http is not None
        assert caught.value.http.status == status
        assert caught.value.http.answer.www_authenticate == "Bearer"
        assert not caught.value.retryable
        assert len(site.asked) == (1 + RENEWALS if again else 1)


@pytest.mark.parametrize(
    ("server", "version"),
    [(modern, "2026-07-28"), (legacy, "2025-06-18"), (Sse(), "2024-11-05"), (rest, "2025-11-25")],
    ids=["modern", "old", "sse", "rest"],
)
async def test_auto_finds_out_how_a_server_is_spoken_to(server: Any, version: str) -> None:
    async with Site(server) as site, session_at(site.url, "auto") as session:
        assert session.version == version
        await call(session)


@pytest.mark.parametrize(
    ("server", "remembered", "first"),
    [
        (rest, Remembered("rest", "2025-11-25"), "GET"),
        (legacy, Remembered("http", "2025-06-18"), "initialize"),
        (modern, Remembered("http", "2026-07-28"), "server/discover"),
    ],
    ids=["rest", "old", "modern"],
)
async def test_what_is_remembered_is_tried_first(server: Any, remembered: Remembered, first: str) -> None:
    async with Site(server) as site, session_at(site.url, "auto", remembered=remembered) as session:
        await call(session)
        assert site.rpcs()[0] == first
        assert "server/discover" not in site.rpcs()[1:]


def only_modern(asked: Asked, answering: Answering) -> None:
    if asked.method != "POST":
        answering.give(405)
    elif asked.rpc == "initialize":
        answering.give(400, error(asked.json["id"], -32601, "no such method"))
    else:
        modern(asked, answering)


async def test_what_is_remembered_and_no_longer_true_is_found_out_again() -> None:
    for remembered in (Remembered("rest", "2025-11-25"), Remembered("http", "2025-06-18")):
        async with Site(only_modern) as site, session_at(site.url, "auto", remembered=remembered) as session:
            assert session.version == "2026-07-28"


async def test_where_nothing_fits_the_likeliest_error_is_told() -> None:
    async with Site(lambda _, answering: answering.give(404, b"no such page", kind="text/plain")) as site:
        with pytest.raises(ConnectError, match=r"HTTP 404 Said.*no such page") as caught:
            async with session_at(site.url, "auto"):
                pass
        assert caught.value.http is not None
        assert [asked.method for asked in site.asked] == ["POST", "POST", "GET", "GET"]


@pytest.mark.parametrize("status", [429, 503])
async def test_a_server_that_is_busy_is_left_alone(status: int) -> None:
    async with Site(lambda _, answering: answering.give(status, Retry_After="3")) as site:
        with pytest.raises(ConnectError) as caught:
            async with session_at(site.url, "auto"):
                pass
        assert caught.value.retryable
        assert caught.value.http is not None
        assert caught.value.http.retry_after == 3.0
        assert len(site.asked) == 1
        assert caught.value.facts()["status"] == status


async def test_a_server_that_cannot_be_reached_is_asked_once() -> None:
    async with Site() as site:
        pass
    for remembered in (None, Remembered("sse", "2024-11-05")):
        with pytest.raises(ConnectError, match=r"cannot be reached at http://127.0.0.1") as caught:
            async with session_at(site.url, "auto", remembered=remembered):
                pass
        assert caught.value.retryable
        assert caught.value.http is None


async def test_a_pinned_modern_revision_is_looked_for_by_http_only() -> None:
    async with Site(rest) as site:
        with pytest.raises(ConnectError):
            async with session_at(site.url, "auto", pinned="2026-07-28"):
                pass
        assert {asked.method for asked in site.asked} == {"POST"}


async def test_no_time_is_an_error_too() -> None:
    async with Site(modern) as site:
        with pytest.raises(ConnectError):
            async with session_at(site.url, "auto", timeout=0.0):
                pass


class Failing(Signer):
    """Credentials that fail in a way that nobody foresaw."""

    broken = False

    async def headers(self, request: OutgoingHttp) -> dict[str, str]:
        if self.broken and (request.method == "POST" or not request.body):
            raise RuntimeError("a slip of ours")
        return {}


@pytest.mark.parametrize(
    ("server", "kind"), [(legacy, "http"), (Sse(), "sse"), (rest, "rest")], ids=["http", "sse", "rest"]
)
async def test_a_slip_of_ours_ends_the_wait_of_its_call_only(server: Any, kind: str) -> None:
    signer = Failing()
    async with Site(server) as site, session_at(site.url, kind, authorizer=signer) as session:
        signer.broken = True
        with pytest.raises(ConnectionLostError, match="a slip of ours"):
            await call(session)
        signer.broken = False
        assert await call(session)


@pytest.mark.parametrize("kind", ["http", "sse", "rest"])
async def test_a_slip_of_ours_while_connecting_is_an_error_at_once(kind: str) -> None:
    signer = Failing()
    signer.broken = True
    async with Site(legacy) as site:
        with pytest.raises(ConnectError, match="a slip of ours"):
            async with session_at(site.url, kind, authorizer=signer):
                pass


class Raising(Signer):
    """Credentials that cannot be renewed."""

    async def challenged(self, status: int, headers: Any, sent: Any) -> bool:
        self.challenges.append(len(headers) + len(sent))
        raise ConnectError(f"no login after {status}", server="far", retryable=False)


async def test_credentials_that_cannot_be_renewed_say_why() -> None:
    async with Site(lambda _, answering: answering.give(401)) as site:
        with pytest.raises(ConnectError, match="no login after 401"):
            async with session_at(site.url, "auto", authorizer=Raising()):
                pass
        assert len(site.asked) == 1


async def test_a_call_by_sse_is_left_when_the_session_is_closed() -> None:
    sse = Sse()
    hanging = asyncio.Event()

    async def hang(asked: Asked, answering: Answering) -> None:
        if asked.rpc == "tools/call":
            hanging.set()
            await answering.gone()
        else:
            await sse(asked, answering)

    async with Site(hang) as site, session_at(site.url, "sse") as session:
        calling = asyncio.create_task(call(session))
        await bounded(hanging.wait())
        await bounded(session.close())
        with pytest.raises(ConnectionLostError):
            await bounded(calling)
