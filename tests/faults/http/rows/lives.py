"""Rows about how connections by HTTP begin, are lost and begin anew, and about several servers at once."""

from __future__ import annotations

import asyncio
import socket
import time
from typing import TYPE_CHECKING

import pytest

from luthier.errors import CallTimeoutError, ConnectError, WireError
from luthier.events import ServerReady, ServerStopped
from tests.faults.bench import LEGACY, MODERN, House, until
from tests.faults.http.table import AUTO, BOTH, LEGACY_ONLY, MODERN_ONLY, own, row
from tests.faults.peer import HANDSHAKE
from tests.faults.rows.lists import eventually, has

if TYPE_CHECKING:
    from tests.faults.http.bench import HttpBench


@row("25", "forgetful", eras=LEGACY_ONLY, restarts=True)
async def a_lost_session_is_begun_anew_once_for_all_calls_together(house: House) -> None:
    await house.call("forget")
    replies = await asyncio.gather(*(house.call("echo", n=n) for n in range(12)))
    assert [reply.content for reply in replies] == [{"n": n} for n in range(12)]
    assert len(house.journal.heard("initialize")) == 2
    assert sorted(call["n"] for call in house.journal.calls("echo")) == list(range(12)), "a call ran twice"
    first, second = (line for line in house.journal.asked() if line["heard"].get("method") == "initialize")
    assert "mcp-session-id" not in first["headers"]
    assert "mcp-session-id" not in second["headers"]


@row("25", "forgetful", ("always",), eras=LEGACY_ONLY, restarts=True)
async def a_server_that_forgets_every_session_ends_in_an_error_and_no_circle(house: House) -> None:
    with pytest.raises(WireError):
        await house.call("act", timeout=5)
    assert len(house.journal.heard("initialize")) <= 3
    assert house.journal.calls("act") == []


@own("25", "plain", eras=LEGACY_ONLY)
async def a_session_is_echoed_and_ended_with_its_connection(bench: HttpBench) -> None:
    async with bench.house() as house:
        await house.call("echo")
        (session,) = bench.server.sessions
        after = [line for line in bench.journal.asked() if line["heard"].get("method") != "initialize"]
        assert {line["headers"].get("mcp-session-id") for line in after} == {session}
        assert {line["headers"].get("mcp-protocol-version") for line in after} == {LEGACY}
    assert bench.server.sessions == set()
    assert len(bench.journal.asked("DELETE")) == 1


@own("31", "redirects", ("slash", "307"), eras=BOTH)
async def a_redirect_to_a_slash_is_followed_with_method_body_and_credentials(bench: HttpBench) -> None:
    bench.server.path = "/mcp"
    headers = {"Authorization": "Bearer abc"}
    entry = bench.entry(headers=headers)
    bench.server.path = "/mcp/"
    async with bench.house(entry) as house:
        assert (await house.call("echo", a=1)).content == {"a": 1}
    assert {line["headers"].get("authorization") for line in bench.journal.asked()} == {"Bearer abc"}


def followed(kind: str, code: str) -> None:
    @own("31", "redirects", (kind, code), eras=BOTH)
    async def a_redirect_within_the_origin_is_followed(bench: HttpBench) -> None:
        async with bench.house(bench.entry(url=bench.server.base + "/mcp")) as house:
            assert (await house.call("echo", a=1)).content == {"a": 1}


def refused(kind: str, code: str) -> None:
    @own("31", "redirects", (kind, code), eras=(*BOTH, "auto"))
    async def any_other_redirect_is_named_and_not_followed(bench: HttpBench) -> None:
        entry = bench.entry(url=bench.server.base + "/mcp", headers={"Authorization": "Bearer abc"})
        async with bench.house(entry) as house:
            with pytest.raises(WireError) as raised:
                await house.call("echo", a=1)
        assert "redirect" in str(raised.value)
        if kind == "away":
            assert "localhost" in str(raised.value)
        assert all(line["path"] == "/mcp" for line in bench.journal.asked())


for each in ("whole", "slash"):
    followed(each, "308")
for pair in (("away", "307"), ("circle", "307"), ("slash", "302"), ("nowhere", "307")):
    refused(*pair)


def noticed(kind: str) -> None:
    @row("33", "notices", (kind,), eras=LEGACY_ONLY)
    async def whatever_answers_a_notification_is_well(house: House) -> None:
        assert (await house.call("echo", a=1)).content == {"a": 1}
        assert house.watcher.of(ServerStopped) == []


for each in ("200", "202", "204", "200json", "200null", "200sse"):
    noticed(each)


@own("33", "notices", ("500",), eras=LEGACY_ONLY)
async def a_refused_notification_is_no_hang(bench: HttpBench) -> None:
    async with bench.house(bench.entry(timeout_ms=3000)) as house:
        began = time.monotonic()
        await asyncio.gather(house.call("echo", a=1), return_exceptions=True)
        assert time.monotonic() - began < 2


def at_start(kind: str) -> None:
    @own("37", "at_start", (kind,), eras=(*BOTH, "auto"))
    async def a_server_that_cannot_be_connected_is_one_error_and_costs_nothing_afterwards(
        bench: HttpBench,
    ) -> None:
        async with bench.house(bench.entry(timeout_ms=800)) as house:
            began = time.monotonic()
            with pytest.raises(WireError) as raised:
                await house.call("echo")
            assert time.monotonic() - began < 2.5
            assert raised.value.server == "faulty"
            if kind.isdigit():
                assert kind in str(raised.value)
            asked, cpu = len(bench.journal.lines()), time.process_time()
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.3):
                    await asyncio.Event().wait()
            assert time.process_time() - cpu < 0.15, "something spins"
            assert len(bench.journal.lines()) <= asked + 1


for each in ("530", "500", "401", "404", "silent", "reset", "closed"):
    at_start(each)


@own("37", "plain", eras=AUTO)
async def a_closed_port_is_named_at_once(bench: HttpBench) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    async with bench.house(bench.entry(url=f"http://127.0.0.1:{port}/mcp")) as house:
        began = time.monotonic()
        with pytest.raises(ConnectError) as raised:
            await house.call("echo")
        assert time.monotonic() - began < 2
        assert str(port) in str(raised.value)
        assert "refused" in str(raised.value).lower()


@own("35", "login_page", ("at-once",), eras=(*BOTH, "auto"))
async def a_login_page_at_the_start_is_named_for_what_it_is(bench: HttpBench) -> None:
    async with bench.house() as house:
        with pytest.raises(WireError) as raised:
            await house.call("echo")
        assert "login page" in str(raised.value)
        assert "url" in raised.value.hint
        assert "speak" not in str(raised.value)


# Several servers, tasks and callers


@own("46", "plain", eras=BOTH)
async def many_tasks_share_a_connection_that_another_task_closes(bench: HttpBench) -> None:
    async with bench.house() as house:
        await asyncio.gather(*(asyncio.create_task(house.call("echo", n=n)) for n in range(10)))
        assert len(bench.journal.heard("initialize")) <= 1
        await asyncio.create_task(house.manager.reconnect("faulty"))
        assert (await house.call("echo", a=1)).content == {"a": 1}
        await asyncio.create_task(house.manager.close_all())


@own("47", "plain")
async def a_dead_server_costs_the_others_nothing(bench: HttpBench) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    dead = {"url": f"http://127.0.0.1:{port}/mcp", "transport": "http", "max_retries": 0}
    async with bench.runtime({"well": bench.fields(), "dead": dead}) as rt:
        assert (await rt.call("mcp://well/echo", a=1)).content == {"a": 1}
        with pytest.raises(ConnectError):
            await rt.call("mcp://dead/echo")
        assert (await rt.call("mcp://well/echo", a=2)).content == {"a": 2}


@row("49", "upstream_errors")
async def an_error_of_a_tool_says_nothing_of_the_health_of_its_server(house: House) -> None:
    for _ in range(20):
        assert (await house.call("act")).is_error
    assert house.manager.state("faulty") == "ready"
    assert house.watcher.of(ServerStopped) == []


@row("50", "slow_tools", eras=LEGACY_ONLY)
async def a_cancelled_task_ends_at_once_and_the_server_is_told(house: House) -> None:
    task = asyncio.create_task(house.call("act"))
    await house.journal.called("act")
    began = time.monotonic()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert time.monotonic() - began < 1
    (request,) = house.journal.heard("tools/call")
    (notice, *_) = await house.journal.hears("notifications/cancelled")
    assert notice["params"]["requestId"] == request["id"]


@row("50", "hangs", eras=MODERN_ONLY)
async def a_cancelled_call_is_cancelled_by_closing_its_stream(house: House) -> None:
    for n, stream in enumerate((False, True)):
        task = asyncio.create_task(house.call("act", stream=stream))
        await house.journal.called("act", times=n + 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await until(lambda: sum("left" in line for line in house.journal.lines()) == n + 1)  # noqa: B023
    assert house.journal.heard("notifications/cancelled") == []


@row("53", "slow_tools")
async def a_call_that_timed_out_is_not_run_again(house: House) -> None:
    with pytest.raises(CallTimeoutError) as raised:
        await house.call("act", timeout=0.3)
    assert raised.value.sent
    assert (await house.call("echo", a=1)).content == {"a": 1}
    assert len(house.journal.calls("act")) == 1


@row("10", "slow_tools")
async def slow_calls_hold_up_no_other(house: House) -> None:
    slow = [asyncio.create_task(house.call("act")) for _ in range(20)]
    await house.journal.called("act", times=20)
    assert (await house.call("echo", a=1)).content == {"a": 1}
    assert not any(task.done() for task in slow)
    await house.call("release")
    assert [reply.content for reply in await asyncio.gather(*slow)] == ["released"] * 20


@row("89", "changing")
async def a_changed_list_is_read_again_and_a_broken_one_leaves_the_old(house: House) -> None:
    assert "grown0" not in await house.names()
    await until(lambda: house.journal.heard("subscriptions/listen") != [] or house.journal.asked("GET") != [])
    await house.call("grow", times=3)
    await eventually(lambda: has(house, "grown2"))
    await house.call("break_list")
    asked = len(house.journal.heard("tools/list"))
    await eventually(lambda: has(house, "grown2"))
    await house.journal.hears("tools/list", times=asked)
    assert "grown2" in await house.names()


# Revisions


def one_era(era: str, how: str) -> None:
    @own("55", "one_era", (era, how))
    async def the_era_is_found_out_and_remembered(bench: HttpBench) -> None:
        async with bench.house() as house:
            assert (await house.call("echo", a=1)).content == {"a": 1}
            assert [event.protocol for event in house.watcher.of(ServerReady)] == [
                LEGACY if era == "legacy" else MODERN
            ]
            probes = len(bench.journal.heard("server/discover"))
            await house.manager.reconnect("faulty")
            assert (await house.call("echo", a=2)).content == {"a": 2}
            if era == "legacy":
                assert len(bench.journal.heard("server/discover")) == probes, "it was probed again"


for pair in (
    ("legacy", "400"),
    ("legacy", "404"),
    ("legacy", "405"),
    ("legacy", "-32601"),
    ("legacy", "html"),
    ("legacy", "500"),
    ("modern", ""),
):
    one_era(*pair)


@own("55", "plain", eras=AUTO)
async def every_revision_of_the_handshake_is_spoken(bench: HttpBench) -> None:
    for version in HANDSHAKE[1:]:
        async with bench.house(bench.entry(protocol=version)) as house:
            assert (await house.call("echo", a=1)).content == {"a": 1}
            assert bench.journal.heard("initialize")[-1]["params"]["protocolVersion"] == version


@own("55", "one_era", ("modern", ""), eras=LEGACY_ONLY)
async def a_pinned_era_that_the_server_does_not_speak_is_named(bench: HttpBench) -> None:
    async with bench.house() as house:
        with pytest.raises(ConnectError) as raised:
            await house.call("echo")
        assert "protocol" in str(raised.value)


@row("h5", "headers_differ", eras=MODERN_ONLY)
async def headers_that_do_not_fit_are_put_right_by_a_fresh_list_and_one_more_try(house: House) -> None:
    assert (await house.call("act", region="eu")).content == "eu"
    assert len(house.journal.calls("act")) == 1


# Credentials


@own("98", "wants_a_token", ("abc",), eras=BOTH)
async def a_header_is_expanded_and_sent_with_every_request(bench: HttpBench) -> None:
    entry = bench.entry(headers={"Authorization": "Bearer ${env.TOKEN}"})
    async with bench.house(entry, environ={"TOKEN": "abc"}) as house:
        assert (await house.call("echo", a=1)).content == {"a": 1}
    assert {line["headers"].get("authorization") for line in bench.journal.lines() if "asked" in line} == {
        "Bearer abc"
    }


@own("97", "wants_a_token", ("abc",))
async def credentials_that_cannot_be_had_fail_their_own_server_only(bench: HttpBench) -> None:
    servers = {
        "well": bench.fields(auth={"type": "bearer", "token": "abc"}),
        "poor": bench.fields(auth={"type": "bearer", "token": "${env.NO_SUCH_TOKEN}"}),
        "wrong": bench.fields(auth={"type": "bearer", "token": "xyz"}),
    }
    async with bench.runtime(servers) as rt:
        assert (await rt.call("mcp://well/echo", a=1)).content == {"a": 1}
        with pytest.raises(WireError, match="NO_SUCH_TOKEN"):
            await rt.call("mcp://poor/echo")
        with pytest.raises(WireError) as raised:
            await rt.call("mcp://wrong/echo")
        assert "luthier servers login wrong" in str(raised.value)
        assert (await rt.call("mcp://well/echo", a=2)).content == {"a": 2}
