"""Runs that ended long ago are taken away, with all that belongs to them; what goes on or waits is left."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from luthier import Runtime
from luthier.clock import FakeClock
from luthier.errors import NotFoundError
from luthier.runtime.pruning import pruned
from luthier.store import DEFAULT, Database
from luthier.store.runs import SqlRuns
from luthier.workflows import RunRow
from luthier.workflows.runs import Wanted

if TYPE_CHECKING:
    from pathlib import Path

ONE: dict[str, Any] = {
    "ensemble": "one",
    "agents": [{"name": "a", "operation": "transform", "config": {"value": 1}}],
}
OUTER: dict[str, Any] = {
    "ensemble": "outer",
    "agents": [{"name": "a", "operation": "ensemble", "config": {"ensemble": "one"}}],
}
WAITS: dict[str, Any] = {
    "ensemble": "waits",
    "agents": [{"name": "ask", "operation": "hitl", "config": {"prompt": "Go on?", "timeout": 10**12}}],
}


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest) -> str:
    return DEFAULT if request.param == "sqlite" else str(request.getfixturevalue("postgres_url"))


async def test_what_ended_before_goes_with_all_that_belongs_to_it(tmp_path: Path, store: str) -> None:
    clock = FakeClock()
    parts: dict[str, Any] = {"root": tmp_path, "clock": clock, "ensembles": [ONE, OUTER, WAITS]}
    async with Runtime.open({"store": store}, **parts) as rt:
        outer = await rt.run("outer", durable=True)
        waits = await rt.run("waits", durable=True)
        cancelled = await rt.run("waits", durable=True)
        await rt.runs.cancel(cancelled.id)
        await clock.advance(60)
        later = await rt.run("one")
        before = clock.now() - 30

        kept = rt.runs.list(nested=True)
        assert len(kept) == 5
        told = await rt.runs.prune(before, dry_run=True)
        assert {row.id for row in told} == {outer.id, cancelled.id}
        assert rt.runs.list(nested=True) == kept, "it was only told"

        assert await rt.runs.prune(before) == told
        assert {row.id for row in rt.runs.list(nested=True)} == {waits.id, later.id}
        with pytest.raises(NotFoundError):
            rt.runs.record(outer.id)
        assert await rt.runs.prune(before) == ()

        (request,) = await rt.approvals.list()
        assert request.run == waits.id
        await rt.approvals.approve(request.id)
        assert (await rt.runs.resume(waits.id)).success


async def test_what_an_ended_run_has_left_before_people_goes_with_it(tmp_path: Path, store: str) -> None:
    """A run that was ended as it is could not take its requests back."""
    clock = FakeClock()
    parts: dict[str, Any] = {"root": tmp_path, "clock": clock}
    async with Runtime.open({"store": store}, **parts) as rt:
        waits = await rt.run(WAITS, durable=True)
    async with Runtime.open({"store": store}, **parts) as rt:
        assert (await rt.runs.cancel(waits.id)).status == "cancelled"
        await clock.advance(1)
        assert len(await rt.runs.prune(clock.now())) == 1
        assert await rt.approvals.list() == ()


async def test_however_many_there_are(store: str, tmp_path: Path) -> None:
    with closing(Database(store, tmp_path)) as database:
        runs = SqlRuns(database)
        for number in range(1001):
            id = f"r-{number}"
            runs.create(RunRow(id=id, root=id, ensemble="e", started_at=number % 7, ended_at=8.0))
        assert len(await pruned(runs, None, 9.0)) == 1001
        assert runs.list(Wanted(nested=True)) == ()
