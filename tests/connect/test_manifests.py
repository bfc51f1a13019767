"""How long a list of tools holds, and what happens when it cannot be read."""

from __future__ import annotations

import asyncio

import pytest

from luthier.clock import FakeClock, settle
from luthier.connect.manifests import ManifestCache
from luthier.errors import CallTimeoutError, ConnectError, ProtocolError, WireError
from luthier.tools import Manifest, Tool
from luthier.uri import ToolUri


class Shelf:
    """A cache over readings that the test plays."""

    def __init__(self, *, ttl: float = 300.0) -> None:
        self.clock = FakeClock()
        self.kept: list[WireError] = []
        self.readings: list[asyncio.Future[Manifest]] = []
        self.cache = ManifestCache(self._fetch, ttl=ttl, clock=self.clock, on_kept=self.kept.append)

    async def _fetch(self) -> Manifest:
        reading: asyncio.Future[Manifest] = asyncio.get_running_loop().create_future()
        self.readings.append(reading)
        return await reading

    async def ask(self, *, fresh: bool = False) -> asyncio.Task[Manifest]:
        task = asyncio.create_task(self.cache.manifest(fresh=fresh))
        await settle()
        return task

    async def read(self, *names: str, ttl_ms: int | None = None) -> Manifest:
        """Answer the reading under way."""
        tools = tuple(Tool(uri=ToolUri.mcp("lute", name), input_schema={}) for name in names)
        manifest = Manifest(server="lute", tools=tools, ttl_ms=ttl_ms)
        self.readings[-1].set_result(manifest)
        await settle()
        return manifest

    async def fail(self, error: WireError) -> None:
        self.readings[-1].set_exception(error)
        await settle()

    async def filled(self, *names: str, ttl_ms: int | None = None) -> Manifest:
        task = await self.ask()
        manifest = await self.read(*names, ttl_ms=ttl_ms)
        assert await task is manifest
        return manifest


async def test_nothing_is_known_before_the_first_reading() -> None:
    shelf = Shelf()
    assert shelf.cache.known("play") is None
    await shelf.filled("play")
    assert shelf.cache.known("play") is not None
    assert shelf.cache.known("other") is None


async def test_all_who_ask_during_a_reading_share_it() -> None:
    shelf = Shelf(ttl=0.0)
    asking = [await shelf.ask() for _ in range(5)]
    manifest = await shelf.read("play")
    assert {id(await task) for task in asking} == {id(manifest)}
    assert len(shelf.readings) == 1


@pytest.mark.parametrize(
    ("ttl", "ttl_ms", "listable", "callable_"),
    [
        (300.0, None, 300.0, 300.0),
        (10.0, 60_000, 60.0, 60.0),  # the server's own word, where it is longer
        (300.0, 1_000, 1.0, 300.0),  # where it is shorter, it holds for lists
        (300.0, 0, 0.0, 300.0),
        (300.0, 10**12, 86_400.0, 86_400.0),  # a day at most
        (0.0, None, 0.0, 0.0),
        (0.0, 5_000, 5.0, 5.0),
    ],
)
async def test_a_list_holds_as_its_server_says_and_a_call_may_use_it_as_its_entry_says(
    ttl: float, ttl_ms: int | None, listable: float, callable_: float
) -> None:
    shelf = Shelf(ttl=ttl)
    await shelf.filled("play", ttl_ms=ttl_ms)
    readings = 1
    for until, holds in ((listable, True), (listable + 0.2, False)):
        await shelf.clock.advance(max(until - 0.1 - shelf.clock.monotonic(), 0.0))
        if not holds or until == 0.0:
            break
        assert (await shelf.ask()).done()
        assert len(shelf.readings) == readings
    assert (shelf.cache.known("play") is not None) is (callable_ > shelf.clock.monotonic())
    task = await shelf.ask()
    assert len(shelf.readings) == readings + 1
    await shelf.read("play")
    assert task.done()


async def test_a_tool_is_not_known_for_calls_beyond_its_time() -> None:
    shelf = Shelf(ttl=10.0)
    await shelf.filled("play", ttl_ms=0)
    await shelf.clock.advance(9.9)
    assert shelf.cache.known("play") is not None
    await shelf.clock.advance(0.2)
    assert shelf.cache.known("play") is None


async def test_a_call_may_say_how_old_the_list_may_be() -> None:
    shelf = Shelf(ttl=0.0)
    await shelf.filled("play")
    assert shelf.cache.known("play") is None
    assert shelf.cache.known("play", 5.0) is not None
    assert shelf.cache.known("other", 5.0) is None
    await shelf.clock.advance(5.0)
    assert shelf.cache.known("play", 5.0) is None
    assert shelf.cache.known("play", 6.0) is not None
    await shelf.clock.advance(24 * 3600.0)
    assert shelf.cache.known("play", 1e9) is None, "no list is trusted for more than a day"


async def test_what_was_announced_since_is_not_overlooked_by_such_a_call() -> None:
    shelf = Shelf(ttl=0.0)
    assert shelf.cache.known("play", 5.0) is None
    await shelf.filled("play")
    shelf.cache.changed()
    assert shelf.cache.known("play", 5.0) is None


async def test_a_change_makes_every_user_wait_for_the_new_list() -> None:
    shelf = Shelf()
    await shelf.filled("play")
    await shelf.clock.advance(1.0)
    shelf.cache.changed()
    await settle()
    assert shelf.cache.known("play") is None
    asking = await shelf.ask()
    assert not asking.done()
    new = await shelf.read("strum")
    assert await asking is new
    assert shelf.cache.known("strum") is not None
    assert shelf.cache.known("play") is None
    assert len(shelf.readings) == 2


async def test_changes_during_a_reading_are_read_as_one_more() -> None:
    shelf = Shelf()
    await shelf.filled("play")
    await shelf.clock.advance(1.0)
    for _ in range(10):
        shelf.cache.changed()
    await settle()
    for _ in range(10):
        shelf.cache.changed()
    await shelf.read("old")
    assert len(shelf.readings) == 3
    await shelf.read("new")
    assert len(shelf.readings) == 3
    assert shelf.cache.known("new") is not None


async def test_a_server_that_changes_with_every_reading_is_read_three_times_and_then_believed() -> None:
    shelf = Shelf()
    asking = await shelf.ask()
    for _ in range(3):
        shelf.cache.changed()
        await shelf.read("play")
    assert asking.done()
    assert len(shelf.readings) == 3


async def test_a_change_right_after_a_reading_is_read_when_the_list_is_used() -> None:
    shelf = Shelf()
    await shelf.filled("play")
    shelf.cache.changed()
    await settle()
    assert len(shelf.readings) == 1
    assert shelf.cache.known("play") is None
    asking = await shelf.ask()
    new = await shelf.read("new")
    assert await asking is new


async def test_a_change_before_anybody_asked_reads_nothing() -> None:
    shelf = Shelf()
    shelf.cache.changed()
    await settle()
    assert shelf.readings == []


@pytest.mark.parametrize("error", [ProtocolError("odd"), CallTimeoutError("slow")])
async def test_the_old_list_is_kept_for_a_while_when_the_new_one_cannot_be_read(error: WireError) -> None:
    shelf = Shelf()
    old = await shelf.filled("play")
    shelf.cache.changed()
    asking = await shelf.ask()
    await shelf.fail(error)
    assert await asking is old
    assert shelf.cache.known("play") is not None
    assert shelf.kept == [error]
    await shelf.clock.advance(30.1)
    assert shelf.cache.known("play") is None
    again = await shelf.ask()
    assert await shelf.read("new") is await again


async def test_a_server_that_cannot_be_reached_is_said_to_be_so_though_there_is_an_old_list() -> None:
    shelf = Shelf()
    await shelf.filled("play")
    shelf.cache.expire()
    asking = await shelf.ask()
    await shelf.fail(ConnectError("down"))
    with pytest.raises(ConnectError, match="down"):
        await asking


async def test_who_wants_a_fresh_list_gets_it_or_the_fault_and_never_the_old_one() -> None:
    shelf = Shelf()
    await shelf.filled("play")
    asking = await shelf.ask(fresh=True)
    await shelf.fail(ProtocolError("odd"))
    with pytest.raises(ProtocolError):
        await asking
    assert shelf.cache.known("play") is not None


async def test_a_first_reading_that_fails_is_a_fault_for_each_who_waits_and_the_next_one_reads_again() -> (
    None
):
    shelf = Shelf()
    asking = [await shelf.ask() for _ in range(3)]
    await shelf.fail(ProtocolError("odd"))
    errors = [task.exception() for task in asking]
    assert {str(error) for error in errors} == {"odd"}
    assert len({id(error) for error in errors}) == 3
    assert shelf.kept == []
    again = await shelf.ask()
    assert await shelf.read("play") is await again


async def test_who_gives_up_does_not_stop_the_reading_of_the_others() -> None:
    shelf = Shelf()
    one, other = await shelf.ask(), await shelf.ask()
    one.cancel()
    await settle()
    assert shelf.cache.reading is not None
    assert await shelf.read("play") is await other
    assert shelf.cache.reading is None
