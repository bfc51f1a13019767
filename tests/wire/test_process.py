"""Server processes: each in its own group, ended by the ladder, none left behind."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from typing import Any

import pytest

from luthier.clock import SystemClock, settle
from luthier.wire.process import (
    Armed,
    ExitWatch,
    ServerProcess,
    choose_watch,
    group_lives,
    kill_all_groups,
    watch_by_descriptor,
    watch_by_thread,
)
from luthier.wire.watchdog import WATCHDOG
from tests.wire.support import SERVERS, bounded, descriptors, gone, processes_of

SLEEPER = "import sys, time; sys.stdin.read()"
DEAF = "import time; time.sleep(600)"
STUBBORN = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); time.sleep(600)"
)


class Child:
    """A process and what was told of it."""

    def __init__(self, *argv: str, watch_exit: ExitWatch | None = None) -> None:
        self.statuses: list[int] = []
        self.exited, self.empty = asyncio.Event(), asyncio.Event()
        self.process = ServerProcess(
            Armed(argv=argv),
            {"PATH": os.environ["PATH"]},
            clock=SystemClock(),
            on_exit=self._exit,
            on_gone=self.empty.set,
            watch_exit=watch_exit,
        )

    def _exit(self, status: int) -> None:
        self.statuses.append(status)
        self.exited.set()

    def close_stdin(self) -> None:
        os.close(self.process.stdin)

    async def first_byte(self) -> None:
        await bounded(asyncio.to_thread(os.read, self.process.stdout, 1))

    def close(self) -> None:
        os.close(self.process.stdout)
        os.close(self.process.stderr)


def start(*argv: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(argv, stdin=subprocess.PIPE, start_new_session=True)


def python(code: str, **how: Any) -> Child:
    return Child(sys.executable, "-S", "-c", code, **how)


async def ended(child: Child) -> float:
    """Seconds that the ladder took."""
    child.close_stdin()
    began = time.monotonic()
    await bounded(child.process.end())
    child.close()
    assert processes_of(child.process.group) == []
    return time.monotonic() - began


async def test_a_server_that_minds_its_stdin_ends_by_itself() -> None:
    child = python(SLEEPER)
    assert await ended(child) < 2.0
    assert child.statuses == [0]


async def test_a_server_that_does_not_gets_sigterm_after_two_seconds() -> None:
    child = python(DEAF)
    assert 2.0 <= await ended(child) < 4.0
    assert child.statuses == [-signal.SIGTERM]


async def test_a_server_that_ignores_sigterm_gets_sigkill_two_seconds_later() -> None:
    child = python(STUBBORN)
    await child.first_byte()
    assert 4.0 <= await ended(child) < 7.0
    assert child.statuses == [-signal.SIGKILL]


async def test_a_group_is_ended_with_the_children_that_its_leader_leaves() -> None:
    child = Child("/bin/sh", "-c", "sleep 600 & sleep 600 & exit 3")
    await bounded(child.exited.wait())
    assert child.statuses == [3]
    await bounded(child.empty.wait())
    assert processes_of(child.process.group) == []
    child.close_stdin()
    child.close()


async def test_children_that_ignore_sigterm_are_killed_too() -> None:
    child = Child("/bin/sh", "-c", "trap '' TERM; (while :; do sleep 1; done) & exit 0")
    await bounded(child.exited.wait())
    began = time.monotonic()
    await bounded(child.process.end())
    assert time.monotonic() - began < 4.5
    assert processes_of(child.process.group) == []
    child.close_stdin()
    child.close()


async def test_an_end_that_is_cancelled_kills_at_once() -> None:
    child = python(STUBBORN)
    await child.first_byte()
    ending = asyncio.create_task(child.process.end())
    await asyncio.sleep(0)
    ending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await bounded(ending)
    await bounded(child.empty.wait())
    assert child.statuses == [-signal.SIGKILL]
    child.close_stdin()
    child.close()


def test_a_loop_that_is_taken_down_leaves_no_process_behind() -> None:
    children: list[Child] = []

    async def leave() -> None:
        child = python(STUBBORN)
        children.append(child)
        await child.first_byte()
        child.process.begin_end()
        await asyncio.sleep(0)

    asyncio.run(leave())
    (child,) = children
    assert processes_of(child.process.group) == []
    assert WATCHDOG.pid is None
    child.close_stdin()
    child.close()


@pytest.mark.parametrize("watch", [watch_by_descriptor, watch_by_thread])
async def test_an_exit_is_seen_by_either_way_of_watching(watch: ExitWatch) -> None:
    child = python("raise SystemExit(7)", watch_exit=watch)
    await bounded(child.exited.wait())
    assert child.statuses == [7]
    await bounded(child.empty.wait())
    child.close_stdin()
    child.close()


@pytest.mark.parametrize("watch", [watch_by_descriptor, watch_by_thread])
async def test_a_watch_that_was_called_off_says_nothing(watch: ExitWatch) -> None:
    popen = start(sys.executable, "-S", "-c", SLEEPER)
    seen: list[int] = []
    call_off = watch(popen, lambda: seen.append(1))
    call_off()
    call_off()
    popen.kill()
    await bounded(asyncio.to_thread(popen.wait))
    await settle()
    assert seen == []
    assert popen.stdin is not None
    popen.stdin.close()


async def test_where_a_process_has_no_descriptor_it_is_watched_by_thread() -> None:
    popen = start("/bin/sh", "-c", "exit 0")
    assert popen.stdin is not None
    popen.stdin.close()
    await bounded(asyncio.to_thread(popen.wait))
    seen = asyncio.Event()
    choose_watch(popen, seen.set)
    await bounded(seen.wait())


def test_a_watch_by_thread_outlives_its_loop_in_silence() -> None:
    popen = subprocess.Popen([sys.executable, "-S", "-c", SLEEPER], stdin=subprocess.PIPE)

    async def watch() -> None:
        watch_by_thread(popen, lambda: None)

    asyncio.run(watch())
    assert popen.stdin is not None
    popen.stdin.close()
    assert popen.wait(20) == 0


@pytest.mark.parametrize(
    ("argv", "error"),
    [
        (["/no/such/command"], FileNotFoundError),
        (["/etc/passwd"], PermissionError),
        (["a\0b"], ValueError),
        ([""], OSError),
    ],
)
async def test_what_cannot_be_started_raises_and_leaks_nothing(
    argv: list[str], error: type[Exception]
) -> None:
    before = descriptors()
    with pytest.raises(error):
        Child(*argv)
    assert descriptors() == before
    assert WATCHDOG.pid is None


async def test_every_group_can_be_killed_at_once() -> None:
    children = [python(STUBBORN) for _ in range(3)]
    for child in children:
        await child.first_byte()
    kill_all_groups()
    for child in children:
        await bounded(child.empty.wait())
        assert child.statuses == [-signal.SIGKILL]
        child.close_stdin()
        child.close()
    kill_all_groups()


async def test_a_group_of_the_dead_does_not_live() -> None:
    popen = start("/bin/sh", "-c", "exit 0")
    assert await gone(popen.pid)
    assert not group_lives(popen.pid)  # it is dead and not yet collected
    await bounded(asyncio.to_thread(popen.wait))
    assert not group_lives(popen.pid)
    assert group_lives(os.getpgrp())
    assert popen.stdin is not None
    popen.stdin.close()


class Host:
    """A process of its own that holds one server, to be ended in some way."""

    def __init__(self, how: str, *habits: str) -> None:
        self.popen = subprocess.Popen(
            [sys.executable, str(SERVERS / "host.py"), how, *habits], stdout=subprocess.PIPE, text=True
        )
        assert self.popen.stdout is not None
        self.group, self.watchdog, self.fork = map(int, self.popen.stdout.readline().split())

    def close(self) -> None:
        assert self.popen.stdout is not None
        self.popen.stdout.close()
        self.popen.wait(20)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=lambda number: number.name)
async def test_a_host_that_is_killed_leaves_nothing_behind(number: signal.Signals) -> None:
    habits: list[list[str]] = [[], ["ignore-eof", "orphan"], ["ignore-eof", "ignore-term"]]
    hosts = await bounded(asyncio.gather(*[asyncio.to_thread(Host, "wait", *each) for each in habits]))
    for host in hosts:
        assert processes_of(host.group)
        assert os.getsid(host.watchdog) == host.watchdog
        assert os.getsid(host.group) == host.group
        host.popen.send_signal(number)
    for host in hosts:
        host.close()
        assert await gone(host.group, 8.0)
        assert await gone(host.watchdog, 8.0)


async def test_a_host_that_ends_without_closing_leaves_nothing_behind() -> None:
    host = await bounded(asyncio.to_thread(Host, "leave", "ignore-eof", "ignore-term", "orphan"))
    host.close()
    assert await gone(host.group, 8.0)
    assert await gone(host.watchdog, 8.0)


async def test_a_fork_of_the_host_does_not_keep_the_watchdog_from_its_duty() -> None:
    host = await bounded(asyncio.to_thread(Host, "fork", "ignore-eof"))
    host.popen.kill()
    assert await gone(host.group, 8.0)
    os.kill(host.fork, signal.SIGKILL)
    host.close()


async def test_a_second_interrupt_kills_every_group_of_the_host() -> None:
    host = await bounded(asyncio.to_thread(Host, "kill", "ignore-eof", "ignore-term"))
    assert await gone(host.group, 5.0)
    assert await gone(host.watchdog, 5.0)
    host.popen.kill()
    host.close()
