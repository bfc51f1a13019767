"""Servers by URL under the manager: every transport, found out or said, credentials, and what is refused."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from luthier.connect import ConnectionManager, Lesson, ServerRegistry, ServerReport
from luthier.context import CallContext
from luthier.errors import ConnectError, HttpError
from luthier.spec.project import Auth, ServerEntry
from luthier.wire.auth.tokens import MemoryTokens
from tests.connect.kit import call, wanted
from tests.wire.http.support import LEGACY, TOOLS, Answering, Asked, Site, bounded, on_call, result_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

KEYS = {"KEY": "s3cret"}


class Memory:
    """A memory that can be looked into."""

    def __init__(self) -> None:
        self.kept: dict[str, Lesson] = {}

    def lesson(self, key: str) -> Lesson | None:
        return self.kept.get(key)

    def remember(self, key: str, lesson: Lesson) -> None:
        self.kept[key] = lesson

    def forget(self, key: str) -> None:
        self.kept.pop(key, None)


def rest(asked: Asked, out: Answering) -> None:
    """A server of the REST dialect."""
    if asked.method == "GET" and asked.path.endswith("/tools"):
        out.give(body={"tools": TOOLS})
    elif asked.method == "POST" and asked.path.endswith("/tools/echo"):
        out.give(body={"content": [{"type": "text", "text": str(asked.json["arguments"])}]})
    else:
        out.give(404)


@asynccontextmanager
async def managed(
    site: Site, *, learned: Memory | None = None, **fields: Any
) -> AsyncIterator[ConnectionManager]:
    fields = {"transport": "auto", "url": site.url, "max_retries": 0, "timeout": 10.0, **fields}
    manager = ConnectionManager(
        ServerRegistry([ServerEntry(id="lute", **fields)]), learned=learned, environ=KEYS, tokens=MemoryTokens
    )
    try:
        yield manager
    finally:
        await bounded(manager.close_all())


async def echo(manager: ConnectionManager, **arguments: Any) -> Any:
    return (await bounded(call(manager, wanted("lute", "echo", **arguments)))).content


async def test_a_url_is_found_out_remembered_and_believed() -> None:
    learned = Memory()
    async with Site() as site:
        async with managed(site, learned=learned) as manager:
            await echo(manager)
            report = await bounded(manager.try_out("lute"))
        assert (report.ok, report.transport, report.protocol) == (True, "http", LEGACY)
        assert set(learned.kept.values()) == {Lesson(LEGACY, "http")}
        site.asked.clear()
        async with managed(site, learned=learned) as manager:
            await echo(manager)
        assert "server/discover" not in site.rpcs()


async def test_the_rest_dialect_is_found_out_and_when_it_is_gone_the_next_way_is() -> None:
    learned = Memory()
    async with Site(rest) as site:
        async with managed(site, learned=learned) as manager:
            assert await echo(manager, a=1) == "{'a': 1}"
            assert (await bounded(manager.try_out("lute"))).transport == "rest"
        site.answer = Site().answer
        async with managed(site, learned=learned) as manager:
            await echo(manager)
            assert (await bounded(manager.try_out("lute"))).transport == "http"


async def test_headers_token_and_signature_go_out_with_each_request_references_expanded() -> None:
    async with Site() as site:
        async with managed(
            site,
            headers={"X-Key": "${KEY}"},
            auth=Auth(type="bearer", token="t-${KEY}"),
            secret="${KEY}",
        ) as manager:
            await echo(manager)
        for asked in site.asked:
            assert asked.headers["x-key"] == "s3cret"
            assert asked.headers["authorization"] == "Bearer t-s3cret"
            assert asked.headers["x-conductor-signature"].startswith("sha256=")


async def test_what_may_not_be_reached_fails_its_own_server_and_nothing_is_sent() -> None:
    async with Site() as site, managed(site, url=f"${{NOWHERE:-{site.url}}}", max_retries=5) as manager:
        with pytest.raises(ConnectError, match="private or this machine's own"):
            await bounded(manager.connect("lute"))
        assert manager.state("lute") == "failed"
        assert site.asked == []


async def test_a_server_that_wants_credentials_needs_a_login_and_is_not_pestered() -> None:
    async with Site(lambda _, out: out.give(401)) as site, managed(site, max_retries=5) as manager:
        with pytest.raises(ConnectError) as caught:
            await bounded(manager.connect("lute"))
        assert manager.state("lute") == "needs-login"
        assert "servers login lute" in caught.value.hint
        assert len(site.asked) <= 2


async def test_without_somebody_to_log_in_an_interactive_entry_says_what_to_run() -> None:
    async with (
        Site(lambda _, out: out.give(401)) as site,
        managed(site, auth=Auth(type="oauth", interactive=True)) as manager,
    ):
        report = await bounded(manager.try_out("lute"))
        assert report.error is not None
        assert "luthier servers login lute" in report.error.hint


async def test_callers_that_share_nothing_have_sessions_of_their_own_each_ended_on_its_own() -> None:
    numbers = iter(range(9))

    def numbered(asked: Asked, out: Answering) -> None:
        found = result_of(asked) if asked.method == "POST" else None
        if asked.rpc == "initialize":
            out.give(200, found, mcp_session_id=f"s{next(numbers)}")
        elif found is None:
            out.give(202 if asked.method in ("POST", "DELETE") else 405)
        else:
            out.give(200, found)

    def sessions(rpc: str) -> list[str]:
        return [asked.headers["mcp-session-id"] for asked in site.asked if asked.rpc == rpc]

    async with Site(numbered) as site:
        async with managed(site, share=False, protocol=LEGACY) as manager:
            for name in ("ada", "bob", "ada"):
                context = CallContext(principals=("operator", name))
                await bounded(call(manager, wanted("lute", "echo", context=context)))
            assert sessions("tools/call") == ["s0", "s1", "s0"]
        assert sorted(sessions("DELETE")) == ["s0", "s1"]


async def test_a_try_leaves_the_connection_of_the_calls_alone() -> None:
    async with Site() as site, managed(site) as manager:
        await echo(manager)
        assert (await bounded(manager.try_out("lute"))).ok
        assert manager.state("lute") == "ready"
        await echo(manager)


@pytest.mark.parametrize("status", [404, 405, 410])
async def test_a_server_that_moved_out_is_looked_for_afresh_by_the_next_call(status: int) -> None:
    learned = Memory()
    async with Site() as site, managed(site, learned=learned) as manager:
        await echo(manager)
        answer, site.answer = site.answer, lambda _, out: out.give(status)
        with pytest.raises((HttpError, ConnectError)):
            await echo(manager)
        assert learned.kept == {}
        site.answer = answer
        await echo(manager)
        assert set(learned.kept.values()) == {Lesson(LEGACY, "http")}


@pytest.mark.parametrize("status", [404, 405, 410])
async def test_a_server_that_refuses_one_call_so_and_answers_the_rest_is_kept(status: int) -> None:
    learned = Memory()
    async with Site() as site, managed(site, learned=learned) as manager:
        await echo(manager)
        answer, site.answer = site.answer, on_call(lambda _, out: out.give(status))
        with pytest.raises(HttpError):
            await echo(manager)
        site.answer = answer
        await echo(manager)
        assert site.rpcs().count("initialize") == 1
        assert set(learned.kept.values()) == {Lesson(LEGACY, "http")}


async def test_a_server_that_is_busy_with_another_call_is_not_given_up_under_it() -> None:
    begun, go = asyncio.Event(), asyncio.Event()

    async def slow(asked: Asked, out: Answering) -> None:
        begun.set()
        await go.wait()
        out.give(body=result_of(asked))

    async with Site() as site, managed(site) as manager:
        await echo(manager)
        site.answer = slow
        held = asyncio.ensure_future(echo(manager, text="done"))
        await bounded(begun.wait())
        site.answer = lambda _, out: out.give(410)
        with pytest.raises(HttpError):
            await echo(manager)
        go.set()
        assert await held == "done"


async def test_whether_a_server_is_still_there_is_asked_no_longer_than_the_call_may_take() -> None:
    async def mute(asked: Asked, out: Answering) -> None:
        if asked.rpc == "tools/call":
            out.give(405)
        else:
            await out.gone()

    async with Site() as site, managed(site) as manager:
        await echo(manager)
        answer, site.answer = site.answer, mute
        with pytest.raises(HttpError):
            await bounded(call(manager, wanted("lute", "echo", timeout=0.3)), 1.5)
        site.answer = answer
        await echo(manager)
        assert site.rpcs().count("initialize") == 1


async def test_a_server_that_is_not_there_is_reported_with_phase_and_no_session() -> None:
    async with Site() as site:
        url = site.url
    async with managed(site, url=url) as manager:
        report: ServerReport = await bounded(manager.try_out("lute"))
    assert not report.ok
    assert (report.transport, report.protocol, report.tools) == ("", "", ())
    document = report.to_json()
    assert document["ok"] is False
    assert document["error"]["kind"] == "connect"
    assert "lute" in document["error"]["message"]
