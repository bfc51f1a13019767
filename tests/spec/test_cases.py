"""Every text in tests/cases/spec gives exactly the faults that stand beside it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from ruamel.yaml import YAML

from luthier.errors import SpecError
from luthier.spec import load
from luthier.spec.read import examine
from luthier.spec.read_project import examine_project

if TYPE_CHECKING:
    from luthier.errors import Fault

CASES = Path(__file__).parent.parent / "cases" / "spec"


def cases() -> list[Any]:
    reader = YAML(typ="safe", pure=True)
    read = [(path.stem, case) for path in sorted(CASES.glob("*.yaml")) for case in reader.load(path)]
    return [pytest.param(kind, case, id=f"{kind}: {case['name']}") for kind, case in read]


def faults_of(kind: str, text: str, root: Path) -> list[Fault]:
    try:
        document = load(text, file="f.yaml")
    except SpecError as error:
        return list(error.faults)
    match kind:
        case "yaml":
            return []
        case "project":
            return examine_project(document, root=root)[1]
        case _:
            return examine(document)[1]


def told(fault: Fault) -> str:
    words = str(fault).removeprefix("f.yaml:").partition("\n")[0]
    return f"warning {words}" if fault.warning else words


@pytest.mark.parametrize(("kind", "case"), cases())
def test_case(kind: str, case: dict[str, Any], tmp_path: Path) -> None:
    assert [told(fault) for fault in faults_of(kind, case["text"], tmp_path)] == case["faults"]
