"""Every report of rows.json that a server on pipes can show, shown; and none forgotten."""

from __future__ import annotations

import ast
import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.faults.bench import ERAS, ROOT, Bench
from tests.faults.modes import answers, calls, eras, framing, hosts, lists, lives
from tests.faults.modes.mode import MODES
from tests.faults.rows import calls as calls_rows
from tests.faults.rows import files as files_rows
from tests.faults.rows import framing as framing_rows
from tests.faults.rows import lists as lists_rows
from tests.faults.rows import lives as lives_rows
from tests.faults.rows import results as results_rows
from tests.faults.rows.table import TABLE, Row

REPORTS: dict[str, dict[str, Any]] = json.loads((Path(__file__).parent / "rows.json").read_text("utf-8"))
JUDGES = (calls_rows, files_rows, framing_rows, lists_rows, lives_rows, results_rows)
MODULES = (answers, calls, eras, framing, hosts, lists, lives)


CASES = [pytest.param(row, era, id=f"{row.name}-{era}-{row.says}") for row in TABLE for era in row.eras]


@pytest.mark.parametrize(("row", "era"), CASES)
async def test_row(row: Row, era: str, tmp_path: Path) -> None:
    bench = Bench(tmp_path, row.mode, row.arguments, ERAS[era])
    try:
        async with asyncio.timeout(row.within):
            await row.act(bench)
    finally:
        bench.kill_leftovers()


def test_every_report_has_a_row_or_a_reason_and_a_test_elsewhere() -> None:
    shown = {row.number for row in TABLE}
    for number, report in REPORTS.items():
        if number in shown:
            assert "not_here" not in report, f"{number} is shown here after all"
        elif "as" in report:
            assert report["as"] in shown, f"{number} is said to be shown as {report['as']}"
        else:
            assert report.get("not_here"), f"{number} ({report['says']}) has no row and no reason"
            if report.get("elsewhere"):
                assert exists(report["elsewhere"]), f"{number}: there is no {report['elsewhere']}"


def test_every_row_answers_a_report() -> None:
    assert {row.number for row in TABLE} <= REPORTS.keys()


def test_every_mode_has_a_row_and_every_row_a_mode() -> None:
    named = {row.mode for row in TABLE}
    assert named == MODES.keys()


def test_every_mode_says_what_it_imitates() -> None:
    assert [name for name, mode in MODES.items() if not mode.__doc__] == []


def exists(test: str) -> bool:
    """Whether `tests/…/test_x.py::test_name` is there."""
    file, _, name = test.partition("::")
    if not (ROOT / file).is_file():
        return False
    tree = ast.parse((ROOT / file).read_text("utf-8"))
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return not name or any(function.name == name for function in functions)
