"""No report of rows.json is forgotten: each is shown by a server on pipes or by HTTP, or says why not."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

from tests.faults import test_http_rows, test_rows
from tests.faults.bench import ROOT
from tests.faults.http.table import TABLE as HTTP_TABLE
from tests.faults.rows.table import TABLE

REPORTS: dict[str, dict[str, Any]] = json.loads((Path(__file__).parent / "rows.json").read_text("utf-8"))
EXPECTED: dict[str, list[str]] = json.loads((Path(__file__).parent / "expected.json").read_text("utf-8"))
"""The numbers of all reports that are answered here, by what they are about."""
FILLED = (test_rows.JUDGES, test_http_rows.JUDGES)
"""By importing these the tables are filled."""


def test_every_report_has_a_row_or_a_reason_and_a_test_elsewhere() -> None:
    shown = {row.number for row in TABLE} | {row.number for row in HTTP_TABLE}
    for number, report in REPORTS.items():
        if number in shown:
            assert "not_here" not in report, f"{number} is shown here after all"
        elif "as" in report:
            assert report["as"] in shown, f"{number} is said to be shown as {report['as']}"
        else:
            assert report.get("not_here"), f"{number} ({report['says']}) has no row and no reason"
            if report.get("elsewhere"):
                assert exists(report["elsewhere"]), f"{number}: there is no {report['elsewhere']}"


def test_no_expected_report_is_missing() -> None:
    assert missing(REPORTS) == {}


def test_a_report_that_is_missing_is_noticed_wherever_it_is() -> None:
    for section, numbers in EXPECTED.items():
        for number in numbers:
            others = {other: report for other, report in REPORTS.items() if other != number}
            assert missing(others) == {section: [number]}


def test_every_numbered_report_is_expected() -> None:
    numbered = {number for number in REPORTS if number.replace(".", "").isdigit()}
    expected = [number for numbers in EXPECTED.values() for number in numbers]
    assert sorted(numbered) == sorted(expected)


def test_every_row_answers_a_report() -> None:
    assert {row.number for row in TABLE} | {row.number for row in HTTP_TABLE} <= REPORTS.keys()


def missing(reports: dict[str, Any]) -> dict[str, list[str]]:
    """The expected numbers without a report, by section."""
    found = {
        section: [number for number in numbers if number not in reports]
        for section, numbers in EXPECTED.items()
    }
    return {section: numbers for section, numbers in found.items() if numbers}


def exists(test: str) -> bool:
    """Whether `tests/…/test_x.py::test_name` is there."""
    file, _, name = test.partition("::")
    if not (ROOT / file).is_file():
        return False
    tree = ast.parse((ROOT / file).read_text("utf-8"))
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return not name or any(function.name == name for function in functions)
