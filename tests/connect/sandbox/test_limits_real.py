"""The limits bite: a fork bomb is stopped, a large allocation fails, and what is allowed still works."""

from __future__ import annotations

from luthier.spec import Sandbox
from tests.connect.sandbox.cell import cell, inmate, needs_sandbox

pytestmark = needs_sandbox

FORKS = """
import os, signal
children, stopped = [], False
for _ in range(60):
    try:
        child = os.fork()
    except OSError:
        stopped = True
        break
    if child == 0:
        signal.pause()
    children.append(child)
print(len(children), stopped)
for child in children:
    os.kill(child, 9)
    os.waitpid(child, 0)
"""


async def test_a_fork_bomb_is_stopped_and_the_server_lives() -> None:
    async with cell(inmate(sandbox=Sandbox(mode="required", max_processes=20))) as made:
        count, stopped = (await made.try_(FORKS)).split()
        assert (int(count) <= 20, stopped) == (True, "True")
        assert await made.try_("print('alive')") == "alive"


async def test_a_large_allocation_fails_and_a_small_one_does_not() -> None:
    async with cell(inmate(sandbox=Sandbox(mode="required", memory_mb=200))) as made:
        assert "MemoryError" in await made.try_("bytes(500_000_000)")
        assert await made.try_("print(len(bytearray(50_000_000)))") == "50000000"


async def test_its_own_folder_holds_no_more_than_its_memory() -> None:
    code = "f = open('/tmp/x', 'wb'); f.write(bytes(40_000_000)); f.flush()"
    async with cell(inmate(sandbox=Sandbox(mode="required", memory_mb=30))) as made:
        assert await made.try_(code) != ""


async def test_what_is_not_said_is_limited_loosely() -> None:
    async with cell(inmate(sandbox=Sandbox(mode="required"))) as made:
        assert (await made.try_(FORKS)) == "60 False"
