"""A suspended run whose question is void is gone on with where it was suspended, and where it is served."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from luthier import Runtime
from luthier.clock import FakeClock, settle
from luthier.errors import StoreError
from luthier.runtime.expiring import LOOK
from luthier.store import DEFAULT
from luthier.workflows import MemoryRuns
from tests.workflows.house import LONG

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    import pytest

    from luthier.workflows import RunRow
    from luthier.workflows.runs import Wanted

MINUTE, DAY = 60.0, 86_400.0


def asks(timeout: float = MINUTE, **config: Any) -> dict[str, Any]:
    return {"operation": "hitl", "config": {"prompt": "Go on?", "timeout": timeout * 1000, **config}}


WAITS: dict[str, Any] = {"ensemble": "waits", "agents": [{"name": "ask", **asks()}]}
TWICE: dict[str, Any] = {
    "ensemble": "twice",
    "agents": [
        {"name": "soon", **asks(onTimeout="continue")},
        {"name": "late", **asks(3 * DAY)},
    ],
}


@asynccontextmanager
async def opened(root: Path, clock: FakeClock, *ensembles: Any, **parts: Any) -> AsyncIterator[Runtime]:
    """A runtime that watches no switches: nothing but what is tested waits by the clock."""
    runtime = Runtime.open({"store": DEFAULT}, root=root, clock=clock, ensembles=ensembles, **parts)
    try:
        yield runtime
    finally:
        await runtime.close()


async def until(true: Callable[[], bool]) -> None:
    """Wait for what threads do; the clock stands still."""
    async with asyncio.timeout(LONG):
        while not true():
            await asyncio.to_thread(int)
            await settle()


async def at_rest(clock: FakeClock) -> None:
    """Turn the clock until it only waits for questions: the state store has five seconds, in a thread."""
    async with asyncio.timeout(LONG):
        while (due := clock.next_due() or 0.0) <= 5:
            if due <= 0.5:
                await clock.advance(due)
            await asyncio.to_thread(int)
            await settle()


async def test_it_ends_where_it_was_suspended(tmp_path: Path) -> None:
    clock = FakeClock()
    async with opened(tmp_path, clock) as rt:
        run = await rt.run(WAITS, durable=True)
        await clock.advance(MINUTE - 1)
        assert rt.runs.get(run.id).status == "suspended"
        assert not rt.runs.expired(rt.runs.get(run.id))
        await clock.advance(2)
        await until(lambda: rt.runs.get(run.id).status == "failed")
        async with asyncio.timeout(LONG):
            while await rt.approvals.list():
                await settle()
    assert clock.waiting == 0


async def test_what_waits_for_more_is_minded_on(tmp_path: Path) -> None:
    clock = FakeClock()
    async with opened(tmp_path, clock) as rt:
        run = await rt.run(TWICE, durable=True)
        await clock.advance(MINUTE)
        await until(lambda: [one.step for one in rt.runs.get(run.id).waiting] == ["late"])
        await at_rest(clock)
        void_at = rt.runs.get(run.id).void_at
        assert void_at is not None
        await clock.advance(void_at - clock.now())
        await until(lambda: rt.runs.get(run.id).status == "failed")
    assert clock.waiting == 0


async def test_what_was_gone_on_with_by_somebody_is_left_alone(tmp_path: Path) -> None:
    clock = FakeClock()
    async with opened(tmp_path, clock) as rt:
        run = await rt.run(WAITS, durable=True)
        async with opened(tmp_path, clock) as other:
            (request,) = await other.approvals.list()
            await other.approvals.approve(request.id)
            resumed = await other.runs.resume(run.id, ensemble=rt.ensemble(WAITS))
        await clock.advance(MINUTE + 1)
        await until(lambda: not clock.waiting)
        assert rt.runs.record(run.id) == resumed.record


async def test_a_runtime_that_is_closed_minds_nothing(tmp_path: Path) -> None:
    clock = FakeClock()
    async with opened(tmp_path, clock) as rt:
        run = await rt.run(WAITS, durable=True)
    assert clock.waiting == 0
    await clock.advance(MINUTE + 1)
    async with opened(tmp_path, clock) as rt:
        assert rt.runs.expired(rt.runs.get(run.id))


class Watched(MemoryRuns):
    """A store that counts the looks at what is suspended, and is away when it is told so."""

    away = False
    looks = 0

    def row(self, run: str) -> RunRow | None:
        if self.away:
            raise StoreError("it is away")
        return super().row(run)

    def list(self, wanted: Wanted) -> tuple[RunRow, ...]:
        self.looks += wanted.before is None
        if self.away:
            raise StoreError("it is away")
        return super().list(wanted)


async def test_a_store_that_is_away_is_asked_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    clock, store = FakeClock(), Watched()
    async with opened(tmp_path, clock, runs=store) as rt:
        run = await rt.run(WAITS, durable=True)
        store.away = True
        await clock.advance(MINUTE)
        await until(lambda: "the store is away" in caplog.text)
        store.away = False
        await clock.advance(LOOK)
        await until(lambda: rt.runs.get(run.id).status == "failed")


async def test_a_host_goes_on_with_what_others_have_suspended(tmp_path: Path) -> None:
    clock, store, gone_on = FakeClock(), Watched(), list[str]()
    async with opened(tmp_path, clock, WAITS, runs=store) as rt:
        first = await rt.run("waits", durable=True)
        unknown = await rt.run({**WAITS, "ensemble": "unknown"}, durable=True)
    async with opened(tmp_path, clock, WAITS, runs=store) as host:

        async def go_on(row: RunRow) -> None:
            gone_on.append(row.id)
            await host.runs.resume(row.id)

        async def a_look_later(looks: int) -> None:
            await clock.advance(LOOK)
            await until(lambda: store.looks == looks)

        host.runs.mind_all(go_on)
        await until(lambda: store.looks == 1)
        await a_look_later(2)
        await until(lambda: host.runs.get(first.id).status == "failed" and unknown.id in gone_on)
        await at_rest(clock)
        async with opened(tmp_path, clock, WAITS, runs=store) as rt:
            later = await rt.run("waits", durable=True)
        await a_look_later(3)
        await until(lambda: host.runs.get(later.id).status == "failed")
        assert host.runs.get(unknown.id).status == "suspended", "nobody has its ensemble"
        assert sorted(gone_on) == sorted([first.id, unknown.id, later.id]), "it is not tried again"
    assert clock.waiting == 0


async def test_a_host_whose_store_is_away_looks_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock, store = FakeClock(), Watched()
    async with opened(tmp_path, clock, WAITS, runs=store) as rt:
        run = await rt.run("waits", durable=True)
    store.away = True
    async with opened(tmp_path, clock, WAITS, runs=store) as host:
        host.runs.mind_all(lambda row: host.runs.resume(row.id))
        await until(lambda: "cannot be seen" in caplog.text)
        store.away = False
        await clock.advance(LOOK)
        await until(lambda: host.runs.get(run.id).status == "failed")
