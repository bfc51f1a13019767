"""Who drives a run: a process that is gone is known as such, and one that is there too."""

from __future__ import annotations

import os
import subprocess
import sys

from luthier.workflows.owners import SILENCE, claim, is_gone, me, release

RUN = "r-1"


def named(machine: str, pid: int, began: str) -> str:
    return f"{machine}:{pid}:{began}"


def here() -> str:
    return me().split(":")[0]


def other() -> subprocess.Popen[str]:
    """A process that tells its name and waits."""
    code = "from luthier.workflows.owners import me; print(me(), flush=True); input()"
    return subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def test_nobody_is_gone() -> None:
    assert is_gone(RUN, "", 100.0, 100.0)


def test_this_process_drives_what_it_says() -> None:
    assert me() == me()
    assert is_gone(RUN, me(), 0.0, 1e9)
    assert claim(RUN)
    assert not claim(RUN)
    assert not is_gone(RUN, me(), 0.0, 1e9)
    release(RUN)
    assert is_gone(RUN, me(), 0.0, 1e9)


def test_another_process_is_there_until_it_ends() -> None:
    with other() as process:
        assert process.stdin is not None
        assert process.stdout is not None
        name = process.stdout.readline().strip()
        assert name != me()
        assert not is_gone(RUN, name, 0.0, 1e9)
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # dead, and still in the table
        assert is_gone(RUN, name, 1e9, 1e9)
    assert is_gone(RUN, name, 1e9, 1e9)


def test_another_process_of_the_same_number_is_another() -> None:
    assert is_gone(RUN, named(here(), os.getppid(), "1"), 1e9, 1e9)


def test_a_process_elsewhere_is_gone_when_it_is_silent() -> None:
    owner = named("elsewhere", 1, "1")
    assert not is_gone(RUN, owner, 100.0, 100.0 + SILENCE)
    assert is_gone(RUN, owner, 100.0, 100.1 + SILENCE)
