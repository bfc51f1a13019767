"""Tools that a project brings along, in Python files below `scripts/`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from luthier import Runtime, SpecError
from luthier.errors import ToolDefinitionError
from luthier.spec import check_paths

if TYPE_CHECKING:
    from pathlib import Path

TOOLS = '''
from luthier import tool

@tool
def shout(text: str) -> str:
    """Says it louder."""
    return text.upper()

again = shout
'''


def project(root: Path, source: str | None = TOOLS, named: str = "scripts/tools.py") -> Path:
    (root / "scripts").mkdir()
    if source is not None:
        (root / "scripts" / "tools.py").write_text(source)
    (root / "luthier.yaml").write_text(f"custom_tools: [{named}]\n")
    return root / "luthier.yaml"


@pytest.mark.parametrize("named", ["scripts/tools.py", "scripts/tools", "script://tools"])
async def test_tools_of_a_file_are_called_like_all_others(tmp_path: Path, named: str) -> None:
    async with Runtime.open(project(tmp_path, named=named)) as rt:
        assert (await rt.call("custom://shout", text="oh")).content == "OH"


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("x = 1\n", "defines no tools"),
        ("1 / 0\n", "ZeroDivisionError"),
        ("raise SystemExit\n", "SystemExit"),
        ("def f(:\n", "SyntaxError"),
        (None, "there is no file"),
        ("from luthier import tool\n@tool\ndef f() -> None: ...\n", "nothing says what it does"),
    ],
)
def test_a_file_without_tools_says_why(tmp_path: Path, source: str | None, why: str) -> None:
    with pytest.raises(ToolDefinitionError, match=why):
        Runtime.open(project(tmp_path, source))


def test_a_file_elsewhere_is_a_fault_of_the_project(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="does not lie below"):
        Runtime.open(project(tmp_path, named="../tools.py"))


@pytest.mark.parametrize(
    ("source", "said"), [("def f(:\n", "is not Python"), (None, "there is no file"), ("1 / 0\n", "")]
)
def test_check_reads_the_files_and_runs_none(tmp_path: Path, source: str | None, said: str) -> None:
    faults = check_paths([project(tmp_path, source)])
    assert said in str(faults) if said else faults == []
