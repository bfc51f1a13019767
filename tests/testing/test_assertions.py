"""Claims about executions: each holds or says what was there instead, as a function and as a method."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from luthier.testing import (
    Result,
    TestConductor,
    assert_called,
    assert_executed,
    assert_failed,
    assert_not_called,
    assert_not_executed,
    assert_output,
    assert_output_shape,
    assert_successful,
    assert_untrusted,
    expect,
)
from tests.testing.project import write

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


async def result_of(folder: Path, answer: Any, name: str = "fallback") -> Result:
    conductor = await TestConductor.create(
        project_path=write(folder), strict=True, mocks={"tools": {"*": answer}}
    )
    return await conductor.execute_ensemble(name, q="x")


async def test_what_holds_is_said_in_a_row(tmp_path: Path) -> None:
    result = await result_of(tmp_path, [1])
    claims = expect(result).to_be_successful().to_have_output({"results": [1]}).to_have_output("results", [1])
    claims.to_match_output_shape({"results": list}).to_have_executed("first").not_to_have_executed("second")
    claims.to_have_called("github:search", {"q": "x"}, times=1).not_to_have_called("archive:look")
    claims.to_be_untrusted("github:search")
    failed = await result_of(tmp_path, {"failed": True, "error": "off"}, "github-pr-analyzer")
    expect(failed).to_have_failed(kind="protocol", at="get-pr", saying="off")


@pytest.mark.parametrize(
    ("claim", "otherwise"),
    [
        (assert_failed, "the run succeeded with"),
        (lambda one: assert_output(one, {"results": 2}), "not {'results': 2}"),
        (lambda one: assert_output(one, "results", 2), "'results' of the output is [1], not 2"),
        (lambda one: assert_output(one, "result", 2), "there is no 'result' in the output"),
        (lambda one: assert_output_shape(one, {"result": list}), "there is no 'result'"),
        (lambda one: assert_output_shape(one, {"results": str}), "is [1], a list"),
        (lambda one: assert_executed(one, "second"), "step 'second' was skipped"),
        (lambda one: assert_executed(one, "third"), "there is no step 'third'; there are first, second"),
        (lambda one: assert_not_executed(one, "first"), "step 'first' was started"),
        (lambda one: assert_called(one, "archive:look"), "was not called: github:search({'q': 'x'})"),
        (lambda one: assert_called(one, "github:search", {"q": "y"}), "was not called with {'q': 'y'}"),
        (lambda one: assert_not_called(one, "github:search"), "was called 1 times, not 0"),
        (lambda one: assert_untrusted(one, "archive:look"), "does not come from archive:look"),
    ],
)
async def test_what_does_not_hold_says_what_is_there(
    tmp_path: Path, claim: Callable[[Result], None], otherwise: str
) -> None:
    result = await result_of(tmp_path, [1])
    with pytest.raises(AssertionError) as caught:
        claim(result)
    assert otherwise in str(caught.value)


@pytest.mark.parametrize(
    ("claim", "otherwise"),
    [
        (assert_successful, "the run failed: [protocol] at 'get-pr': "),
        (lambda one: assert_failed(one, kind="timeout"), "failed with kind 'protocol'"),
        (lambda one: assert_failed(one, at="other"), "failed at step 'get-pr'"),
        (lambda one: assert_failed(one, saying="on"), "failed otherwise"),
        (lambda one: assert_executed(one, "get-pr"), "step 'get-pr' failed: "),
        (lambda one: assert_output_shape(one, {}), "no mapping"),
    ],
)
async def test_a_failure_is_told_with_its_kind_step_and_message(
    tmp_path: Path, claim: Callable[[Result], None], otherwise: str
) -> None:
    result = await result_of(tmp_path, {"failed": True, "error": "off"}, "github-pr-analyzer")
    with pytest.raises(AssertionError) as caught:
        claim(result)
    assert otherwise in str(caught.value)


async def test_mocks_can_be_looked_for_taken_out_and_forgotten(tmp_path: Path) -> None:
    conductor = await TestConductor.create(project_path=write(tmp_path), mocks={"tools": {"*": 1}})
    conductor.mock("github:search", 2)
    assert "*" in conductor.mocks
    assert "github:search" in conductor.mocks
    del conductor.mocks["github:search"]
    del conductor.mocks["*"]
    assert "*" not in conductor.mocks
    conductor.mock("*", 3)
    conductor.mocks.clear()
    assert conductor.mocks.servers(["github"]) == ()
