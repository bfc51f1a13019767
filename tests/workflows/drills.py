"""Drills: a world that counts what is done to it, runs that are cut off, and gone on with."""

from __future__ import annotations

import asyncio
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from luthier.clock import SystemClock
from luthier.context import CallContext
from luthier.errors import ConnectError, StoreError
from luthier.spec import ServerEntry, ToolFilter
from luthier.taint import Labelled
from luthier.workflows import Ledger, MemoryRuns, Writer, decode, encode_all, plan, prepared, resumed
from luthier.workflows.record import CallIntended
from luthier.workflows.runs import Wanted
from luthier.workflows.taking import take
from tests.workflows.house import LONG, Gate, House, read
from tests.workflows.references import CHILD

if TYPE_CHECKING:
    from collections.abc import Callable

    from luthier.clock import Clock
    from luthier.testing import FaultyRuns
    from luthier.workflows import Entry, Run, RunStore, Services

RUN = "r"


class Kept(MemoryRuns):
    """Runs in memory that are read as they would be from a file."""

    def read(self, run: str) -> tuple[Entry, ...]:
        return decode(encode_all(super().read(run)))


class World:
    """Counts what is done to it. `cut` is called in its `at`th act, in which something is to go wrong.

    `early`: before anything is done in it.
    """

    def __init__(self, at: int = 0, cut: Any = None, *, early: bool = False) -> None:
        self.done: Counter[str] = Counter()
        self.acts = 0
        self._at = at
        self._cut = cut
        self._early = early
        self._failures = 2
        tools = {"do": self.do, "look": self.look, "flaky": self.flaky, "bad": self.bad}
        self.gate = Gate({f"s/{name}": partial(self._act, tool) for name, tool in tools.items()})

    def _act(self, tool: Callable[[dict[str, Any]], Any], arguments: dict[str, Any]) -> Any:
        self.acts += 1
        struck = self._cut is not None and self.acts == self._at
        if struck and self._early:
            self._cut()
        try:
            return tool(arguments)
        finally:
            if struck and not self._early:
                self._cut()

    def do(self, arguments: dict[str, Any]) -> dict[str, Any]:
        self.done[arguments["key"]] += 1
        return {"n": 1}

    def look(self, _: dict[str, Any]) -> dict[str, Any]:
        """What may be done as often as one likes."""
        return {"n": 1}

    def flaky(self, arguments: dict[str, Any]) -> dict[str, Any]:
        if self._failures:
            self._failures -= 1
            raise ConnectError("not yet", server="s")
        return self.do(arguments)

    def bad(self, _: dict[str, Any]) -> dict[str, Any]:
        raise ValueError("it is bad")

    @property
    def twice(self) -> list[str]:
        return [key for key, times in self.done.items() if times > 1]


def services(
    world: World,
    store: RunStore,
    ledger: Ledger,
    writer: Writer,
    *,
    clock: Clock | None = None,
    child: str = CHILD,
) -> Services:
    entry = ServerEntry(id="s", command="python", tools=ToolFilter(idempotent=("look",)))
    house = House(world.gate, servers=[entry], ensembles=[child])
    return msgspec.structs.replace(
        house.services, clock=clock or SystemClock(), runs=store, writer=writer, ledger=ledger
    )


async def begun(text: str, world: World, store: RunStore, *, clock: Clock | None = None, **rest: Any) -> Run:
    """A durable run of an ensemble, from its beginning."""
    writer = Writer(store)
    given = services(world, store, Ledger(writer), writer, clock=clock)
    context = CallContext(root=RUN)
    made = prepared(read(text), Labelled({}), services=given, context=context, id=RUN, **rest)
    try:
        async with asyncio.timeout(LONG):
            return await made.run()
    finally:
        await asyncio.to_thread(writer.close)


async def gone_on(
    text: str,
    world: World,
    store: RunStore,
    *,
    end: bool = False,
    clock: Clock | None = None,
    child: str = CHILD,
) -> Run:
    """The run, taken by another process and gone on with to its end."""
    row = store.row(RUN)
    assert row is not None
    writer = Writer(store)
    ledger = Ledger(writer, resumed=True)
    ensemble = read(text)
    taken = take(store, row, plan(ensemble).digest(), (clock or SystemClock()).now())
    given = services(world, store, ledger, writer, clock=clock, child=child)
    made = resumed(ensemble, taken, services=given)
    if end:
        made.cancel()
    try:
        async with asyncio.timeout(LONG):
            return await made.run()
    finally:
        await asyncio.to_thread(writer.close)


def intended(store: RunStore) -> set[str]:
    """The keys of all acts that the records announce."""
    records = [store.read(row.id) for row in store.list(Wanted(limit=1000, nested=True))]
    calls = [entry.data for record in records for entry in record if isinstance(entry.data, CallIntended)]
    return {call.arguments.value["key"] for call in calls}


def sound(run: Run, world: World, store: RunStore, output: Any, failed: str = "unknown") -> str:
    """How the run ended, when all is as it must be: well, or with that kind of failure."""
    assert world.twice == []
    row = store.row(RUN)
    assert row is not None
    assert row.owner == ""
    assert store.read(RUN) == run.record
    assert [one.seq for one in run.record] == [*range(1, len(run.record) + 1)]
    assert [one.status for one in store.below(RUN) if one.status == "running"] == []
    if run.success:
        assert run.output == output
        assert row.status == "ok"
        return "ok"
    assert run.error is not None
    assert run.error["kind"] == failed, run.error
    assert row.status == "failed"
    return failed


async def cut_off(text: str, world: World, store: FaultyRuns) -> Run | None:
    """The run, or None where it was cut off: then nothing was done that is not written."""
    try:
        return await begun(text, world, store)
    except StoreError:
        assert set(world.done) <= intended(store)
        return None
