"""Claims about executions: each holds or says what was there instead, as a function and as a method."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from luthier.models import Answer, Usage
from luthier.testing import (
    Result,
    TestConductor,
    assert_called,
    assert_called_ai,
    assert_cost_less_than,
    assert_duration,
    assert_executed,
    assert_executed_steps,
    assert_failed,
    assert_not_called,
    assert_not_executed,
    assert_output,
    assert_output_shape,
    assert_state,
    assert_successful,
    assert_untrusted,
    assert_used_tokens,
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


ASKING = """\
ensemble: asking
state: {schema: {mood: string, count: number}, initial: {count: 0}}
agents:
  - name: read
    operation: think
    config: {provider: anthropic, model: claude-x, prompt: "${input.letter}"}
    state: {set: {mood: "${read.output}"}}
  - name: count
    operation: transform
    config: {value: "${item}"}
    state: {set: {count: "${state.count + count.output}"}}
flow:
  - read
  - foreach: {items: [1, 2], step: count}
outputs: {mood: "${state.mood}"}
"""
PRICES = "providers: {anthropic: {prices: {claude-x: {input: 1000000, output: 0}}}}\n"


async def asking(folder: Path, config: str = PRICES) -> Result:
    answer = Answer(text="glad", model="claude-x", usage=Usage(input_tokens=2, output_tokens=3))
    conductor = await TestConductor.create(
        project_path=write(folder, config, asking=ASKING), strict=True, mocks={"ai": [answer]}
    )
    result = await conductor.execute_ensemble("asking", letter="It sings!")
    assert conductor.results == [result]
    return result


async def test_claims_about_state_models_time_and_steps_hold(tmp_path: Path) -> None:
    claims = expect(await asking(tmp_path)).to_have_state("mood", "glad")
    claims.to_match_state({"mood": "glad", "count": 3}).to_have_called_ai().to_have_called_ai(
        "anthropic", times=1
    )
    claims.to_have_used_tokens(5).to_have_cost_less_than(2.1).to_have_executed_steps(3)
    claims.to_have_completed_in(60_000).to_have_duration(greater_than=0, less_than=60_000)


@pytest.mark.parametrize(
    ("claim", "otherwise"),
    [
        (lambda one: assert_state(one, {"mood": "sad"}), "'mood' of the state is 'glad', not 'sad'"),
        (lambda one: assert_state(one, {"tone": 1}), "no step set 'tone'; set were mood, count"),
        (lambda one: assert_called_ai(one, "openai"), "openai was asked 0 times: builtin://model/anthropic"),
        (lambda one: assert_called_ai(one, times=2), "a model was asked 1 times"),
        (lambda one: assert_used_tokens(one, 6), "5 tokens were used, not 6"),
        (lambda one: assert_cost_less_than(one, 2), "it cost 2 dollars, not less than 2"),
        (lambda one: assert_executed_steps(one, 2), "3 steps were executed, not 2: read, "),
        (lambda one: assert_duration(one, less_than=0), "ms, not less than 0"),
        (lambda one: assert_duration(one, greater_than=9e9), "ms, not more than 9"),
    ],
)
async def test_those_that_do_not_hold_say_what_is_there(
    tmp_path: Path, claim: Callable[[Result], None], otherwise: str
) -> None:
    result = await asking(tmp_path)
    with pytest.raises(AssertionError) as caught:
        claim(result)
    assert otherwise in str(caught.value)


async def test_a_price_that_nobody_knows_is_no_claim(tmp_path: Path) -> None:
    result = await asking(tmp_path, "providers: {}\n")
    with pytest.raises(AssertionError, match="nobody knows what claude-x costs"):
        assert_cost_less_than(result, 100)
