"""Durable runs: cut off anywhere, they go on where they were, and nothing that counts is done twice."""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress
from typing import Any

import msgspec
import pytest

from luthier.clock import SystemClock
from luthier.errors import RunChangedError, RunLostError, StoreError
from luthier.testing import FaultyRuns
from luthier.workflows import Entry
from luthier.workflows.ending import CANCELLED
from luthier.workflows.machine import fold
from luthier.workflows.owners import claim, me, release
from luthier.workflows.plan import plan
from luthier.workflows.record import RunHalted, RunTaken
from luthier.workflows.taking import take
from tests.workflows.drills import RUN, Kept, World, begun, cut_off, gone_on, sound
from tests.workflows.house import read
from tests.workflows.references import CHILD, NESTED, REFERENCES, TRY, WHILE

each_reference = pytest.mark.parametrize(
    ("text", "output"), [pytest.param(*one, id=name) for name, one in REFERENCES.items()]
)


@each_reference
async def test_a_durable_run_gives_what_any_other_gives(text: str, output: Any) -> None:
    world, store = World(), Kept()
    run = await begun(text, world, store)
    assert sound(run, world, store, output) == "ok"
    assert fold(plan(read(text)), store.read(RUN)).ended is not None


@each_reference
@pytest.mark.parametrize("entries", [5, 6, 8])
async def test_cut_off_again_and_again_it_comes_to_its_end(text: str, output: Any, entries: int) -> None:
    world, store = World(), Kept()
    run = await cut_off(text, world, FaultyRuns(store, entries))
    for _ in range(30):
        if run is not None:
            break
        with suppress(StoreError):
            run = await gone_on(text, world, FaultyRuns(store, entries))
    assert run is not None
    sound(run, world, store, output)


async def test_one_that_had_ended_is_as_it_was() -> None:
    world, store = World(), Kept()
    run = await begun(WHILE, world, store)
    again = await gone_on(WHILE, world, store)
    assert (again.output, again.record, again.steps.keys()) == (run.output, run.record, run.steps.keys())
    assert world.acts == 3


async def test_of_two_who_take_it_at_once_one_goes_on() -> None:
    store = Kept()
    await cut_off(WHILE, World(), FaultyRuns(store, 6))
    row = store.row(RUN)
    assert row is not None
    digest = plan(read(WHILE)).digest()
    gone = msgspec.structs.replace(row, owner="")
    took = await asyncio.gather(
        *(asyncio.to_thread(take, store, gone, digest, 0.0) for _ in range(4)), return_exceptions=True
    )
    release(RUN)
    assert sorted(type(one).__name__ for one in took) == ["RunLostError"] * 3 + ["Taken"]
    with pytest.raises(RunLostError):  # who had it before
        store.append(RUN, [Entry(seq=7, at=0.0, data=RunHalted(error=CANCELLED))])


async def test_who_looked_before_another_process_took_it_is_told() -> None:
    store = Kept()
    await cut_off(WHILE, World(), FaultyRuns(store, 6))
    row = store.row(RUN)
    assert row is not None
    theirs = msgspec.structs.replace(row, owner="elsewhere:1:1", beat_at=100.0)
    store.append(RUN, [Entry(seq=7, at=100.0, data=RunTaken(owner=theirs.owner))], row=theirs)
    with pytest.raises(RunLostError, match="elsewhere"):
        take(store, msgspec.structs.replace(row, owner=""), plan(read(WHILE)).digest(), 100.0)
    assert len(store.read(RUN)) == 7


@pytest.mark.parametrize("why", ["lost", "changed"])
async def test_where_one_inside_cannot_be_gone_on_with_all_of_it_is_left_as_it_is(why: str) -> None:
    """It is no failure of the step: somebody who can goes on with it."""
    world, store = World(), Kept()
    await cut_off(NESTED, world, FaultyRuns(store, 8))
    inner = next(row for row in store.below(RUN) if row.status == "running")
    theirs = msgspec.structs.replace(inner, owner="elsewhere:1:1", beat_at=SystemClock().now())
    if why == "lost":
        store.append(inner.id, [], row=theirs)
        with pytest.raises(RunLostError, match="elsewhere"):
            await gone_on(NESTED, world, store)
        store.append(inner.id, [], row=inner)
    else:
        with pytest.raises(RunChangedError, match=f"luthier runs cancel {RUN}$"):
            await gone_on(NESTED, world, store, child=CHILD.replace("-1", "-first"))
    row = store.row(RUN)
    assert row is not None
    assert row.status == "running"
    run = await gone_on(NESTED, world, store)
    sound(run, world, store, REFERENCES["nested with foreach"][1])


async def test_a_live_owner_keeps_it() -> None:
    store = Kept()
    await cut_off(WHILE, World(), FaultyRuns(store, 6))
    row = store.row(RUN)
    assert row is not None
    assert row.owner == me()
    assert claim(RUN)
    try:
        with pytest.raises(RunLostError, match=re.escape(me())):
            await gone_on(WHILE, World(), store)
    finally:
        release(RUN)


async def test_another_plan_is_refused_and_nothing_written() -> None:
    store = Kept()
    await cut_off(WHILE, World(), FaultyRuns(store, 6))
    before = store.read(RUN), store.row(RUN)
    with pytest.raises(RunChangedError, match="was changed since the run r began"):
        await gone_on(WHILE.replace("< 3", "< 4"), World(), store)
    assert (store.read(RUN), store.row(RUN)) == before


async def test_cancelled_when_it_is_taken_it_runs_finally_only() -> None:
    world, store = World(), Kept()
    await cut_off(TRY, world, FaultyRuns(store, 3))
    run = await gone_on(TRY, world, store, end=True)
    assert run.error is not None
    assert run.error["kind"] == "cancelled"
    assert world.done == {"tidy": 1}
    row = store.row(RUN)
    assert row is not None
    assert row.status == "cancelled"


async def test_one_that_was_stopped_before_it_was_cut_off_comes_to_its_end() -> None:
    """The first entry behind the halt is the last that is written."""
    world, store = World(), Kept()
    await cut_off(TRY, world, FaultyRuns(store, 3))
    with suppress(StoreError):
        await gone_on(TRY, world, FaultyRuns(store, 2), end=True)
    assert [entry.kind for entry in store.read(RUN)][-1] == "RunHalted"
    run = await gone_on(TRY, world, store)
    assert run.error is not None
    assert run.error["kind"] == "cancelled"
    assert world.done == {"tidy": 1}


async def test_the_time_and_the_inputs_are_those_of_its_beginning() -> None:
    text = """
    ensemble: timed
    inputs: {a: 1}
    agents:
      - {name: first, operation: tools, config: {mcp: s, tool: do}, input: {key: first}}
      - {name: last, operation: tools, config: {mcp: s, tool: do}, input: {key: "last-${first.output.n}"}}
    outputs: {at: "${now()}", a: "${input.a}", started: "${run.started}", n: "${last.output.n}"}
    """
    store, world = Kept(), World()
    await cut_off(text, world, FaultyRuns(store, 5))
    run = await gone_on(text, world, store)
    row = store.row(RUN)
    assert row is not None
    at = int(row.started_at * 1000)
    assert run.output == {"at": at, "a": 1, "started": row.started_at, "n": 1}


async def test_a_deadline_that_passed_meanwhile_has_passed() -> None:
    store, world = Kept(), World()
    with suppress(StoreError):
        await begun(WHILE, world, FaultyRuns(store, 6), timeout=0.0)
    assert store.read(RUN)[0].data.deadline is not None  # type: ignore[union-attr]
    run = await gone_on(WHILE, world, store)
    assert run.error is not None
    assert run.error["kind"] == "timeout"
