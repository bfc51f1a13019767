"""`luthier check` beside what is known of servers' tools: every text gives exactly the faults beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from luthier.spec import load, read_ensemble, read_project
from luthier.spec.check_tools import check_tools
from luthier.spec.read import in_order
from tests.spec.test_cases import told

CASES = load(Path(__file__).parents[1] / "cases" / "check_tools.yaml").data
PROJECT = read_project(
    {
        "mcpServers": {
            "git": {"command": "python"},
            "other": {"command": "python"},
            "few": {"command": "python", "tools": {"allow": ["p*"], "deny": ["push*"]}},
        }
    }
)


@pytest.mark.parametrize("case", [pytest.param(case, id=case["name"]) for case in CASES["cases"]])
def test_case(case: dict[str, Any]) -> None:
    ensemble = read_ensemble(case["text"], file="f.yaml")
    faults = in_order(list(check_tools(ensemble, PROJECT, CASES["tools"])))
    assert [told(fault) for fault in faults] == case["faults"]
