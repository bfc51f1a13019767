"""Library: ensembles by name, from Python and from the folder; a broken file costs itself only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from luthier.errors import NotFoundError, SpecError
from luthier.runtime import Library
from luthier.spec import read_ensemble, read_project

if TYPE_CHECKING:
    from pathlib import Path

STEPS = "agents: [{name: say, operation: transform, config: {value: 1}}]\n"
ONE = "ensemble: one\n" + STEPS


def ensemble(name: str) -> dict[str, Any]:
    return {"ensemble": name, "agents": [{"name": "say", "operation": "transform", "config": {"value": 1}}]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    ensembles = tmp_path / "ensembles"
    ensembles.mkdir()
    (ensembles / "one.yaml").write_text(ONE)
    (ensembles / "file-name.yml").write_text("ensemble: other-name\n" + STEPS)
    (ensembles / "broken.yaml").write_text("ensemble: [\n")
    return tmp_path


def library(root: Path) -> Library:
    return Library(read_project({}, root=root), [ensemble("given")])


def test_names_are_those_of_python_of_files_and_of_broken_files(folder: Path) -> None:
    assert library(folder).names == ("broken", "given", "one", "other-name")


def test_an_ensemble_is_found_by_the_name_it_has(folder: Path) -> None:
    assert library(folder).get("other-name").name == "other-name"
    assert library(folder).get("given").name == "given"


def test_a_broken_file_says_why_when_it_is_asked_for(folder: Path) -> None:
    assert library(folder).get("one").name == "one"
    with pytest.raises(SpecError, match=r"broken\.yaml"):
        library(folder).get("broken")


def test_a_file_a_mapping_or_a_value_is_taken_as_it_is(folder: Path) -> None:
    path = folder / "ensembles" / "one.yaml"
    assert library(folder).get(str(path)).name == "one"
    assert library(folder).get(path).name == "one"
    assert library(folder).get(ensemble("mapped")).name == "mapped"
    value = read_ensemble(ONE)
    assert library(folder).get(value) is value


def test_an_unknown_name_is_told_with_the_nearest_and_the_folder(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="Did you mean one"):
        library(folder).get("on")
    with pytest.raises(NotFoundError, match="does not exist"):
        library(tmp_path / "nowhere").get("one")


def test_a_folder_that_cannot_be_read_is_told_when_one_of_it_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "ensembles").symlink_to("ensembles")
    found = library(tmp_path)
    assert found.get("given").name == "given"
    with pytest.raises(SpecError, match="ensembles: the folder cannot be read: Too many levels"):
        found.get("one")
    assert found.names == (str(tmp_path / "ensembles"), "given")
    (tmp_path / "ensembles").unlink()
    (tmp_path / "ensembles").mkdir()
    (tmp_path / "ensembles" / "one.yaml").write_text(ONE)
    assert found.reread()
    assert found.names == ("given", "one")
