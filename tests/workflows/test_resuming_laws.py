"""What holds for every run that is gone on with, wherever its record was cut off."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from luthier.clock import FakeClock, settle
from luthier.workflows import Entry, RunRow, decode, encode_all, resumed
from luthier.workflows.record import RunTaken
from luthier.workflows.taking import Taken
from tests.workflows.house import LONG, Gate, House
from tests.workflows.test_driver_laws import ensembles, played, tools

if TYPE_CHECKING:
    from luthier.spec import Ensemble
    from luthier.workflows import Run


def house_at(now: float) -> House:
    house = House(Gate())
    house.clock = FakeClock(now)
    house.services = msgspec.structs.replace(house.services, clock=house.clock)
    return house


async def gone_on(house: House, ensemble: Ensemble, past: tuple[Entry, ...]) -> Run:
    """The run, gone on with from there, when the clock has been turned to its end."""
    row = RunRow(id="run-1", root="run-1", ensemble=ensemble.name, started_at=past[0].at)
    made = resumed(ensemble, Taken(row, past), services=house.services)
    task = asyncio.get_running_loop().create_task(made.run())
    async with asyncio.timeout(LONG):
        await settle()
        while not task.done():
            due = house.clock.next_due()
            assert due is not None, "the run waits for nothing"
            await house.clock.advance(due)
    return task.result()


@settings(deadline=None, max_examples=150)
@given(st.data(), ensembles(), st.sampled_from([None, None, 1.0]))
def test_cut_off_anywhere_it_comes_to_its_end_and_does_nothing_again(
    data: st.DataObject, ensemble: Ensemble, stop_at: float | None
) -> None:
    first = House(Gate())
    tools(data, first)
    asyncio.run(played(first, ensemble, stop_at=stop_at))
    whole = decode(encode_all(first.kept.records["run-1"]))
    cut = data.draw(st.integers(1, len(whole) - 1), label="cut")
    at = whole[cut - 1].at
    past = (*whole[:cut], Entry(seq=cut + 1, at=at, data=RunTaken(owner="other")))
    called = {(entry.step, entry.attempt) for entry in past if entry.kind == "CallIntended"}

    house = house_at(at)
    tools(data, house)
    run = asyncio.run(gone_on(house, ensemble, past))

    assert run.record[: len(past)] == past
    assert [entry.seq for entry in run.record] == list(range(1, len(run.record) + 1))
    ends = Counter(entry.step for entry in run.record if entry.kind == "StepEnded")
    assert set(ends.values()) <= {1}, "no step ends twice"
    assert run.record[-1].kind == "RunEnded"
    assert house.clock.waiting == 0, "no timer is left"
    again = {(call.context.step, call.context.attempt) for call in house.gate.calls}
    assert not again & called, "no call is made twice"
    begun = {entry.step for entry in whole[:cut] if entry.kind == "StepEnded"}
    assert not begun & {entry.step for entry in run.record[cut:] if entry.kind == "StepStarted"}
