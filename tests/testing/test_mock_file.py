"""Mock files: what they may say, and what is wrong with those that say something else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from luthier.errors import SpecError
from luthier.testing.mock_file import read_mock_file

if TYPE_CHECKING:
    from pathlib import Path

TRAFFIC = """\
{"traffic": 1}
{"tool": "mcp://github/search", "definition": {"name": "search", "inputSchema": {"type": "object"}}}
{"call": "mcp://github/search", "arguments": {"q": "a"}, "result": {"content": [ONE]}}
""".replace("ONE", '{"type": "text", "text": "1"}')
OTHER = '{"call": "mcp://archive/look", "arguments": {}, "result": {"content": []}}\n'


def test_the_name_is_the_files_own_or_the_files(tmp_path: Path) -> None:
    file = tmp_path / "github.yaml"
    file.write_text("tools: {}\n")
    assert read_mock_file(file).name == "github"
    file.write_text("server: gitlab\ntools: {}\n")
    assert read_mock_file(file).name == "gitlab"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[1]", "must be a mapping"),
        ("{}", "`tools` is missing"),
        ("tools: {a: 1}", "must be a mapping"),
        ("tools: {a: {}}", "says no answer"),
        ("tools: {a: {returns: 1, fails: x}}", "says 2 of these"),
        ("tools: {a: {return: 1}}", "returns"),
        ("tools: {a: {sequence: []}}", "a list of answers"),
        ("tools: {a: {sequence: [{returns: 1, x: 2}]}}", "unknown key `x`"),
        ("tols: {}", "unknown key"),
    ],
)
def test_every_fault_has_its_place(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "x.yaml"
    file.write_text(text)
    with pytest.raises(SpecError) as caught:
        read_mock_file(file)
    assert said in str(caught.value)
    assert "x.yaml:1:" in str(caught.value)


def test_a_recording_is_a_mock_of_the_server_that_is_chosen(tmp_path: Path) -> None:
    file = tmp_path / "x.jsonl"
    file.write_text(TRAFFIC)
    found = read_mock_file(file)
    assert (found.name, list(found.answers), found.definitions["search"]["name"]) == (
        "github",
        ["search"],
        "search",
    )
    file.write_text(TRAFFIC + OTHER)
    assert list(read_mock_file(file, "archive").answers) == ["look"]
    with pytest.raises(SpecError, match="several servers; it has github, archive"):
        read_mock_file(file)
    with pytest.raises(SpecError, match="no server 'gitlab'"):
        read_mock_file(file, "gitlab")
