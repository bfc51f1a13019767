"""The stdio transport, against real processes."""

from __future__ import annotations

import asyncio
import sys
import time
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from luthier.clock import SystemClock, settle
from luthier.errors import (
    CallTimeoutError,
    ConnectError,
    ConnectionLostError,
    MessageTooLargeError,
)
from luthier.wire import Handlers, Session, StdioLaunch, StdioTransport, open_session
from luthier.wire.watchdog import WATCHDOG, Watchdog
from tests.wire.support import BOUND, bounded, connect, descriptors, gone, launch, processes_of

if TYPE_CHECKING:
    from pathlib import Path


async def call(session: Session, name: str, *, timeout: float | None = BOUND, **arguments: Any) -> Any:
    return (await bounded(session.call_tool(name, arguments, timeout=timeout))).content


async def where(session: Session) -> tuple[int, int, int, str]:
    pid, group, sid, cwd = (await call(session, "where")).split(" ", 3)
    return int(pid), int(group), int(sid), cwd


async def test_a_server_is_spoken_to_and_ended_and_nothing_is_left() -> None:
    before = descriptors()
    session = await connect(launch("plain.py"))
    assert session.version == "2025-11-25"
    assert session.server_info == {"name": "plain", "version": "1"}
    pid, group, sid, _ = await where(session)
    assert pid == group == sid
    assert await call(session, "echo", text="ä\u2028\U0001f600\n") == "ä\u2028\U0001f600\n"
    assert [tool.name for tool in (await bounded(session.list_tools(timeout=BOUND))).tools] == ["echo"]
    began = time.monotonic()
    await bounded(session.close())
    assert time.monotonic() - began < 2.0
    assert processes_of(group) == []
    assert WATCHDOG.pid is None
    assert descriptors() == before
    await bounded(session.close())


async def test_environment_and_working_directory_are_as_given(tmp_path: Path) -> None:
    how = msgspec.structs.replace(launch("plain.py", A="b"), cwd=str(tmp_path))
    session = await connect(how)
    assert (await where(session))[3] == str(tmp_path)
    env = await call(session, "env")
    assert {name: value for name, value in env.items() if name != "LC_CTYPE"} == how.env
    await bounded(session.close())


@pytest.mark.parametrize(
    ("argv", "cwd", "says"),
    [
        (("/no/such/command", "x"), None, "/no/such/command: No such file or directory"),
        (("/etc/passwd",), None, "/etc/passwd: Permission denied"),
        ((sys.executable,), "/no/such/folder", "/no/such/folder: No such file or directory"),
        (("a\0b",), None, "embedded null byte"),
        ((), None, "cannot be started"),
    ],
    ids=["no command", "not executable", "no folder", "null byte", "nothing"],
)
async def test_what_cannot_be_started_is_one_error_at_once(
    argv: tuple[str, ...], cwd: str | None, says: str
) -> None:
    began = time.monotonic()
    with pytest.raises(ConnectError) as caught:
        await connect(StdioLaunch(server="s", argv=argv, env={}, cwd=cwd))
    assert time.monotonic() - began < 2.0
    assert says in str(caught.value)
    assert (caught.value.phase, caught.value.retryable, caught.value.server) == ("spawn", False, "s")
    assert ("cwd" in caught.value.hint) == (cwd is not None)


async def test_a_server_that_fails_at_start_is_one_error_with_status_and_stderr() -> None:
    with pytest.raises(ConnectError) as caught:
        await connect(launch("dies.py", "3"))
    error = caught.value
    assert (error.phase, error.exit_status, error.stderr_tail) == ("handshake", 3, "line 0: no such database")
    assert str(error).startswith(
        "Server 's' exited with status 3; the last line on its stderr: line 0: no such database."
    )
    assert WATCHDOG.pid is None


async def test_of_a_long_stderr_the_last_eight_kilobytes_are_kept() -> None:
    with pytest.raises(ConnectError) as caught:
        await connect(launch("dies.py", "1", "5000"))
    assert len(caught.value.stderr_tail.encode()) <= 8192
    assert caught.value.stderr_tail.endswith("line 4999: no such database")
    assert len(caught.value.stderr_tail) > 8000


async def test_a_server_that_exits_when_asked_for_its_revision_is_spoken_to_in_the_old_way() -> None:
    told: list[str] = []
    session = await connect(launch("plain.py", "shy"), handlers=Handlers(on_noise=told.append))
    assert session.version == "2025-11-25"
    assert await call(session, "echo", text="x") == "x"
    assert "started again" in told[0]
    await bounded(session.close())


async def test_a_mute_server_fails_within_its_timeout_and_is_ended() -> None:
    with pytest.raises(ConnectError, match=r"did not answer within 0\.5 s"):
        await connect(launch("plain.py", "mute"), timeout=0.5)
    assert WATCHDOG.pid is None


async def test_an_exit_fails_the_calls_in_flight_at_once_with_status_and_stderr() -> None:
    session = await connect(launch("plain.py"))
    calls = [
        asyncio.create_task(
            session.call_tool("exit", {"status": 7, "last": "first\nout of memory\n"}, timeout=None)
        ),
        asyncio.create_task(session.call_tool("echo", {"text": "never read"}, timeout=None)),
    ]
    for task in calls:
        with pytest.raises(ConnectionLostError, match="exited with status 7") as caught:
            await bounded(task, 5.0)
        assert (caught.value.exit_status, caught.value.sent) == (7, True)
        assert caught.value.stderr_tail == "first\nout of memory"
    assert isinstance(await bounded(session.wait_closed()), ConnectionLostError)
    await bounded(session.close())


@pytest.mark.parametrize(("number", "says"), [(9, "was ended by SIGKILL"), (63, "was ended by signal 63")])
async def test_a_death_by_signal_is_named(number: int, says: str) -> None:
    session = await connect(launch("plain.py"))
    with pytest.raises(ConnectionLostError, match=says):
        await call(session, "kill", signal=number, timeout=None)
    await bounded(session.close())


async def test_an_answer_without_its_newline_is_read_when_the_server_exits() -> None:
    session = await connect(launch("plain.py"))
    assert await call(session, "unfinished", timeout=None) == "no newline"
    with pytest.raises(ConnectionLostError, match="exited with status 0"):
        await call(session, "echo", text="x")
    await bounded(session.close())


@pytest.mark.parametrize(
    ("descriptor", "says"), [(1, "has closed its output"), (0, "no longer reads its input")]
)
async def test_a_server_that_closes_a_pipe_and_lives_on_is_lost_and_ended(descriptor: int, says: str) -> None:
    session = await connect(launch("plain.py"))
    group = (await where(session))[1]
    closing = asyncio.create_task(session.call_tool("close", {"descriptor": descriptor}, timeout=None))
    pinging = asyncio.create_task(_ping_until_lost(session))
    with pytest.raises(ConnectionLostError, match=says) as caught:
        await bounded(closing)
    assert caught.value.exit_status is None
    await bounded(pinging)
    await bounded(session.close())
    assert await gone(group)


async def _ping_until_lost(session: Session) -> None:
    while not session.closed:
        ping = asyncio.create_task(session.call_tool("echo", {"text": "x"}, timeout=0.1))
        await asyncio.gather(ping, return_exceptions=True)


async def test_a_flood_on_stderr_stops_nobody() -> None:
    session = await connect(launch("plain.py"))
    assert await call(session, "complain", text="x" * 1024, times=2048) == "complain"
    await bounded(session.close())


async def test_one_that_closes_its_stderr_goes_on() -> None:
    session = await connect(launch("plain.py"))
    with pytest.raises(CallTimeoutError):
        await call(session, "close", descriptor=2, timeout=0.2)
    await bounded(session.close())


async def test_large_messages_go_both_ways() -> None:
    session = await connect(launch("plain.py"))
    assert await call(session, "size", text="x" * 5_000_000) == "5000000"
    assert len(await call(session, "big", size=9_000_000)) == 9_000_000
    await bounded(session.close())


async def test_a_server_that_does_not_read_holds_its_callers_and_loses_nothing() -> None:
    session = await connect(launch("plain.py"))
    pause = asyncio.create_task(call(session, "pause", seconds=2.0))
    sizes = [asyncio.create_task(call(session, "size", text="x" * 200_000)) for _ in range(20)]
    await settle()
    with pytest.raises(CallTimeoutError) as caught:
        await call(session, "echo", text="x", timeout=0.1)
    assert not caught.value.sent
    assert await bounded(asyncio.gather(pause, *sizes)) == ["pause", *["200000"] * 20]
    await bounded(session.close())


async def test_an_answer_over_the_limit_fails_its_own_call_only() -> None:
    session = await connect(launch("plain.py", limit=100_000))
    large, small = (
        asyncio.create_task(session.call_tool("big", {"size": 1_000_000}, timeout=None)),
        asyncio.create_task(session.call_tool("echo", {"text": "x"}, timeout=None)),
    )
    with pytest.raises(MessageTooLargeError) as caught:
        await bounded(large)
    assert caught.value.tool == "big"
    assert (await bounded(small)).content == "x"
    await bounded(session.close())


@pytest.mark.parametrize(
    "written",
    [
        '\xef\xbb\xbf{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":"ok"}]}}\n',
        '{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":"ok"}]}}\r\n\r\n',
        'a log line\n{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":"ok"}]}}\n',
        '\xff\xfe\n{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":"ok"}]}}\n',
        '{\n "jsonrpc": "2.0",\n "id": $ID,\n "result": {"content": [\n {"type": "text", "text": "ok"}]}}\n',
    ],
    ids=["byte order mark", "CRLF and blank lines", "log line", "bad bytes", "several lines"],
)
async def test_an_answer_gets_through_whatever_surrounds_it(written: str) -> None:
    session = await connect(launch("plain.py"))
    assert await call(session, "raw", bytes=written, timeout=None) == "ok"
    assert await call(session, "echo", text="x") == "x"
    await bounded(session.close())


async def test_a_bad_byte_in_an_answer_is_replaced_and_the_call_ends() -> None:
    session = await connect(launch("plain.py"))
    written = '{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":"caf\xe9"}]}}\n'
    reply = await bounded(session.call_tool("raw", {"bytes": written}, timeout=None))
    assert reply.content == "caf\ufffd"
    assert reply.notes == ("bytes that are not UTF-8 were replaced",)
    await bounded(session.close())


async def test_sixty_four_calls_at_once_each_get_their_own_answer() -> None:
    session = await connect(launch("plain.py"))
    texts = [f"call {number}" for number in range(64)]
    assert await bounded(asyncio.gather(*[call(session, "echo", text=text) for text in texts])) == texts
    await bounded(session.close())


@pytest.mark.parametrize(
    ("habits", "least", "most"), [(["ignore-eof"], 2.0, 4.0), (["ignore-eof", "ignore-term"], 4.0, 7.0)]
)
async def test_a_stubborn_server_is_ended_within_bounds(habits: list[str], least: float, most: float) -> None:
    session = await connect(launch("plain.py", *habits))
    group = (await where(session))[1]
    hanging = asyncio.create_task(session.call_tool("echo", {"text": "x"}, timeout=None))
    began = time.monotonic()
    await bounded(asyncio.gather(session.close(), session.close()))
    assert least <= time.monotonic() - began < most
    assert processes_of(group) == []
    assert (await bounded(asyncio.gather(hanging, return_exceptions=True)))[0] is not None


async def test_children_that_an_exiting_server_leaves_are_ended_with_it() -> None:
    session = await connect(launch("plain.py", "orphan"))
    pid, group, _, _ = await where(session)
    assert len(processes_of(group)) == 2
    with pytest.raises(ConnectionLostError):
        await call(session, "exit", status=0, timeout=None)
    assert await gone(group, 5.0)  # without anybody closing the session
    assert pid not in processes_of(group)
    await bounded(session.close())


async def test_children_that_keep_the_pipes_open_do_not_hide_an_exit() -> None:
    session = await connect(launch("plain.py", "orphan"))
    began = time.monotonic()
    with pytest.raises(ConnectionLostError, match="status 5"):
        await call(session, "exit", status=5, timeout=None)
    assert time.monotonic() - began < 2.0
    await bounded(session.close())


async def test_a_cancelled_close_kills_the_group_at_once() -> None:
    session = await connect(launch("plain.py", "ignore-eof", "ignore-term"))
    group = (await where(session))[1]
    closing = asyncio.create_task(session.close())
    await settle()
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await bounded(closing)
    assert await gone(group, 2.0)
    await bounded(session.close())


async def test_a_transport_that_never_started_closes_in_silence() -> None:
    clock = SystemClock()
    transport = StdioTransport(launch("plain.py"), clock)
    await bounded(transport.close())
    assert transport.stderr_tail == ""


async def test_a_loop_is_never_blocked_by_a_long_line() -> None:
    session = await connect(launch("plain.py", limit=32 * 1024 * 1024))
    worst = 0.0

    async def tick() -> None:
        nonlocal worst
        while True:
            began = time.monotonic()
            await asyncio.sleep(0.005)
            worst = max(worst, time.monotonic() - began)

    ticking = asyncio.create_task(tick())
    assert len(await call(session, "big", size=20_000_000)) == 20_000_000
    ticking.cancel()
    assert worst < 0.5  # a fifth of it on a quiet machine; a quadratic reader takes twenty seconds
    await bounded(session.close())


async def test_where_there_can_be_no_watchdog_it_is_told_and_the_server_runs() -> None:
    told: list[str] = []
    clock = SystemClock()
    none = Watchdog("/no/such/shell")

    def start() -> StdioTransport:
        return StdioTransport(launch("plain.py"), clock, told.append, watchdog=none)

    session = await bounded(open_session(start, server="s", clock=clock, timeout=BOUND))
    assert "nothing watches over it" in told[0]
    assert await call(session, "echo", text="x") == "x"
    await bounded(session.close())
    await bounded(open_session_without_listener(none))


async def open_session_without_listener(watchdog: Watchdog) -> None:
    clock = SystemClock()
    transport = StdioTransport(launch("plain.py"), clock, watchdog=watchdog)
    session = await open_session(lambda: transport, server="s", clock=clock, timeout=BOUND)
    await session.close()
