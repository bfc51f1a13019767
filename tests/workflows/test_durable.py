"""Durable runs: cut off anywhere, they go on where they were, and nothing that counts is done twice."""

from __future__ import annotations

from collections import Counter
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from luthier.testing import FaultyRuns
from luthier.workflows.machine import fold
from luthier.workflows.plan import plan
from tests.workflows.drills import REFERENCES, RUN, Kept, World, begun, cut_off, gone_on
from tests.workflows.house import read

if TYPE_CHECKING:
    from collections.abc import Callable

    from luthier.workflows import Run

ALL = 10_000  # more entries than any of them makes

each_reference = pytest.mark.parametrize(
    ("text", "output"), [pytest.param(*one, id=name) for name, one in REFERENCES.items()]
)


def sound(run: Run, world: World, store: Kept, output: Any) -> str:
    """How the run ended, when all is as it must be."""
    assert world.twice == []
    row = store.row(RUN)
    assert row is not None
    assert row.owner == ""
    assert store.read(RUN) == run.record
    assert [one.status for one in store.below(RUN) if one.status == "running"] == []
    if run.success:
        assert run.output == output
        assert row.status == "ok"
        return "ok"
    assert run.error is not None
    assert run.error["kind"] == "unknown", run.error
    assert row.status == "failed"
    return "unknown"


@each_reference
async def test_a_durable_run_gives_what_any_other_gives(text: str, output: Any) -> None:
    world, store = World(), Kept()
    run = await begun(text, world, store)
    assert sound(run, world, store, output) == "ok"
    assert fold(plan(read(text)), store.read(RUN)).ended is not None


def told(text: str, where: str, times: int, ends: list[str]) -> str:
    name, counts = read(text).name, Counter(ends)
    found = f"{counts['ok']} ok, {counts['unknown']} unknown, 0 done twice"
    return f"durable: {name} cut off {times} times {where}: {found}"


@each_reference
async def test_cut_off_after_any_entry_it_goes_on(
    text: str, output: Any, figure: Callable[[str], None]
) -> None:
    ends: list[str] = []
    for last in count():
        world, store = World(), Kept()
        if await cut_off(text, world, FaultyRuns(store, last)) is not None:
            break
        if store.row(RUN) is None:
            assert not world.done
            continue
        ends.append(sound(await gone_on(text, world, store), world, store, output))
    figure(told(text, "behind an entry", last, ends))


@each_reference
async def test_cut_off_in_any_act_it_goes_on(text: str, output: Any, figure: Callable[[str], None]) -> None:
    ends: list[str] = []
    for at in count(1):
        store = Kept()
        faulty = FaultyRuns(store, ALL)
        world = World(at, partial(setattr, faulty, "left", 0))
        if await cut_off(text, world, faulty) is not None:
            break
        ends.append(sound(await gone_on(text, world, store), world, store, output))
    figure(told(text, "in an act", at - 1, ends))
