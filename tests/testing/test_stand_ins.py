"""Mocked steps: any step of an ensemble answered for, by its name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from luthier.errors import MockError
from luthier.testing import TestConductor, assert_called, expect
from tests.testing.project import write

if TYPE_CHECKING:
    from pathlib import Path

STORY = """\
ensemble: story
agents:
  - {name: fetch, operation: api, config: {url: "https://example.com/"}}
  - {name: judge, operation: code, config: {script: scripts/none}, input: {text: "${fetch.output.body}"}}
outputs: {body: "${fetch.output.body}", good: "${judge.output.good}", failed: "${judge.failed}"}
"""


async def test_a_step_is_answered_for_whatever_it_would_do(tmp_path: Path) -> None:
    conductor = await TestConductor.create(
        project_path=write(tmp_path, story=STORY),
        mocks={"steps": {"fetch": {"body": "hello"}, "judge": lambda given: {"good": len(given["text"])}}},
        strict=True,
    )
    result = await conductor.execute_ensemble("story")
    expect(result).to_be_successful().to_have_output({"body": "hello", "good": 5, "failed": False})
    assert_called(result, "mocked-steps:judge", {"text": "hello"}, times=1)
    conductor.mock_operation("judge", {"failed": True, "error": "no"})
    result = await conductor.execute_ensemble("story")
    assert result.output["failed"] is True
    assert not (tmp_path / ".luthier").exists()  # tests leave nothing in the project


async def test_a_step_that_is_not_there_is_named_with_its_like(tmp_path: Path) -> None:
    conductor = await TestConductor.create(project_path=write(tmp_path, story=STORY))
    conductor.mock_operation("juge", 1)
    with pytest.raises(MockError, match="no step 'juge' in 'story'") as caught:
        await conductor.execute_ensemble("story")
    assert caught.value.hint == "Did you mean judge?"
    conductor = await TestConductor.create(project_path=tmp_path, mocks={"steps": {"zzz": 1}})
    with pytest.raises(MockError) as caught:
        await conductor.execute_ensemble("story")
    assert caught.value.hint == "There are fetch, judge."


async def test_ensembles_and_answers_of_models_may_be_added(tmp_path: Path) -> None:
    conductor = await TestConductor.create(project_path=write(tmp_path), strict=True)
    hello = {"name": "a", "operation": "think", "config": {"model": "claude-x", "prompt": "Hello"}}
    conductor.add_ensemble({"ensemble": "more", "agents": [hello]})
    conductor.mock_ai(["Hello yourself."])
    result = await conductor.execute_ensemble("more")
    assert result.output == "Hello yourself."
    conductor.clear()
    assert conductor.results == []
