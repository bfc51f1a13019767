"""Every report of rows.json that a server on pipes can show, shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.faults.bench import ERAS, Bench, Drills, bound
from tests.faults.modes import answers, calls, eras, framing, hosts, lists, lives
from tests.faults.modes.mode import MODES
from tests.faults.rows import calls as calls_rows
from tests.faults.rows import files as files_rows
from tests.faults.rows import framing as framing_rows
from tests.faults.rows import lists as lists_rows
from tests.faults.rows import lives as lives_rows
from tests.faults.rows import results as results_rows
from tests.faults.rows.table import TABLE, Row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

JUDGES = (calls_rows, files_rows, framing_rows, lists_rows, lives_rows, results_rows)
MODULES = (answers, calls, eras, framing, hosts, lists, lives)


CASES = [pytest.param(row, era, id=f"{row.name}-{era}-{row.says}") for row in TABLE for era in row.eras]


@pytest.fixture(scope="module")
def drills(figure: Callable[[str], None]) -> Iterator[Drills]:
    """Those of this file; the figure is printed."""
    yield (drills := Drills())
    figure(drills.told("over pipes"))


@pytest.mark.parametrize(("row", "era"), CASES)
async def test_row(row: Row, era: str, tmp_path: Path, drills: Drills) -> None:
    bench = Bench(tmp_path, row.mode, row.arguments, ERAS[era])
    try:
        async with drills.one(bound(row.within)):
            await row.act(bench)
    finally:
        bench.kill_leftovers()


def test_every_mode_has_a_row_and_every_row_a_mode() -> None:
    named = {row.mode for row in TABLE}
    assert named == MODES.keys()


def test_every_mode_says_what_it_imitates() -> None:
    assert [name for name, mode in MODES.items() if not mode.__doc__] == []
