"""Drills: reference ensembles, a world that counts what is done to it, runs cut off and gone on with."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Any

import msgspec

from luthier.clock import SystemClock
from luthier.context import CallContext
from luthier.errors import ConnectError, StoreError
from luthier.spec import ServerEntry, ToolFilter
from luthier.taint import Labelled
from luthier.workflows import Ledger, MemoryRuns, Writer, decode, encode_all, plan, prepared, resumed
from luthier.workflows.record import CallIntended
from luthier.workflows.taking import take
from tests.workflows.house import LONG, Gate, House, read

if TYPE_CHECKING:
    from luthier.clock import Clock
    from luthier.testing import FaultyRuns
    from luthier.workflows import Entry, Run, RunStore, Services

RUN = "r"

SEQUENCE = """
ensemble: sequence
state: {schema: {seen: number}}
agents:
  - {name: first, operation: tools, config: {mcp: s, tool: do}, input: {key: first}}
  - name: flaky
    operation: tools
    config: {mcp: s, tool: flaky}
    input: {key: flaky}
    retry: {maxAttempts: 3, initialDelay: 1, backoff: fixed}
  - name: sum
    operation: transform
    config: {value: "${first.output.n + flaky.output.n}"}
    state: {set: {seen: "${sum.output}"}}
  - {name: last, operation: tools, config: {mcp: s, tool: do}, input: {key: last, n: "${sum.output}"}}
outputs: {sum: "${sum.output}", last: "${last.output.n}", seen: "${state.seen}"}
"""

PARALLEL = """
ensemble: parallel
agents:
  - {name: one, operation: tools, config: {mcp: s, tool: do}, input: {key: one}}
  - {name: two, operation: tools, config: {mcp: s, tool: look}, input: {key: two}}
  - {name: add, operation: tools, config: {mcp: s, tool: do}, input: {key: "add-${item}", n: "${item}"}}
  - {name: total, operation: transform, config: {value: "${results | length}"}}
flow:
  - parallel: {id: both, steps: [one, two]}
  - map-reduce: {id: all, items: [1, 2, 3], maxConcurrency: 2, map: add, reduce: total}
outputs: {both: "${one.output.n + two.output.n}", total: "${total.output}"}
"""

TRY = """
ensemble: careful
agents:
  - {name: risk, operation: tools, config: {mcp: s, tool: bad}, input: {key: risk}}
  - {name: mend, operation: tools, config: {mcp: s, tool: do}, input: {key: "mend-${error.step}"}}
  - {name: tidy, operation: tools, config: {mcp: s, tool: do}, input: {key: tidy}}
flow:
  - try: {steps: [risk], catch: [mend], finally: [tidy]}
outputs: {mended: "${mend.output.n}", tidy: "${tidy.output.n}"}
"""

NESTED = """
ensemble: nested
agents:
  - {name: inner, operation: ensemble, config: {ensemble: child}, input: {key: "${item}"}}
  - {name: after, operation: tools, config: {mcp: s, tool: do}, input: {key: after}}
flow:
  - foreach: {id: each, items: [a, b], step: inner, maxConcurrency: 2}
  - after
outputs: {each: "${each.output}", after: "${after.output.n}"}
"""

CHILD = """
ensemble: child
inputs: {key: {type: string, required: true}}
agents:
  - {name: one, operation: tools, config: {mcp: s, tool: do}, input: {key: "${input.key}-1"}}
  - name: two
    operation: tools
    config: {mcp: s, tool: do}
    input: {key: "${input.key}-2", n: "${one.output.n}"}
outputs: "${one.output.n + two.output.n}"
"""

WHILE = """
ensemble: counting
state: {schema: {count: number}, initial: {count: 0}}
agents:
  - name: step
    operation: tools
    config: {mcp: s, tool: do}
    input: {key: "step-${iteration}"}
    state: {set: {count: "${state.count + step.output.n}"}}
flow:
  - while: {condition: "${state.count < 3}", steps: [step]}
outputs: {count: "${state.count}"}
"""

REFERENCES: dict[str, tuple[str, Any]] = {
    "sequence with retry": (SEQUENCE, {"sum": 2, "last": 1, "seen": 2}),
    "parallel and map-reduce": (PARALLEL, {"both": 2, "total": 3}),
    "try, catch, finally": (TRY, {"mended": 1, "tidy": 1}),
    "nested with foreach": (NESTED, {"each": [2, 2], "after": 1}),
    "while with state": (WHILE, {"count": 3}),
}
"""Each with what it gives when nothing goes wrong."""


class Kept(MemoryRuns):
    """Runs in memory that are read as they would be from a file."""

    def read(self, run: str) -> tuple[Entry, ...]:
        return decode(encode_all(super().read(run)))


class World:
    """Counts what is done to it. `cut` is called in its `at`th act, in which something is to go wrong."""

    def __init__(self, at: int = 0, cut: Any = None) -> None:
        self.done: Counter[str] = Counter()
        self.acts = 0
        self._at = at
        self._cut = cut
        self._failures = 2
        self.gate = Gate({"s/do": self.do, "s/look": self.look, "s/flaky": self.flaky, "s/bad": self.bad})

    def _act(self) -> None:
        self.acts += 1
        if self._cut is not None and self.acts == self._at:
            self._cut()

    def do(self, arguments: dict[str, Any]) -> dict[str, Any]:
        self.done[arguments["key"]] += 1
        self._act()
        return {"n": 1}

    def look(self, _: dict[str, Any]) -> dict[str, Any]:
        """What may be done as often as one likes."""
        self._act()
        return {"n": 1}

    def flaky(self, arguments: dict[str, Any]) -> dict[str, Any]:
        if self._failures:
            self._failures -= 1
            self._act()
            raise ConnectError("not yet", server="s")
        return self.do(arguments)

    def bad(self, _: dict[str, Any]) -> dict[str, Any]:
        self._act()
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
    records = [store.read(row.id) for row in store.list(limit=1000)]
    calls = [entry.data for record in records for entry in record if isinstance(entry.data, CallIntended)]
    return {call.arguments.value["key"] for call in calls}


async def cut_off(text: str, world: World, store: FaultyRuns) -> Run | None:
    """The run, or None where it was cut off: then nothing was done that is not written."""
    try:
        return await begun(text, world, store)
    except StoreError:
        assert set(world.done) <= intended(store)
        return None
