"""Every report that a server by HTTP can show, shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.faults.bench import ERAS, Drills, bound
from tests.faults.http.bench import HttpBench
from tests.faults.http.modes import answers, lives, streams
from tests.faults.http.modes.mode import MODES
from tests.faults.http.peer import HttpPeer
from tests.faults.http.rows import answers as answers_rows
from tests.faults.http.rows import lives as lives_rows
from tests.faults.http.rows import streams as streams_rows
from tests.faults.http.rows import ways as ways_rows
from tests.faults.http.table import TABLE, Row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

JUDGES = (answers_rows, lives_rows, streams_rows, ways_rows)
MODULES = (answers, lives, streams)

CASES = [pytest.param(row, era, id=f"{row.name}-{era}-{row.says}") for row in TABLE for era in row.eras]


@pytest.fixture(scope="module")
def drills(figure: Callable[[str], None]) -> Iterator[Drills]:
    """Those of this file; the figure is printed."""
    yield (drills := Drills())
    figure(drills.told("by HTTP"))


@pytest.mark.parametrize(("row", "era"), CASES)
async def test_row(row: Row, era: str, tmp_path: Path, drills: Drills) -> None:
    peer = HttpPeer(*row.arguments)
    MODES[row.mode](peer)
    async with peer, drills.one(bound(row.within)):
        await row.act(HttpBench(tmp_path, row.mode, row.arguments, ERAS[era], peer=peer))


def test_every_mode_has_a_row_and_every_row_a_mode() -> None:
    assert {row.mode for row in TABLE} == MODES.keys()


def test_every_mode_says_what_it_imitates() -> None:
    assert [name for name, mode in MODES.items() if not mode.__doc__] == []
