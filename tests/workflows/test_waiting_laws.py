"""A durable run that asks people, suspended and gone on with, gives what it gives in one go."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Any

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from luthier.clock import SystemClock
from luthier.connect import MemoryState
from luthier.context import CallContext
from luthier.govern import Approvals, Desk, MemoryAudit, Request
from luthier.spec import Ensemble, HitlConfig, ParallelFlow
from luthier.taint import Labelled
from luthier.workflows import Ledger, Run, Writer, plan, prepared, resumed, run_ensemble
from luthier.workflows.taking import take
from tests.workflows.drills import RUN, Kept
from tests.workflows.house import LONG, Gate, House
from tests.workflows.test_driver_laws import ensembles

if TYPE_CHECKING:
    from luthier.workflows import Services

ANSWERS = {"type": "integer"}


def answer(request: Request) -> int:
    """What is answered at a step, whenever it is asked."""
    return len(request.step)


class Place:
    """What outlasts the processes of one run, with a gate that counts the calls of each step."""

    def __init__(self) -> None:
        self.house = House(Gate({f"s/s{number}": {"n": number} for number in range(6)}))
        self.clock = SystemClock()
        self.state = MemoryState()
        self.log = MemoryAudit()
        self.store = Kept()
        self.approvals = Approvals(self.state, self.log, self.clock)

    def services(self, **rest: Any) -> Services:
        """Those of another process each time."""
        desk = Desk(self.approvals, self.log, self.clock, **rest.pop("asking", {}))
        return msgspec.structs.replace(
            self.house.services, clock=self.clock, state=self.state, people=desk, **rest
        )

    async def at_once(self, ensemble: Ensemble) -> Run:
        services = self.services(asking={"callback": answer}, runs=None)
        return await run_ensemble(ensemble, Labelled({}), services=services)

    async def begun(self, ensemble: Ensemble) -> Run:
        writer = Writer(self.store)
        services = self.services(runs=self.store, writer=writer, ledger=Ledger(writer))
        made = prepared(ensemble, Labelled({}), services=services, context=CallContext(root=RUN), id=RUN)
        return await ended(made.run(), writer)

    async def gone_on(self, ensemble: Ensemble) -> Run:
        writer, row = Writer(self.store), self.store.row(RUN)
        assert row is not None
        assert (row.status, row.owner) == ("suspended", "")
        services = self.services(runs=self.store, writer=writer, ledger=Ledger(writer, resumed=True))
        taken = take(self.store, row, plan(ensemble).digest(), self.clock.now())
        return await ended(resumed(ensemble, taken, services=services).run(), writer)


async def ended(run: Any, writer: Writer) -> Run:
    try:
        done: Run = await run
        return done
    finally:
        await asyncio.to_thread(writer.close)


@st.composite
def asking(draw: st.DrawFn) -> Ensemble:
    """An ensemble some of whose steps ask a person. Nothing races: who waits loses every race."""
    drawn = draw(ensembles().filter(lambda one: not races(one.flow or ())))
    steps = [
        msgspec.structs.replace(
            step, operation="hitl", config=HitlConfig(schema=ANSWERS), timeout=None, retry=None
        )
        if draw(st.booleans())
        else step
        for step in drawn.steps
    ]
    return msgspec.structs.replace(drawn, steps=tuple(steps))


def races(item: Any) -> bool:
    """Whether a flow waits for less than all of it, at any depth."""
    if isinstance(item, ParallelFlow) and item.wait_for != "all":
        return True
    if isinstance(item, dict):
        return any(map(races, item.values()))
    if isinstance(item, tuple):
        return any(map(races, item))
    return isinstance(item, msgspec.Struct) and races(msgspec.structs.astuple(item))


def told(run: Run) -> dict[str, Any]:
    """How each step ended, without what is another each time."""
    return {
        name: (status.success, status.failed, status.skipped, said(status.output))
        for name, status in run.steps.items()
    }


def said(output: Any) -> Any:
    """An answer without who gave it by which way."""
    if isinstance(output, dict):
        return {key: said(value) for key, value in output.items() if key not in ("approver", "duration")}
    return [said(one) for one in output] if isinstance(output, list) else getattr(output, "content", output)


async def suspended_and_gone_on(data: st.DataObject, place: Place, ensemble: Ensemble) -> Run:
    run = await place.begun(ensemble)
    for _ in range(200):
        if not run.suspended:
            break
        listed = await place.approvals.list()
        waiting = sorted((one for one in listed if one.state == "waiting"), key=lambda one: one.step)
        ids = {id for one in run.suspended for id in one.requests}
        assert {one.id for one in waiting} == ids, "people see what the run waits for, and nothing else"
        chosen = data.draw(st.lists(st.sampled_from(waiting), min_size=1, unique_by=lambda one: one.id))
        for one in chosen:
            await place.approvals.approve(one.id, answer=answer(one))
        run = await place.gone_on(ensemble)
    assert not run.suspended
    return run


@settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow]
)
@given(st.data(), asking())
def test_suspended_and_gone_on_with_it_gives_what_it_gives_in_one_go(
    data: st.DataObject, ensemble: Ensemble
) -> None:
    async def both() -> None:
        async with asyncio.timeout(LONG):
            place = Place()
            run = await suspended_and_gone_on(data, place, ensemble)
            at_once = await Place().at_once(ensemble)
        calls = Counter((call.context.step, call.context.attempt) for call in place.house.gate.calls)
        assert all(times == 1 for times in calls.values()), "no call is made again"
        assert await place.approvals.list() == ()
        assert place.store.read(RUN) == run.record
        if not any(status.failed for status in at_once.steps.values()):
            assert told(run) == told(at_once)
            assert said(run.output) == said(at_once.output)

    asyncio.run(both())
