"""The official SDK's server as a peer, in both eras."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from luthier.errors import CallTimeoutError
from luthier.events import CallProgressed
from tests.faults.bench import Bench, until
from tests.faults.rows.lists import eventually, has
from tests.servers_real.sdk_server import PIXEL
from tests.servers_real.street import ERAS, fields, spoken

if TYPE_CHECKING:
    from collections.abc import Iterator

SERVER = str(Path(__file__).parent / "sdk_server.py")


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    found = Bench(tmp_path, "plain")
    yield found
    found.kill_leftovers()


@pytest.mark.parametrize(("pin", "speaks"), ERAS.values(), ids=ERAS)
async def test_all_that_the_sdk_offers_is_understood(bench: Bench, pin: str | None, speaks: str) -> None:
    notes = bench.root / "notes"
    entry = bench.read(fields(bench, "python", SERVER, str(notes), protocol=pin))
    async with bench.house(entry) as house:
        # Listed, with what its author promised.
        manifest = await house.manifest()
        add = manifest.find("add")
        assert add is not None
        assert add.output_schema is not None
        assert manifest.dropped == ()

        # Structured output, blocks, a tool's own error.
        assert (await house.call("add", a=2, b=3)).content == {"total": 5, "terms": [2, 3]}
        assert [block["type"] for block in (await house.call("picture")).blocks] == ["text", "image"]
        assert (await house.call("picture")).blocks[1]["data"] == PIXEL
        failed = await house.call("fail")
        assert failed.is_error
        assert "disk is full" in str(failed.blocks)

        # Progress.
        assert (await house.call("steps", times=3)).blocks[0]["text"] == "done"
        told = house.watcher.of(CallProgressed)
        assert [(event.progress, event.total, event.message) for event in told] == [
            (n, 3.0, f"step {n}") for n in (1, 2, 3)
        ]

        # A list that changes.
        assert not await has(house, "grown")
        await house.call("grow")
        await eventually(lambda: has(house, "grown"))
        assert (await house.call("grown")).blocks[0]["text"] == "grown"

        # Cancelling reaches the tool: by the caller, and by the clock.
        call = asyncio.create_task(house.call("wait"))
        await until(lambda: noted(notes, "waiting"), what="the tool runs")
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await until(lambda: noted(notes, "cancelled"), what="the tool was cancelled")
        with pytest.raises(CallTimeoutError):
            await house.call("wait", timeout=0.3)
        await until(lambda: noted(notes, "cancelled"), what="the tool was cancelled by the clock")

        # And the session has survived all of it.
        assert (await house.call("add", a=1)).content == {"total": 1, "terms": [1, 0]}
        assert spoken(house) == [speaks]


def noted(notes: Path, what: str) -> bool:
    return notes.exists() and notes.read_text() == what
