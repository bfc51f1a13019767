"""Nothing that a server started outlives it: after a close, a crash, and the host's SIGKILL."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from luthier.errors import ConnectionLostError
from luthier.spec import Sandbox
from tests.connect.sandbox.cell import ROOT, cell, inmate, needs_sandbox

if TYPE_CHECKING:
    from collections.abc import Callable

    from luthier.spec import ServerEntry

    Figure = Callable[[str], None]

pytestmark = needs_sandbox

# A child, one in a session of its own, and one that was forked twice: none minds a hang-up or SIGTERM.
LEAVE_BEHIND = """
import os, signal, subprocess, sys
def stay():
    for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    os.write(ends[1], b"x")
    while True:
        signal.pause()
ends = os.pipe()
if os.fork() == 0:
    stay()
for fork_again in (False, True):
    if os.fork() == 0:
        os.setsid()
        if not fork_again or os.fork() == 0:
            stay()
        os._exit(0)
for _ in range(3):
    os.read(ends[0], 1)
print("left")
"""


class Marked:
    """Processes that carry a mark in their environment, whoever their parent is by now."""

    def __init__(self) -> None:
        self.mark = f"LUTHIER_MARK={uuid.uuid4()}"

    def entry(self, sandbox: Sandbox) -> ServerEntry:
        name, _, value = self.mark.partition("=")
        return inmate(sandbox=sandbox, env={name: value})

    def alive(self) -> list[int]:
        return [
            int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit() and self._is(entry)
        ]

    def _is(self, entry: Path) -> bool:
        try:
            if (entry / "stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return False
            return self.mark.encode() in (entry / "environ").read_bytes().split(b"\0")
        except OSError:
            return False

    async def gone(self) -> bool:
        """Whether all of them end within 5 s."""
        end = time.monotonic() + 5
        while self.alive():
            if time.monotonic() > end:
                return False
            await asyncio.sleep(0.01)
        return True

    def kill(self) -> None:
        for pid in self.alive():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


BOX = Sandbox(mode="required")


async def test_after_a_close_nothing_is_left(figure: Figure) -> None:
    marked = Marked()
    async with cell(marked.entry(BOX)) as made:
        assert await made.try_(LEAVE_BEHIND) == "left"
        before = len(marked.alive())
        assert before >= 4
    gone = await marked.gone()
    figure(f"G5: after a close {len(marked.alive())} of {before} processes are left")
    assert gone


@pytest.mark.parametrize("way", ["os._exit(1)", "os.kill(os.getpid(), 9)"])
async def test_after_a_crash_nothing_is_left(way: str, figure: Figure) -> None:
    marked = Marked()
    async with cell(marked.entry(BOX)) as made:
        assert await made.try_(LEAVE_BEHIND) == "left"
        with pytest.raises(ConnectionLostError):
            await made.try_(f"import os; {way}")
        gone = await marked.gone()
        figure(f"G5: after a crash ({way}) {len(marked.alive())} processes are left")
        assert gone


HOST = """
import asyncio, sys
sys.path.insert(0, {root!r})
from luthier.spec import Sandbox
from tests.connect.sandbox.cell import cell, inmate
from tests.connect.sandbox.test_orphans import LEAVE_BEHIND
async def main():
    async with cell(inmate(sandbox=Sandbox(mode="required"), env={{{name!r}: {value!r}}})) as made:
        print(await made.try_(LEAVE_BEHIND), flush=True)
        await asyncio.Event().wait()
asyncio.run(main())
"""


async def test_after_the_hosts_own_end_nothing_is_left(figure: Figure) -> None:
    marked = Marked()
    name, _, value = marked.mark.partition("=")
    host = await asyncio.to_thread(
        subprocess.Popen,
        [sys.executable, "-c", HOST.format(root=str(ROOT), name=name, value=value)],
        stdout=subprocess.PIPE,
    )
    try:
        assert host.stdout is not None
        assert await asyncio.to_thread(host.stdout.readline) == b"left\n"
        assert len(marked.alive()) >= 4
        host.kill()
        gone = await marked.gone()
        figure(f"G5: after SIGKILL of the host {len(marked.alive())} processes are left")
        assert gone
    finally:
        host.kill()
        await asyncio.to_thread(host.communicate)


async def test_without_a_sandbox_those_that_hide_do_stay() -> None:
    """The control: what a session of its own escapes to, where there is no sandbox."""
    marked = Marked()
    try:
        async with cell(marked.entry(Sandbox(mode="off"))) as made:
            assert await made.try_(LEAVE_BEHIND) == "left"
        assert len(marked.alive()) == 2
    finally:
        marked.kill()
