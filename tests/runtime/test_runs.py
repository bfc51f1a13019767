"""`rt.runs`: runs are gone on with and ended, here and in other processes, and tell what stops them."""

from __future__ import annotations

import asyncio
import threading
from contextlib import closing
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from luthier import Runtime
from luthier.clock import FakeClock, settle
from luthier.context import CallContext
from luthier.errors import NotFoundError, RunChangedError, RunError, RunLostError, StoreError
from luthier.runtime.runs import Runs
from luthier.secrets import find_keys
from luthier.store import Database
from luthier.store.runs import SqlRuns
from luthier.taint import Labelled
from luthier.testing import FaultyRuns, MemoryRuns, MemoryServer
from luthier.wire import Hang
from luthier.workflows import Entry, RunRow
from luthier.workflows.owners import BEAT, SILENCE
from luthier.workflows.record import RunTaken
from luthier.workflows.runs import Wanted
from tests.workflows.house import Gate, House, read

if TYPE_CHECKING:
    from pathlib import Path

    from luthier.runtime.runs import RunHandle
    from luthier.workflows import RunStore

ENTRY = {"command": "python", "args": ["none.py"]}
ELSEWHERE = "elsewhere:1:1"


def steps(tool: str = "greet") -> dict[str, Any]:
    config = {"mcp": "greeter", "tool": tool}
    agents = [
        {"name": "first", "operation": "tools", "config": config, "input": {"name": "Al"}},
        {"name": "last", "operation": "transform", "config": {"value": "${first.output}"}},
    ]
    return {"ensemble": "greeting", "agents": agents, "outputs": "${last.output}"}


def greeter() -> MemoryServer:
    return MemoryServer("greeter", {"greet": lambda arguments: f"Hello, {arguments['name']}", "hang": Hang()})


def opened(root: Path, store: RunStore, *, server: MemoryServer | None = None, **parts: Any) -> Runtime:
    transports = {"greeter": (server or greeter()).transport}
    return Runtime.open(
        {"mcpServers": {"greeter": ENTRY}}, root=root, transports=transports, runs=store, **parts
    )


async def cut_off(root: Path, store: RunStore, last: int = 3) -> RunRow:
    """A run that was cut off behind that many entries."""
    async with opened(root, FaultyRuns(store, last)) as rt:
        with pytest.raises(StoreError):
            await rt.run(steps(), durable=True)
    (row,) = store.list(Wanted())
    return row


async def test_a_write_that_fails_stops_the_run_and_says_how_to_go_on(tmp_path: Path) -> None:
    store, server = MemoryRuns(), greeter()
    async with opened(tmp_path, FaultyRuns(store, 2), server=server) as rt:
        with pytest.raises(StoreError, match=r"luthier runs resume \S+$") as caught:
            await rt.run(steps(), durable=True)
        (row,) = rt.runs.list()
        assert row.id in caught.value.hint
        assert rt.runs.interrupted(row)
    assert [entry.kind for entry in store.read(row.id)] == ["RunStarted", "StepStarted"]
    assert "tools/call" not in [one.get("method") for one in server.received]


async def test_a_run_of_which_nothing_could_be_written_is_not_to_be_gone_on_with(tmp_path: Path) -> None:
    async with opened(tmp_path, FaultyRuns(MemoryRuns(), 0)) as rt:
        with pytest.raises(StoreError) as caught:
            await rt.run(steps(), durable=True)
        assert rt.runs.list() == ()
    assert "resume" not in caught.value.hint


class LateRuns(FaultyRuns):
    """Tells of one run as it was, that many times."""

    def __init__(self, store: MemoryRuns, row: RunRow, times: int) -> None:
        super().__init__(store, 1000)
        self._row = row
        self._times = times

    def row(self, run: str) -> RunRow | None:
        self._times -= 1
        return self._row if self._times >= 0 else super().row(run)


@pytest.mark.parametrize("times", [0, 1, 2])
async def test_who_comes_when_it_has_ended_is_told_so_whenever_that_was(tmp_path: Path, times: int) -> None:
    store = MemoryRuns()
    row = await cut_off(tmp_path, store, 2)
    async with opened(tmp_path, store, ensembles=[steps()]) as rt:
        assert (await rt.runs.resume(row.id)).success
    whole = store.read(row.id)
    late = msgspec.structs.replace(row, owner="gone", beat_at=0.0)
    async with opened(tmp_path, LateRuns(store, late, times), ensembles=[steps()]) as rt:
        with pytest.raises(RunError, match="has ended: ok"):
            await rt.runs.resume(row.id)
    async with opened(tmp_path, LateRuns(store, late, times), ensembles=[steps()]) as rt:
        if times:
            assert (await rt.runs.cancel(row.id)).status == "ok"
        else:
            with pytest.raises(RunError, match="has ended: ok"):
                await rt.runs.cancel(row.id)
    assert store.read(row.id) == whole


async def test_it_goes_on_in_another_runtime(tmp_path: Path) -> None:
    store = MemoryRuns()
    row = await cut_off(tmp_path, store, 2)
    async with opened(tmp_path, store, ensembles=[steps()]) as rt:
        run = await rt.runs.resume(row.id)
        assert run.output == "Hello, Al"
        assert rt.runs.get(row.id).status == "ok"
        with pytest.raises(RunError, match="has ended: ok"):
            await rt.runs.resume(row.id)
        with pytest.raises(RunError, match="has ended: ok"):
            await rt.runs.cancel(row.id)


async def test_an_ensemble_that_is_nowhere_can_be_given(tmp_path: Path) -> None:
    store = MemoryRuns()
    row = await cut_off(tmp_path, store, 2)
    async with opened(tmp_path, store) as rt:
        with pytest.raises(NotFoundError, match="greeting"):
            await rt.runs.resume(row.id)
        with pytest.raises(RunChangedError):
            await rt.runs.resume(row.id, ensemble=rt.ensemble(steps("hang")))
        run = await rt.runs.resume(row.id, ensemble=rt.ensemble(steps()))
        assert run.success


async def test_what_is_secret_is_there_when_it_goes_on(tmp_path: Path) -> None:
    token = "correct-horse"
    secret = {
        "ensemble": "secret",
        "agents": [
            {"name": "read", "operation": "transform", "config": {"value": "${env.TOKEN}"}},
            {
                "name": "send",
                "operation": "tools",
                "config": {"mcp": "greeter", "tool": "greet"},
                "input": {"name": "${read.output}"},
            },
        ],
    }
    server, environ = greeter(), {"TOKEN": token, "XDG_STATE_HOME": str(tmp_path / "state")}
    project = {"store": "sqlite:///runs.db", "mcpServers": {"greeter": ENTRY}, "expose_env": ["TOKEN"]}

    def again(**parts: Any) -> Runtime:
        way = {"greeter": server.transport}
        return Runtime.open(
            project, root=tmp_path, transports=way, ensembles=[secret], environ=environ, **parts
        )

    with closing(Database("sqlite:///runs.db", tmp_path)) as database:
        store = SqlRuns(database, find_keys(environ, "runs", project=tmp_path))
        async with again(runs=FaultyRuns(store, 4)) as rt:
            with pytest.raises(StoreError):
                await rt.run("secret", durable=True)
        (row,) = store.list(Wanted())
    async with again() as rt:
        assert (await rt.runs.resume(row.id)).success
    (call,) = [one for one in server.received if one.get("method") == "tools/call"]
    assert call["params"]["arguments"] == {"name": token}


async def test_one_that_is_inside_another_is_not_taken_alone(tmp_path: Path) -> None:
    store = MemoryRuns()
    store.create(RunRow(id="r.x", ensemble="child", root="r", parent="r", durable=True))
    async with opened(tmp_path, store) as rt:
        for act in (rt.runs.resume, rt.runs.cancel):
            with pytest.raises(RunError, match="inside the run r"):
                await act("r.x")


async def test_one_that_goes_on_here_is_ended_here(tmp_path: Path) -> None:
    store = MemoryRuns()
    async with opened(tmp_path, store) as rt:
        handle = rt.start(steps("hang"), durable=True)
        with pytest.raises(RunLostError):
            await rt.runs.resume(handle.id, ensemble=rt.ensemble(steps("hang")))
        row = await rt.runs.cancel(handle.id)
        run = await handle.wait()
    assert (row.status, run.success) == ("cancelled", False)


async def test_one_that_is_not_durable_is_seen_and_ended_while_it_goes_on(tmp_path: Path) -> None:
    store = MemoryRuns()
    async with opened(tmp_path, store) as rt:
        handle = rt.start(steps("hang"))
        await settle()
        assert rt.runs.get(handle.id).status == "running"
        assert rt.runs.record(handle.id)[0].kind == "RunStarted"
        assert store.list(Wanted()) == ()
        assert (await rt.runs.cancel(handle.id)).status == "cancelled"
        assert not (await handle.wait()).success


async def test_one_that_nobody_drives_and_nobody_can_is_ended_as_it_is(tmp_path: Path) -> None:
    store = MemoryRuns()
    row = await cut_off(tmp_path, store)
    store.create(RunRow(id=f"{row.id}.x", ensemble="child", root=row.id, parent=row.id, durable=True))
    async with opened(tmp_path, store) as rt:
        assert (await rt.runs.cancel(row.id)).status == "cancelled"
        assert [one.status for one in rt.runs.list(nested=True)] == ["cancelled"] * 2
        assert [entry.kind for entry in rt.runs.record(row.id)][-2:] == ["RunHalted", "RunEnded"]


async def test_one_elsewhere_is_asked_to_end_and_waited_for(tmp_path: Path) -> None:
    store, clock = MemoryRuns(), FakeClock()
    row = RunRow(id="r", root="r", ensemble="x", durable=True, owner=ELSEWHERE, beat_at=clock.now())
    store.create(row)
    async with opened(tmp_path, store, clock=clock) as rt:
        task = asyncio.ensure_future(rt.runs.cancel("r"))
        while not store.stopped(["r"]):
            await asyncio.to_thread(int)
        store.append("r", [], row=msgspec.structs.replace(row, status="cancelled"))
        while not task.done():
            await clock.advance(clock.next_due() or 0.0)
        assert (await task).status == "cancelled"


async def test_one_elsewhere_that_is_silent_for_long_is_taken(tmp_path: Path) -> None:
    store, clock = MemoryRuns(), FakeClock()
    row = await cut_off(tmp_path, store, 2)
    store.append(row.id, [], row=msgspec.structs.replace(row, owner=ELSEWHERE, beat_at=clock.now()))
    async with opened(tmp_path, store, clock=clock, ensembles=[steps()]) as rt:
        with pytest.raises(RunLostError, match="elsewhere"):
            await rt.runs.resume(row.id)
        await clock.advance(SILENCE + 1)
        assert (await rt.runs.resume(row.id)).success


async def test_who_lost_a_run_is_told_before_it_does_anything(tmp_path: Path) -> None:
    store, server = MemoryRuns(), greeter()
    row = await cut_off(tmp_path, store, 1)
    taken = Entry(seq=3, at=0.0, data=RunTaken(owner=ELSEWHERE))

    class Raced(FaultyRuns):
        def append(self, run: str, entries: Any, *, row: RunRow | None = None) -> None:
            super().append(run, entries, row=row)
            if isinstance(entries[0].data, RunTaken):
                self.store.append(run, [taken])

    async with opened(tmp_path, Raced(store, 1000), server=server, ensembles=[steps()]) as rt:
        with pytest.raises(RunLostError):
            await rt.runs.resume(row.id)
    assert store.read(row.id)[-1] == taken
    assert "tools/call" not in [one.get("method") for one in server.received]


HANGS = "{ensemble: hangs, agents: [{name: a, operation: tools, config: {mcp: s, tool: one}}]}"


async def started(store: RunStore) -> tuple[House, Runs, RunHandle]:
    """A durable run whose only call is never answered, with a clock that is turned by hand."""
    called = asyncio.Event()

    async def never(_: Any) -> None:
        called.set()
        await asyncio.Event().wait()

    house = House(Gate({"s/one": never}), records=store)
    runs = Runs(house.services, lambda _: None, lambda *_: read(HANGS))
    handle = runs.start(read(HANGS), Labelled({}), CallContext(), durable=True)
    await called.wait()
    return house, runs, handle


async def turned(house: House, seconds: float) -> None:
    """Turn the clock, with time for threads to look at the store."""
    until = house.clock.now() + seconds
    while house.clock.now() < until:
        await house.clock.advance(0.5)
        await asyncio.to_thread(int)
        await settle()


async def test_while_it_goes_on_it_gives_signs_of_life_and_sees_that_it_is_to_end() -> None:
    store = MemoryRuns()
    house, runs, handle = await started(store)
    while runs.get(handle.id).beat_at == 1e9:
        await turned(house, BEAT)
    store.stop(handle.id)
    waiting = asyncio.ensure_future(handle.wait())
    while not waiting.done():
        await turned(house, 0.5)
    assert (await waiting).error == {"kind": "cancelled", "message": "the run was cancelled"}
    while house.clock.waiting:  # nobody looks any more
        await turned(house, 0.5)
    await runs.close()


async def test_a_store_that_cannot_be_looked_at_for_a_while_does_not_end_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Blind(MemoryRuns):
        def stopped(self, _: Any) -> frozenset[str]:
            raise StoreError("it is away")

    house, runs, handle = await started(Blind())
    while "it is away" not in caplog.text:
        await turned(house, 0.5)
    assert runs.get(handle.id).status == "running"
    handle.cancel()
    assert not (await handle.wait()).success
    await runs.close()


async def test_a_store_that_is_busy_holds_up_nobody_else(tmp_path: Path) -> None:
    free, began = threading.Event(), threading.Event()

    class Busy(MemoryRuns):
        def create(self, row: RunRow, entries: Any = ()) -> None:
            began.set()
            assert free.wait(30)
            super().create(row, entries)

    store = Busy()
    async with opened(tmp_path, store) as rt:
        waiting = asyncio.ensure_future(rt.run(steps()))
        await asyncio.to_thread(began.wait, 30)
        await settle()  # the loop goes on
        assert not waiting.done()
        free.set()
        run = await waiting
        assert rt.runs.record(run.id) == run.record


async def test_a_record_that_cannot_be_kept_costs_the_run_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Full(MemoryRuns):
        def create(self, row: RunRow, entries: Any = ()) -> None:
            raise OSError(f"disk full at {row.id}, {len(entries)} entries")

    async with opened(tmp_path, Full()) as rt:
        assert (await rt.run(steps())).success
    assert "could not be kept: The record cannot be written: OSError: disk full" in caplog.text
