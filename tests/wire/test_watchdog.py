"""The watchdog: there while something is watched, deaf to the terminal, and gone with us."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from luthier.wire.watchdog import Watchdog
from tests.wire.support import bounded, gone, processes_of

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def sleepers() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Three groups of one process each."""
    popens = [subprocess.Popen(["sleep", "600"], start_new_session=True) for _ in range(3)]
    yield popens
    for popen in popens:
        popen.kill()
        popen.wait()


@pytest.fixture
def watchdog() -> Iterator[Watchdog]:
    watchdog = Watchdog()
    yield watchdog
    watchdog.close()


def collect(pid: int) -> None:
    """It was our child once, and is dead."""
    os.waitpid(pid, 0)


def wait_until_collected(pid: int) -> None:
    """Until it is not even one of the dead."""
    while Path(f"/proc/{pid}").exists():
        time.sleep(0.02)


def wait_until_deaf(pid: int, number: signal.Signals) -> None:
    """Until the kernel lists that signal among those that the process ignores."""
    status = Path(f"/proc/{pid}/status")
    while not int(re.findall(r"SigIgn:\s*(\w+)", status.read_text())[0], 16) & (1 << (number - 1)):
        time.sleep(0.01)


def running(pid: int | None) -> bool:
    return pid is not None and bool(processes_of(pid))


async def test_it_runs_from_the_first_group_to_the_last(watchdog: Watchdog) -> None:
    assert watchdog.pid is None
    assert watchdog.watch(100_001) == ""
    pid = watchdog.pid
    assert running(pid)
    watchdog.watch(100_002)
    watchdog.release(100_001)
    assert watchdog.pid == pid
    watchdog.release(100_002)
    assert watchdog.pid is None
    assert not running(pid)
    watchdog.release(100_002)


async def test_it_ends_what_it_still_watches_when_its_host_is_gone(
    watchdog: Watchdog, sleepers: list[subprocess.Popen[bytes]]
) -> None:
    watched, released, stranger = sleepers
    watchdog.watch(watched.pid)
    watchdog.watch(released.pid)
    watchdog.watch(stranger.pid)
    watchdog.release(stranger.pid)
    watchdog.release(released.pid)
    pid = watchdog.pid
    assert pid is not None
    watchdog.forget()  # the other end of its pipe closes, as when we die
    assert await gone(watched.pid, 5.0)
    assert watched.wait(5) == -signal.SIGTERM
    assert await gone(pid, 5.0)
    collect(pid)
    assert running(released.pid)
    assert running(stranger.pid)


@pytest.mark.parametrize(
    "number", [signal.SIGINT, signal.SIGHUP, signal.SIGTERM], ids=lambda number: number.name
)
async def test_it_is_deaf_to_the_signals_of_a_terminal(watchdog: Watchdog, number: signal.Signals) -> None:
    watchdog.watch(100_001)
    pid = watchdog.pid
    assert pid is not None
    await bounded(asyncio.to_thread(wait_until_deaf, pid, number))
    os.kill(pid, number)
    assert running(pid)


async def test_one_that_was_killed_is_replaced_and_told_all_groups_again(
    watchdog: Watchdog, sleepers: list[subprocess.Popen[bytes]]
) -> None:
    first, second, _ = sleepers
    watchdog.watch(first.pid)
    killed = watchdog.pid
    assert killed is not None
    os.kill(killed, signal.SIGKILL)
    assert await gone(killed, 5.0)
    assert watchdog.watch(second.pid) == ""
    replaced = watchdog.pid
    assert replaced != killed
    assert replaced is not None
    watchdog.forget()
    assert await gone(first.pid, 5.0)
    assert await gone(second.pid, 5.0)
    assert await gone(replaced, 5.0)
    collect(replaced)


async def test_one_that_was_killed_can_still_be_released_from_and_closed(watchdog: Watchdog) -> None:
    watchdog.watch(100_001)
    watchdog.watch(100_002)
    pid = watchdog.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    assert await gone(pid, 5.0)
    watchdog.release(100_001)
    watchdog.close()
    assert watchdog.pid is None


async def test_without_a_shell_it_says_that_nothing_watches() -> None:
    watchdog = Watchdog("/no/such/shell")
    assert "nothing watches over it" in watchdog.watch(100_001)
    watchdog.release(100_001)
    watchdog.forget()
    watchdog.close()
    assert watchdog.pid is None


async def test_one_that_is_slow_to_end_is_collected_all_the_same(tmp_path: Path) -> None:
    slow = tmp_path / "slow"
    slow.write_text("#!/bin/sh\nwhile read -r line; do :; done\nsleep 0.3\n")
    slow.chmod(0o755)
    watchdog = Watchdog(str(slow))
    assert watchdog.watch(100_001) == ""
    pid = watchdog.pid
    assert pid is not None
    watchdog.release(100_001)
    assert watchdog.pid is None
    assert running(pid)
    await bounded(asyncio.to_thread(wait_until_collected, pid))
