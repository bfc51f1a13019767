"""Rows about processes: how servers start, how they end, and what they leave behind."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from luthier import Runtime
from luthier.connect import MemoryLearned
from luthier.errors import CallTimeoutError, ConnectError, ConnectionLostError, WireError
from luthier.events import ServerFailed, ServerStopped
from tests.faults.bench import ROOT, Bench, House, lives, marked, until
from tests.faults.rows.table import AUTO, BOTH, own, row

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

UVX = f"""#!/bin/sh
exec {sys.executable} -m tests.faults.faulty_stdio silent_start
"""

SHELL = f"""#!/bin/sh
{sys.executable} -m tests.faults.faulty_stdio plain
true
"""


# Starting


@own("11", "exit_at_start", eras=("legacy", "modern", "auto"))
async def a_server_that_dies_at_its_start_is_one_error_with_status_and_last_words(bench: Bench) -> None:
    async with bench.house() as house:
        began = time.monotonic()
        with pytest.raises(ConnectError) as raised:
            await house.call("echo")
        assert time.monotonic() - began < 3
        assert raised.value.exit_status == 3
        assert "unable to open database file" in raised.value.stderr_tail
        assert "unable to open database file" in str(raised.value)
        assert raised.value.server == "faulty"
        assert [event.retry_in for event in house.watcher.of(ServerFailed)] == [None]


@own("11", "silent_start", eras=("legacy", "auto"))
async def a_silent_server_fails_when_its_time_to_start_is_up(bench: Bench) -> None:
    async with bench.house(bench.entry(timeout_ms=700, tool_timeout_ms=30_000)) as house:
        with pytest.raises(WireError) as raised:
            await house.call("echo")
        assert "0.7 s" in str(raised.value)
        assert raised.value.server == "faulty"
        await bench.nothing_is_left()


@own("11", "only_prints", eras=("legacy", "auto"), within=12)
async def a_program_that_only_prints_is_named_when_its_time_is_up_and_ended_behind_that(bench: Bench) -> None:
    async with bench.house(bench.entry(timeout_ms=700)) as house:
        began = time.monotonic()
        with pytest.raises(ConnectError, match=r"within 0\.7 s") as raised:
            await house.call("echo")
        assert time.monotonic() - began < 2  # its ending alone takes longer
        assert "no JSON-RPC" in str(raised.value)
        assert r"Serving \x1b[1mfiles\x1b[0m at port 8000" in str(raised.value)
        (pid,) = house.journal.starts()
        assert lives(pid)
        await house.manager.close_all()
        assert not lives(pid)


@own("11", "only_prints", within=12)
async def a_server_that_is_tried_out_in_vain_is_reported_with_its_own_time(bench: Bench) -> None:
    async with bench.house(bench.entry(timeout_ms=700)) as house:
        report = await house.manager.try_out("faulty")
        assert "no JSON-RPC" in str(report.error)
        assert report.seconds < 2


@own("13", "slow_start", ("1",))
async def the_time_to_start_is_a_setting_of_its_own(bench: Bench) -> None:
    entry = bench.entry(timeout_ms=10_000, tool_timeout_ms=500)
    async with bench.house(entry) as house:
        assert (await house.call("echo", a=1)).content == {"a": 1}


@own("13", "silent_start")
async def a_package_runner_that_is_too_slow_may_be_downloading(bench: Bench) -> None:
    runner = bench.root / "bin" / "uvx"
    runner.parent.mkdir()
    runner.write_text(UVX)
    runner.chmod(0o755)
    entry = bench.entry(command="uvx", args=["silent-start-server"], timeout_ms=500)
    async with bench.house(entry, environ={"PATH": f"{runner.parent}:{os.environ['PATH']}"}) as house:
        with pytest.raises(ConnectError, match="download"):
            await house.call("echo")


@own("13", "crash_loop", ("2",), eras=("modern",))
async def a_start_that_failed_is_tried_again(bench: Bench) -> None:
    async with bench.house(bench.entry(max_retries=2)) as house:
        assert (await house.call("echo", a=1)).content == {"a": 1}
        retries = [event.retry_in for event in house.watcher.of(ServerFailed)]
        assert len(retries) == 1
        assert 0.5 <= retries[0] <= 1.0


# Ending


@own("14", "ignore_eof", within=10)
async def a_server_that_does_not_see_its_input_end_is_told_to_terminate(bench: Bench) -> None:
    async with bench.house() as house:
        assert (await house.call("echo", a=1)).content == {"a": 1}
        began = time.monotonic()
        await house.manager.close_all()
        assert time.monotonic() - began < 3.5


@own("14", "ignore_term", within=12)
async def a_server_that_holds_on_is_killed_after_two_waits(bench: Bench) -> None:
    async with bench.house() as house:
        assert (await house.call("echo", a=1)).content == {"a": 1}
        began = time.monotonic()
        await house.manager.close_all()
        assert 3.5 < time.monotonic() - began < 6


@own("15", "grandchild", within=10)
async def what_a_server_started_and_left_behind_is_ended_with_it(bench: Bench) -> None:
    async with bench.house() as house:
        await house.pid()
        (worker,) = house.journal.workers()
        assert lives(worker)
    assert not lives(worker)


@own("15", "grandchild", within=10)
async def the_children_of_a_server_that_exits_by_itself_are_ended(bench: Bench) -> None:
    async with bench.house() as house:
        with pytest.raises(ConnectionLostError) as raised:
            await house.call("act")
        assert raised.value.exit_status == 0
        (worker,) = house.journal.workers()
        await until(lambda: not lives(worker), what="the worker is gone while the house stands")


@own("15", "inherits_pipes", within=10)
async def a_child_that_holds_the_pipes_open_does_not_hide_the_death_of_its_server(bench: Bench) -> None:
    async with bench.house() as house:
        with pytest.raises(ConnectionLostError) as raised:
            await house.call("act", timeout=30)
        assert raised.value.exit_status == 9
        (worker,) = house.journal.workers()
        await until(lambda: not lives(worker), what="the worker is gone while the house stands")


@own("15", "plain", within=10)
async def a_server_behind_a_shell_is_ended_with_the_shell(bench: Bench) -> None:
    script = bench.root / "start.sh"
    script.write_text(SHELL)
    async with bench.house(bench.entry(command="sh", args=[str(script)])) as house:
        shell_and_server = set(marked(bench.mark))
        pid = await house.pid()
        shell_and_server |= set(marked(bench.mark))
        assert pid in shell_and_server
        assert len(shell_and_server) >= 2


class Host:
    """A host process of its own, in which a server stands and a call may hang; run by host.py."""

    def __init__(self, bench: Bench, how: str) -> None:
        self.bench = bench
        entry = bench.entry()
        with tempfile.NamedTemporaryFile(dir=bench.root, prefix="host-", delete=False) as words:
            self.stderr = Path(words.name)  # a file, so that whoever says much is not held up
            python = (sys.executable, "-X", "faulthandler")
            self.process = subprocess.Popen(
                [*python, "-m", "tests.faults.host", how, bench.mode, *bench.arguments],
                cwd=ROOT,
                env={**os.environ, **entry.env, "FAULTY_ROOT": str(bench.root)},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=words,
            )

    async def ends(self) -> int:
        await until(lambda: self.process.poll() is not None, what="the host has ended")
        return int(self.process.returncode)

    @property
    def words(self) -> str:
        """How it ended, if it did, and what it said."""
        status = self.process.poll()
        return f"host {self.process.pid}, exit status {status}, said:\n{self.stderr.read_text()}"

    def abort(self) -> None:
        """End one that is late; it says where it was."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGABRT)
            self.process.wait()


@contextmanager
def hosts_of(bench: Bench, *numbers: signal.Signals) -> Iterator[dict[signal.Signals, Host]]:
    """A host for each of these signals; what they said is told with whatever goes wrong."""
    hosts = {number: Host(bench, "run") for number in numbers}
    try:
        yield hosts
    except BaseException as error:
        for host in hosts.values():
            host.abort()
            error.add_note(host.words)
        raise


async def at_work(bench: Bench, hosts: dict[signal.Signals, Host]) -> None:
    """Return once every host has made its call, which none of them ends before."""

    def stand() -> bool:
        assert not [host for host in hosts.values() if host.process.poll() is not None], "a host has ended"
        return len(bench.journal.calls("echo")) == len(hosts)

    await until(stand, what="all hosts are at work")


@own("15", "ignore_eof", within=40)
async def a_host_that_is_asked_to_end_takes_its_servers_along(bench: Bench) -> None:
    with hosts_of(bench, signal.SIGTERM, signal.SIGINT) as hosts:
        await at_work(bench, hosts)
        for number, host in hosts.items():
            host.process.send_signal(number)
        for number, host in hosts.items():
            assert await host.ends() in {128 + number, -number}
    await bench.nothing_is_left()


@own("15", "grandchild", within=40)
async def a_watchdog_ends_the_servers_of_a_host_that_was_killed_or_lost_its_terminal(bench: Bench) -> None:
    with hosts_of(bench, signal.SIGKILL, signal.SIGHUP) as hosts:
        await at_work(bench, hosts)
        workers = bench.journal.workers()
        for number, host in hosts.items():
            host.process.send_signal(number)
        for number, host in hosts.items():
            assert await host.ends() == -number
    await until(lambda: not any(map(lives, workers)), what="the workers are gone")
    await bench.nothing_is_left()


@own("51", "plain", within=25)
async def an_interpreter_that_forgot_to_close_still_ends_and_leaves_nothing(bench: Bench) -> None:
    host = Host(bench, "forget")
    assert await host.ends() == 0, host.words
    await bench.nothing_is_left()


# Losing a server


@own("22", "dies_in_call", eras=BOTH)
async def a_death_in_a_call_says_why_even_when_the_reason_comes_after_the_end_of_output(bench: Bench) -> None:
    async with bench.house() as house:
        await house.pid()
        calls = [house.call("act"), house.call("act"), house.call("act")]
        errors = await asyncio.gather(*calls, return_exceptions=True)
        for error in errors:
            assert isinstance(error, ConnectionLostError)
            assert error.sent
            assert error.exit_status == 4
            assert "out of cheese" in error.stderr_tail
            assert "out of cheese" in str(error)
        assert len(house.watcher.of(ServerStopped)) == 1
        assert (await house.call("echo", a=1)).content == {"a": 1}  # started again by the next call
        assert len(house.journal.starts()) == 2


@own("w5", "unfinished_line", eras=BOTH)
async def an_answer_that_lacks_its_newline_counts_when_its_server_ends(bench: Bench) -> None:
    async with bench.house() as house:
        assert (await house.call("act")).content == "just in time"


@own("w6", "stops_reading", within=10)
async def a_server_that_no_longer_reads_costs_its_calls_their_time_and_no_more(bench: Bench) -> None:
    async with bench.house() as house:
        await house.call("act")
        for text, sent in (("read", True), ("x" * 1024 * 1024, True), ("kept back", False)):
            with pytest.raises(CallTimeoutError) as raised:
                await house.call("echo", timeout=0.3, text=text)
            assert raised.value.sent == sent, text[:10]  # what stands in the pipe may yet be read


@own("22", "closes_stdout", eras=BOTH)
async def a_server_that_shuts_its_output_is_lost_at_once_and_ended(bench: Bench) -> None:
    async with bench.house() as house:
        first = await house.pid()
        with pytest.raises(ConnectionLostError):
            await house.call("act", timeout=30)
        await until(lambda: not lives(first), what="the mute server is gone")
        assert await house.pid() != first


# Several connections


@own("17", "plain", eras=BOTH)
async def connecting_anew_closes_the_old_process_first(bench: Bench) -> None:
    async with bench.house() as house:
        before = await house.pid()
        for _ in range(2):
            await house.manager.reconnect("faulty")
            assert not lives(before)
            after = await house.pid()
            assert [pid for pid in marked(bench.mark) if pid in house.journal.starts()] == [after]
            before = after


@own("17", "slow_start", ("0.5",))
async def many_wishes_and_reconnections_at_once_start_one_server(bench: Bench) -> None:
    async with bench.house() as house:
        waiting = [asyncio.create_task(house.call("echo", n=n)) for n in range(10)]
        await until(lambda: bool(list(marked(bench.mark))), what="a server is starting")
        replies = await asyncio.gather(*waiting)
        assert [reply.content["n"] for reply in replies] == list(range(10))
        assert len(house.journal.starts()) == 1


@own("18", "plain")
async def each_server_has_its_own_time_to_start(bench: Bench) -> None:
    slow = bench.entry("1", id="slow", mode="slow_start", timeout_ms=10_000)
    mute = bench.entry(id="mute", mode="silent_start", timeout_ms=500)
    async with bench.house(bench.entry(), slow, mute) as house:
        well = await house.pid()
        ids = ["faulty", "slow", "mute"]
        calls = [house.call("echo", server=id, a=1) for id in ids]
        good, late, never = await asyncio.gather(*calls, return_exceptions=True)
        assert isinstance(never, WireError)
        assert not isinstance(good, BaseException)
        assert not isinstance(late, BaseException)
        assert late.content == {"a": 1}
        assert await house.pid() == well  # not touched by what befell the others


@own("46", "plain", within=15)
async def one_connection_serves_many_tasks_and_is_closed_from_another(bench: Bench) -> None:
    async with bench.house() as house:

        async def user(n: int) -> object:
            return (await house.call("echo", n=n)).content

        tasks = [asyncio.create_task(user(n)) for n in range(20)]
        for task in tasks[::4]:
            task.cancel()
        answers = await asyncio.gather(*tasks, return_exceptions=True)
        for n, answer in enumerate(answers):
            assert isinstance(answer, asyncio.CancelledError) if n % 4 == 0 else answer == {"n": n}
        assert len(house.journal.starts()) == 1
        await asyncio.create_task(house.manager.close_all())


@own("46", "slow_start", ("0.5",))
async def whoever_asked_first_may_leave_while_others_wait(bench: Bench) -> None:
    async with bench.house() as house:
        first = asyncio.create_task(house.call("echo"))
        await until(lambda: bool(list(marked(bench.mark))), what="a server is starting")
        second = asyncio.create_task(house.call("echo", a=1))
        await asyncio.sleep(0)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        assert (await second).content == {"a": 1}
        assert len(house.journal.starts()) == 1


@own("46", "plain")
async def an_abandoned_generator_that_holds_a_call_breaks_nothing(bench: Bench) -> None:
    async with bench.house() as house:

        async def stream() -> AsyncIterator[object]:
            while True:
                yield (await house.call("echo", a=1)).content

        async for content in stream():
            assert content == {"a": 1}
            break
        assert (await house.call("echo", a=2)).content == {"a": 2}


@own("47", "plain", within=10)
async def a_dead_server_costs_its_own_tools_only(bench: Bench) -> None:
    servers = {
        "well": bench.fields(),
        "dead": bench.fields(mode="exit_at_start"),
        "absent": bench.fields(command="no-such-command"),
    }
    async with bench.runtime(servers) as rt:
        listing = await rt.tools.load()
        assert {str(tool.uri) for tool in listing.tools} >= {"mcp://well/echo", "mcp://well/pid"}
        assert set(listing.failed) == {"dead", "absent"}
        assert all(isinstance(error, ConnectError) for error in listing.failed.values())
        assert (await rt.call("mcp://well/echo", a=1)).content == {"a": 1}


@own("47", "exit_at_start", within=10)
async def a_server_that_is_required_is_waited_for_and_missed(bench: Bench) -> None:
    servers = {"well": bench.fields(mode="plain"), "dead": bench.fields(required=True)}
    with pytest.raises(ConnectError, match="unable to open database file"):
        async with Runtime.open({"mcpServers": servers}, root=bench.root):
            pytest.fail("the runtime must not start without it")
    await bench.nothing_is_left()


@row("49", "tool_errors")
async def failing_tools_do_not_make_a_server_unhealthy(house: House) -> None:
    for _ in range(10):
        assert (await house.call("act")).is_error
        with pytest.raises(WireError):
            await house.call("protocol")
    assert house.manager.state("faulty") == "ready"
    assert house.watcher.of(ServerStopped) == []


@own("51", "plain")
async def a_second_runtime_in_the_same_process_is_no_trouble(bench: Bench) -> None:
    async with bench.runtime() as rt:
        one = await rt.call("mcp://faulty/pid")
        async with Runtime.open({"mcpServers": {"faulty": bench.fields()}}, root=bench.root) as other:
            assert (await other.call("mcp://faulty/pid")).content != one.content
        assert (await rt.call("mcp://faulty/pid")).content == one.content


# Environment


@row("19", "environment", eras=AUTO, fields={"env": {"OWN": "x"}})
async def an_entry_adds_to_the_environment_and_replaces_nothing(house: House) -> None:
    seen = (await house.call("act")).content["env"]
    assert seen["OWN"] == "x"
    assert set(os.environ["PATH"].split(":")) <= set(seen["PATH"].split(":"))
    assert seen["HOME"] == os.environ["HOME"]


@own("0.14", "environment")
async def certificates_are_passed_on_and_secrets_of_the_host_are_not(bench: Bench) -> None:
    environ = {
        "PATH": os.environ["PATH"],
        "SSL_CERT_FILE": "/etc/ssl/certs/ca-certificates.crt",
        "HTTPS_PROXY": "http://proxy.example:3128",
        "AWS_SECRET_ACCESS_KEY": "hush",
        "CHOSEN": "chosen",
    }
    async with bench.house(bench.entry(inherit_env=["CHOSEN"]), environ=environ) as house:
        seen = (await house.call("act")).content["env"]
    assert seen["SSL_CERT_FILE"] == environ["SSL_CERT_FILE"]
    assert seen["HTTPS_PROXY"] == environ["HTTPS_PROXY"]
    assert seen["CHOSEN"] == "chosen"
    assert "AWS_SECRET_ACCESS_KEY" not in seen


# Eras


@own("23", "discover_hang", within=12)
async def a_server_that_ignores_the_probe_is_reached_and_not_probed_again(bench: Bench) -> None:
    learned = MemoryLearned()
    async with bench.house(learned=learned) as house:
        began = time.monotonic()
        assert (await house.call("echo", a=1)).content == {"a": 1}
        assert time.monotonic() - began < 4
        assert house.journal.methods()[:2] == ["server/discover", "initialize"]
    seen = len(bench.journal.methods())
    async with bench.house(learned=learned) as house:
        began = time.monotonic()
        assert (await house.call("echo", a=1)).content == {"a": 1}
        assert time.monotonic() - began < 1.5
        assert bench.journal.methods()[seen] == "initialize"


@own("23", "discover_crash", within=10)
async def a_server_that_dies_of_the_probe_is_started_again_and_asked_the_old_way(bench: Bench) -> None:
    learned = MemoryLearned()
    async with bench.house(learned=learned) as house:
        assert (await house.call("echo", a=1)).content == {"a": 1}
        assert len(house.journal.starts()) == 2
    async with bench.house(learned=learned) as house:
        assert (await house.call("echo", a=1)).content == {"a": 1}
        assert len(house.journal.starts()) == 3


@own("23", "discover_floods_stderr")
async def a_probe_that_floods_stderr_holds_up_nothing(bench: Bench) -> None:
    async with bench.house() as house:
        assert (await house.call("echo", a=1)).content == {"a": 1}
        assert len(house.journal.starts()) == 1


@own("23", "discover_hang", eras=("legacy",))
async def a_pinned_server_is_never_probed(bench: Bench) -> None:
    async with bench.house() as house:
        assert (await house.call("echo", a=1)).content == {"a": 1}
        assert house.journal.methods()[0] == "initialize"


@own("23", "discover_late", within=12)
async def a_late_answer_to_the_probe_wins(bench: Bench) -> None:
    async with bench.house() as house:
        assert (await house.call("echo", a=1)).content == {"a": 1}
        assert len(house.journal.starts()) == 1


@own("55", "plain")
async def a_server_of_both_eras_is_spoken_to_in_the_modern_way(bench: Bench) -> None:
    async with bench.house() as house:
        assert (await house.call("echo", a=1)).content == {"a": 1}
        assert "initialize" not in house.journal.methods()


@own("55", "first_frame_decides")
async def the_first_frame_bears_the_envelope(bench: Bench) -> None:
    async with bench.house() as house:
        assert (await house.call("echo", a=1)).content == {"a": 1}
        assert "initialize" not in house.journal.methods()


@own("55", "legacy_only", eras=("auto", "legacy"))
async def an_old_server_is_met_with_a_handshake(bench: Bench) -> None:
    async with bench.house() as house:
        assert (await house.call("echo", a=1)).content == {"a": 1}
        await house.journal.hears("notifications/initialized")


@own("55", "legacy_only", ("2024-11-05",))
async def the_revision_that_an_old_server_counters_with_is_taken(bench: Bench) -> None:
    async with bench.house() as house:
        assert (await house.call("echo", a=1)).content == {"a": 1}


@own("55", "modern_only", eras=("auto", "modern"))
async def a_server_without_a_handshake_is_never_asked_for_one(bench: Bench) -> None:
    async with bench.house() as house:
        assert (await house.call("echo", a=1)).content == {"a": 1}
        assert "initialize" not in house.journal.methods()


@own("55", "discover_names_old")
async def a_discover_result_of_old_revisions_means_a_handshake(bench: Bench) -> None:
    async with bench.house() as house:
        assert (await house.call("echo", a=1)).content == {"a": 1}
        assert "initialize" in house.journal.methods()


@own("55", "unknown_version")
async def a_revision_that_nobody_knows_is_told_of_and_the_latest_handshake_assumed(bench: Bench) -> None:
    async with bench.house() as house:
        assert (await house.call("echo", a=1)).content == {"a": 1}
        assert any("2031-01-01" in noise for noise in house.watcher.noise)


@own("55", "legacy_only", eras=("modern",))
async def a_pin_that_the_server_does_not_speak_is_an_error_and_no_hang(bench: Bench) -> None:
    async with bench.house() as house:
        with pytest.raises(WireError):
            await house.call("echo")


@own("55", "modern_only", eras=("legacy",))
async def a_pin_to_the_past_is_an_error_and_no_hang(bench: Bench) -> None:
    async with bench.house() as house:
        with pytest.raises(WireError, match="2026-07-28"):
            await house.call("echo")


@own("55", "plain")
async def both_eras_stand_side_by_side_in_one_house(bench: Bench) -> None:
    old, new = bench.entry(id="old", mode="legacy_only"), bench.entry(id="new", mode="modern_only")
    async with bench.house(old, new) as house:
        replies = await asyncio.gather(*(house.call("echo", server=id, a=id) for id in ("old", "new")))
        assert [reply.content for reply in replies] == [{"a": "old"}, {"a": "new"}]
