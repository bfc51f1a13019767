"""Headers that a caller gives: they go along with each request of that call, and with no other."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from luthier.clock import FakeClock
from luthier.errors import CallTimeoutError, HttpError, ProtocolError
from luthier.secrets import Secret
from luthier.tools.headers import wrapped
from luthier.wire import Handlers
from luthier.wire.auth.authorizers import Bearer, Signed
from luthier.wire.http import OutgoingHttp
from luthier.wire.http.target import laid_over
from tests.wire.http.support import (
    Answering,
    Asked,
    Handler,
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
    target_of,
    text,
    until,
)
from tests.wire.http.test_legacy_sse import Sse

if TYPE_CHECKING:
    from collections.abc import Callable

ENTRY = Bearer(Secret("entry"), server="far")


def given(name: str) -> dict[str, Secret]:
    """Made in each test, for what is known to be secret is forgotten between them."""
    return wrapped({"authorization": f"Bearer {name}-canary"})


def keeping_a_session(asked: Asked, out: Answering) -> None:
    """An old server that forgets nothing."""
    found = result_of(asked) if asked.method == "POST" else None
    if found is None:
        out.give(202 if asked.method == "POST" else 405)
    else:
        out.give(400 if asked.rpc == "server/discover" else 200, found, mcp_session_id="s1")


def rest(asked: Asked, out: Answering) -> None:
    out.give(body={"tools": []} if asked.method == "GET" else text(asked.json["arguments"]["text"]))


def is_call(asked: Asked) -> bool:
    return asked.rpc == "tools/call" or asked.path.endswith("/tools/echo")


WAYS: dict[str, tuple[str, Callable[[], Handler]]] = {
    "modern": ("http", lambda: modern),
    "old": ("http", lambda: keeping_a_session),
    "sse": ("sse", Sse),
    "rest": ("rest", lambda: rest),
}


@pytest.mark.parametrize("way", WAYS)
async def test_headers_go_along_with_their_call_alone_in_place_of_the_entrys_own(way: str) -> None:
    kind, make = WAYS[way]
    async with (
        Site(make()) as site,
        session_at(
            site.url, kind, authorizer=ENTRY, headers={"X-Team": "all", "AUTHORIZATION": "spoilt"}
        ) as session,
    ):
        await bounded(session.list_tools(timeout=5))
        said = ["ada", "all", "bob"]
        sent = [{**given("ada"), "x-team": Secret("own")}, None, given("bob")]
        calls = (call(session, who, headers=one) for who, one in zip(said, sent, strict=True))
        assert await asyncio.gather(*calls) == said
        seen = {
            asked.json.get("params", asked.json)["arguments"]["text"]: asked
            for asked in site.asked
            if is_call(asked)
        }
        assert {who: asked.headers["authorization"] for who, asked in seen.items()} == {
            "ada": "Bearer ada-canary",
            "all": "Bearer entry",
            "bob": "Bearer bob-canary",
        }
        assert {who: asked.headers["x-team"] for who, asked in seen.items()} == {
            "ada": "own",
            "all": "all",
            "bob": "all",
        }
        others = [asked for asked in site.asked if not is_call(asked)]
        assert {asked.headers["authorization"] for asked in others} == {"Bearer entry"}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("status", [401, 403])
async def test_a_refused_authorization_is_the_callers_and_nothing_stronger_is_tried(
    way: str, status: int
) -> None:
    class Watched:
        asked_again = 0

        async def headers(self, _: OutgoingHttp) -> dict[str, str]:
            return {"Authorization": "Bearer entry"}

        async def challenged(self, *_: object) -> bool:
            self.asked_again += 1
            return True

        def signing(self) -> None:
            return None

    kind, make = WAYS[way]
    usual, watched = make(), Watched()

    async def picky(asked: Asked, out: Answering) -> None:
        if is_call(asked) and asked.headers["authorization"] != "Bearer entry":
            out.give(status, {"error": f"no {asked.headers['authorization']}"}, www_authenticate="Bearer")
        elif (done := usual(asked, out)) is not None:
            await done

    async with Site(picky) as site, session_at(site.url, kind, authorizer=watched) as session:
        with pytest.raises(HttpError, match="with the credentials given for this call") as caught:
            await call(session, headers=given("ada"))
        assert caught.value.status == status
        assert "the entry's own was not used" in caught.value.hint
        assert "ada-canary" not in repr((caught.value, vars(caught.value), caught.value.facts()))
        assert caught.value.answer.excerpt == '{"error":"no [redacted]"}'
        assert sum(map(is_call, site.asked)) == 1
        assert watched.asked_again == 0
        assert await call(session, "own") == "own"


async def test_the_signature_of_the_entry_goes_along_whoever_calls() -> None:
    signed = Signed(Bearer(Secret(""), server="far"), Secret("shared"), FakeClock())
    async with Site(modern) as site:
        target = target_of(site.url, authorizer=signed).given(given("ada"))
        assert target.authorizer is not None
        headers = await target.authorizer.headers(OutgoingHttp("POST", site.url, b"{}"))
        assert headers.keys() == {"X-Conductor-Timestamp", "X-Conductor-Signature"}
        assert not await target.authorizer.challenged(401, {}, {})


async def test_other_headers_leave_the_entrys_credentials_in_place() -> None:
    async with Site(modern) as site, session_at(site.url, authorizer=ENTRY) as session:
        await call(session, headers={"X-Tenant": Secret("t1")})
        assert site.asked[-1].headers["authorization"] == "Bearer entry"
        assert site.asked[-1].headers["x-tenant"] == "t1"


async def test_the_answer_to_a_call_is_resumed_with_its_headers() -> None:
    waiting: list[int] = []

    def cut(asked: Asked, out: Answering) -> None:
        if "last-event-id" in asked.headers:
            out.give(
                200,
                b'data: {"jsonrpc":"2.0","id":%d,"result":{"content":[]}}\n\n' % waiting[0],
                "text/event-stream",
            )
        elif asked.rpc == "tools/call":
            waiting.append(asked.json["id"])
            out.give(200, b"retry: 1\nid: e1\ndata:\n\n", kind="text/event-stream")
        else:
            keeping_a_session(asked, out)

    async with Site(cut) as site, session_at(site.url, authorizer=ENTRY) as session:
        await bounded(session.call_tool("echo", {}, timeout=10, headers=given("ada")))
        assert site.asked[-1].method == "GET"
        assert site.asked[-1].headers["authorization"] == "Bearer ada-canary"
        assert site.asked[-1].headers["mcp-session-id"] == "s1"


async def test_a_forgotten_session_is_begun_anew_under_the_entrys_own_credentials() -> None:
    ids = iter(("s1", "s2", "s3"))

    def forgetful(asked: Asked, out: Answering) -> None:
        if asked.rpc == "initialize":
            out.give(200, result_of(asked), mcp_session_id=next(ids))
        elif asked.rpc == "tools/call" and asked.headers["mcp-session-id"] == "s1":
            out.give(404)
        else:
            legacy(asked, out)

    async with Site(forgetful) as site, session_at(site.url, authorizer=ENTRY) as session:
        assert await call(session, "hi", headers=given("ada")) == "hi"
        tokens = [(asked.rpc, asked.headers["authorization"]) for asked in site.asked]
        assert [token for rpc, token in tokens if rpc == "initialize"] == ["Bearer entry"] * 2
        assert [token for rpc, token in tokens if rpc == "tools/call"] == ["Bearer ada-canary"] * 2


@pytest.mark.parametrize("way", ["old", "sse"])
async def test_a_call_is_called_off_with_its_headers_and_nothing_is_told_of_them(way: str) -> None:
    kind, make = WAYS[way]
    usual = make()
    noise: list[str] = []

    async def slow(asked: Asked, out: Answering) -> None:
        if asked.rpc == "tools/call" and way == "old":
            await out.gone()
        elif asked.rpc == "notifications/cancelled":
            out.give(500, f"no {asked.headers['authorization']}".encode())
        elif asked.rpc == "tools/call":
            out.give(202)
        elif (done := usual(asked, out)) is not None:
            await done

    handlers = Handlers(on_noise=noise.append)
    async with Site(slow) as site, session_at(site.url, kind, authorizer=ENTRY, handlers=handlers) as session:
        with pytest.raises(CallTimeoutError):
            await call(session, timeout=0.1, headers=given("ada"))
        await until(lambda: noise)
        assert site.asked[-1].rpc == "notifications/cancelled"
        assert site.asked[-1].headers["authorization"] == "Bearer ada-canary"
        assert "was not taken" in noise[0]
        assert "canary" not in noise[0]


async def test_a_task_is_followed_with_the_headers_of_its_call() -> None:
    def tasks(asked: Asked, out: Answering) -> None:
        id = asked.json["id"]
        match asked.rpc:
            case "tools/call":
                task = {"resultType": "task", "taskId": "t1", "status": "working", "pollIntervalMs": 1}
                out.give(body=answer(id, task))
            case "tasks/get":
                out.give(body=answer(id, {"taskId": "t1", "status": "completed", "result": text("done")}))
            case _:
                out.give(body=modern_result(asked))

    async with Site(tasks) as site, session_at(site.url, authorizer=ENTRY) as session:
        assert await call(session, headers=given("ada")) == "done"
        assert [asked.headers["authorization"] for asked in site.asked[-2:]] == ["Bearer ada-canary"] * 2
        assert site.asked[-1].rpc == "tasks/get"


async def test_a_call_that_is_asked_back_goes_on_with_its_headers() -> None:
    async def person(_: dict[str, Any]) -> dict[str, Any]:
        return {"action": "accept", "content": {}}

    def asks(asked: Asked, out: Answering) -> None:
        if asked.rpc == "tools/call" and "inputResponses" not in asked.json["params"]:
            wanted = {"who": {"method": "elicitation/create", "params": {"message": "?"}}}
            out.give(body=answer(asked.json["id"], {"resultType": "input_required", "inputRequests": wanted}))
        else:
            modern(asked, out)

    handlers = Handlers(elicitation=person)
    async with Site(asks) as site, session_at(site.url, authorizer=ENTRY, handlers=handlers) as session:
        await call(session, headers=given("ada"))
        assert [asked.headers["authorization"] for asked in site.asked[-2:]] == ["Bearer ada-canary"] * 2


async def test_an_error_that_echoes_what_was_given_does_not_show_it() -> None:
    def echoing(asked: Asked, out: Answering) -> None:
        seen = asked.headers["authorization"]
        out.give(200, error(asked.json["id"], -32000, f"no {seen}", {"tokens": [seen.split()[1]], "n": 1}))

    async with Site(on_call(echoing, modern)) as site, session_at(site.url) as session:
        with pytest.raises(ProtocolError) as caught:
            await call(session, headers=given("ada"))
        assert "canary" not in f"{caught.value} {caught.value.args} {caught.value.data}"
        assert caught.value.data == {"tokens": ["[redacted]"], "n": 1}


async def test_what_breaks_on_the_way_holds_no_request_as_its_cause() -> None:
    def odd(asked: Asked, out: Answering) -> None:
        out.writer.write(b"this is not HTTP at all\r\n\r\n")
        out.cut()

    async with Site(on_call(odd, modern)) as site, session_at(site.url) as session:
        with pytest.raises(ProtocolError, match="not HTTP") as caught:
            await call(session, headers=given("ada"))
        assert caught.value.__cause__ is None
        assert caught.value.__context__ is None


def test_a_target_shows_no_headers() -> None:
    target = target_of(
        "https://far.example/mcp?key=hidden", headers={"X-Key": "hidden"}, proxy="http://u:hidden@p"
    )
    assert repr(target.given(given("ada"))) == "HttpTarget('far', 'https://far.example/mcp')"
    assert target.given(None) is target


def test_of_two_headers_by_one_name_the_later_is_sent() -> None:
    assert laid_over({"X-A": "1", "b": "2"}, {"x-a": "3"}) == {"b": "2", "x-a": "3"}
