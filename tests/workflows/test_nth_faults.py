"""Each entry, each store operation and each act of five reference ensembles goes wrong once, in process."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from luthier.errors import ConnectError, ConnectionLostError, StoreError
from luthier.testing import FaultyRuns
from tests.workflows.drills import RUN, Kept, World, begun, cut_off, gone_on, sound
from tests.workflows.faulty import ALL, FaultyOnce
from tests.workflows.house import read
from tests.workflows.references import REFERENCES

if TYPE_CHECKING:
    from collections.abc import Callable

each_reference = pytest.mark.parametrize(
    ("text", "output"), [pytest.param(*one, id=name) for name, one in REFERENCES.items()]
)


def told(text: str, where: str, times: int, ends: list[str]) -> str:
    name, counts = read(text).name, Counter(ends)
    found = f"{counts['ok']} ok, {counts['unknown']} unknown, {counts['connect']} failed, 0 done twice"
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


@each_reference
async def test_a_reply_that_is_lost_is_unknown_and_nothing_is_done_twice(
    text: str, output: Any, figure: Callable[[str], None]
) -> None:
    def lost() -> None:
        raise ConnectionLostError("the connection ended", server="s", tool="do", sent=True)

    ends: list[str] = []
    for at in count(1):
        world, store = World(at, lost), Kept()
        run = await begun(text, world, store)
        if world.acts < at:
            break
        ends.append(sound(run, world, store, output))
    figure(told(text, "from its reply", at - 1, ends))


@each_reference
@pytest.mark.parametrize("late", [False, True], ids=["not done", "done and not told"])
async def test_an_operation_of_the_store_fails_once_and_it_goes_on(
    text: str, output: Any, *, late: bool, figure: Callable[[str], None]
) -> None:
    ends: list[str] = []
    for at in count(1):
        world, store = World(), Kept()
        faulty = FaultyOnce(store, at, late=late)
        run = await cut_off(text, world, faulty)
        if not faulty.struck:
            break
        assert run is None
        if store.row(RUN) is None:
            assert not world.done
            continue
        ends.append(sound(await gone_on(text, world, store), world, store, output))
    where = f"by an operation of the store that {'was done and said it was not' if late else 'failed'}"
    figure(told(text, where, at - 1, ends))


@each_reference
async def test_an_operation_of_the_store_fails_once_while_it_is_gone_on_with(
    text: str, output: Any, figure: Callable[[str], None]
) -> None:
    ends: list[str] = []
    for at in count(1):
        world, store = World(), Kept()
        await cut_off(text, world, FaultyRuns(store, 5))
        faulty = FaultyOnce(store, at)
        with suppress(StoreError):
            await gone_on(text, world, faulty)
        if not faulty.struck:
            break
        ends.append(sound(await gone_on(text, world, store), world, store, output))
    figure(told(text, "by the store on its way on", at - 1, ends))


@each_reference
@pytest.mark.parametrize("sent", [False, True], ids=["refused", "sent and not taken"])
async def test_an_act_fails_before_it_is_done(
    text: str, output: Any, *, sent: bool, figure: Callable[[str], None]
) -> None:
    def fails() -> None:
        if sent:
            raise ConnectionLostError("the connection ended", server="s", tool="do", sent=True)
        raise ConnectError("nobody listens", server="s")

    kind = "unknown" if sent else "connect"
    ends: list[str] = []
    for at in count(1):
        world, store = World(at, fails, early=True), Kept()
        run = await begun(text, world, store)
        if world.acts < at:
            break
        ends.append(sound(run, world, store, output, kind))
    figure(told(text, "before an act", at - 1, ends))
