"""Drills of a start: servers that never answer, never end, or eat all they can harm only themselves."""

from __future__ import annotations

import asyncio
import sys
import time
from typing import TYPE_CHECKING

import pytest

from luthier.errors import CallTimeoutError, ConnectError, WireError
from luthier.events import ServerNoise
from luthier.spec import Launch, LaunchProfile, Sandbox, ServerEntry
from tests.connect.kit import call, wanted
from tests.connect.sandbox.cell import SERVER, cell, inmate, needs_sandbox

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = needs_sandbox

BOX = Sandbox(mode="required", memory_mb=300, max_processes=30)


def script(folder: Path, text: str) -> ServerEntry:
    (folder / "servers").mkdir(exist_ok=True)
    file = folder / "servers" / "server.py"
    file.write_text(text)
    return ServerEntry(
        id="inmate", command="python", args=(str(file),), sandbox=BOX, max_retries=0, timeout=3.0
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import time; time.sleep(600)", "did not answer within"),
        ("raise SystemExit(3)", "exited with status 3"),
        ("import sys; sys.stdout.write('x' * 50_000_000)", "."),
        ("import os\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        pass", "."),
        ("x = []\nwhile True: x.append(bytes(10_000_000))", "."),
    ],
    ids=["silent", "exits", "floods", "forks", "eats"],
)
async def test_a_start_that_goes_wrong_ends_in_its_time_and_a_neighbour_serves_on(
    tmp_path: Path, text: str, said: str
) -> None:
    neighbour = inmate("neighbour", sandbox=BOX)
    async with cell(script(tmp_path, text), neighbour) as made:
        assert await made.try_("print('before')", server="neighbour") == "before"
        with pytest.raises(WireError, match=said) as caught:
            async with asyncio.timeout(20):
                await made.manager.manifest("inmate")
        assert isinstance(caught.value, ConnectError)
        assert await made.try_("print('after')", server="neighbour") == "after"


async def test_a_stubborn_server_is_ended_within_the_bound() -> None:
    stubborn = "import signal; [signal.signal(n, signal.SIG_IGN) for n in (1, 2, 15)]; print('stubborn')"
    async with cell(inmate(sandbox=BOX)) as made:
        assert await made.try_(stubborn) == "stubborn"
        stuck = asyncio.create_task(made.try_("import time; time.sleep(600)"))
        await asyncio.sleep(0)
        began = time.monotonic()
        await made.manager.close_all()
        assert time.monotonic() - began < 8.5
        with pytest.raises(WireError):
            await stuck


async def test_a_call_that_forks_without_end_times_out_and_the_server_is_still_spoken_to() -> None:
    bomb = "import os, signal\nwhile True:\n    try: os.fork() or signal.pause()\n    except OSError: pass"
    async with cell(inmate(sandbox=BOX), inmate("neighbour", sandbox=BOX)) as made:
        await made.manager.manifest("inmate")
        with pytest.raises(CallTimeoutError):
            await call(made.manager, wanted("inmate", "try", code=bomb, timeout=1.0))
        assert await made.try_("print('serves')", server="neighbour") == "serves"


async def test_a_profile_whose_program_is_gone_is_named_at_once(tmp_path: Path) -> None:
    profile = LaunchProfile(name="p", executable=str(tmp_path / "gone"))
    entry = ServerEntry(id="inmate", launch=Launch(profile="p"), max_retries=3)
    async with cell(entry, environment="production", launch_profiles={"p": profile}) as made:
        with pytest.raises(ConnectError, match="cannot be opened: No such file"):
            await made.manager.manifest("inmate")


async def test_in_production_a_real_server_serves_and_nothing_odd_is_told_of_it() -> None:
    profile = LaunchProfile(name="p", executable=sys.executable, args=("-I", str(SERVER)))
    entry = ServerEntry(id="inmate", launch=Launch(profile="p"))
    async with cell(entry, environment="production", launch_profiles={"p": profile}) as made:
        assert (
            await made.try_("import os; print(os.getcwd(), os.listdir(), os.umask(0))")
            == "/home/server [] 63"
        )
        assert made.notebook.of(ServerNoise) == []
