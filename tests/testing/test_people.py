"""Tests of ensembles that ask people: whoever is asked is given, or the step is mocked."""

from __future__ import annotations

from typing import Any

import pytest

from luthier.testing import TestConductor

LETTER = {
    "ensemble": "letter",
    "agents": [
        {
            "name": "review",
            "operation": "hitl",
            "config": {"prompt": "How?", "schema": {"enum": ["post", "fax"]}},
        }
    ],
    "outputs": "${review.output.answer}",
}


@pytest.mark.parametrize(
    ("given", "output"),
    [
        ({"approve": lambda request: "fax" if request.step == "review" else "post"}, "fax"),
        ({"mocks": {"steps": {"review": {"answer": "post"}}}}, "post"),
    ],
)
async def test_an_answer_is_given_by_a_function_or_a_mock(given: dict[str, Any], output: str) -> None:
    conductor = await TestConductor.create(project_path={}, ensembles=[LETTER], strict=True, **given)
    result = await conductor.execute_ensemble("letter")
    assert result.output == output


async def test_without_either_nobody_is_there() -> None:
    conductor = await TestConductor.create(project_path={}, ensembles=[LETTER], strict=True)
    result = await conductor.execute_ensemble("letter")
    assert result.error is not None
    assert result.error["kind"] == "approval"
