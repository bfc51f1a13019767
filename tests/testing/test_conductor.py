"""TestConductor: ensembles with mocked tools, through the gate that production has."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from luthier.errors import CallTimeoutError, ConnectError, MockError, NotFoundError, SpecError
from luthier.testing import (
    Delay,
    Drop,
    FakeClock,
    Sequence,
    TestConductor,
    assert_called,
    assert_failed,
    assert_not_called,
    assert_successful,
    assert_untrusted,
    expect,
)
from tests.testing.project import write

REAL = Path(__file__).with_name("echo_server.py")
PULL = {"number": 123, "title": "Add new feature", "state": "open", "user": {"login": "octocat"}}


async def conducted(folder: Path, tools: dict[str, Any], **parts: Any) -> TestConductor:
    if not (folder / "luthier.yaml").exists():
        write(folder)
    return await TestConductor.create(project_path=folder, mocks={"tools": tools}, **parts)


async def test_a_mock_is_the_content_of_the_step_and_its_server_need_not_be_configured(
    tmp_path: Path,
) -> None:
    conductor = await conducted(tmp_path, {"github:get_pull_request": PULL})
    result = await conductor.execute_ensemble(
        "github-pr-analyzer", {"owner": "anthropics", "repo": "sdk", "pull_number": 123}
    )
    expect(result).to_be_successful().to_have_output({"pr_data": PULL}).to_be_untrusted(
        "github:get_pull_request"
    )
    assert result.output["pr_data"]["number"] == 123
    assert_called(
        result, "github:get_pull_request", {"owner": "anthropics", "repo": "sdk", "pull_number": 123}
    )


@pytest.mark.parametrize(
    "value",
    [
        "text",
        "[not a list",
        '{"text": "that is JSON"}',
        7,
        True,
        None,
        [1, {"a": 2}],
        {"content": "mine"},
        {"error": 1},
    ],
)
async def test_any_value_comes_back_exactly(tmp_path: Path, value: Any) -> None:
    conductor = await conducted(tmp_path, {"github:get_pull_request": value})
    result = await conductor.execute_ensemble("github-pr-analyzer")
    assert result.output == {"pr_data": value}


async def test_a_callable_gets_the_arguments_and_may_be_a_coroutine(tmp_path: Path) -> None:
    async def search(arguments: dict[str, Any]) -> Any:
        return [arguments["q"]]

    conductor = await conducted(tmp_path, {"github:search": search, "archive:look": 0})
    result = await conductor.execute_ensemble("fallback", q="lute")
    expect(result).to_have_output("results", ["lute"]).not_to_have_executed("second").to_have_executed(
        "first"
    )


async def test_a_sequence_answers_call_by_call_and_its_end_is_the_tests_own_error(tmp_path: Path) -> None:
    conductor = await conducted(
        tmp_path, {"github:get_pull_request": Sequence(1, lambda _: 2, RuntimeError("off"))}
    )
    assert (await conductor.execute_ensemble("github-pr-analyzer")).output == {"pr_data": 1}
    assert (await conductor.execute_ensemble("github-pr-analyzer")).output == {"pr_data": 2}
    assert_failed(
        await conductor.execute_ensemble("github-pr-analyzer"), kind="protocol", at="get-pr", saying="off"
    )
    with pytest.raises(MockError, match="no answer to call 4"):
        await conductor.execute_ensemble("github-pr-analyzer")
    assert len(conductor.calls) == 4


def raises(_: dict[str, Any]) -> Any:
    raise ValueError("no such branch")


async def raises_later(_: dict[str, Any]) -> Any:
    raise ValueError("no such branch")


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (RuntimeError("no such branch"), "protocol"),
        ({"failed": True, "error": "no such branch"}, "protocol"),
        (raises, "protocol"),
        (raises_later, "protocol"),
        (ConnectError("no such branch"), "connect"),
        (CallTimeoutError("no such branch", sent=True), "timeout"),
    ],
)
async def test_an_error_fails_the_step_in_its_own_way(tmp_path: Path, answer: Any, kind: str) -> None:
    conductor = await conducted(tmp_path, {"github:search": answer, "archive:look": ["found"]})
    result = await conductor.execute_ensemble("fallback", q="x")
    assert_successful(result)
    error = result.steps["first"].error
    assert error is not None
    assert error["kind"] == kind
    assert "no such branch" in error["message"]
    assert result.output == {"results": ["found"]}
    assert [call.outcome for call in result.calls] == ["failed", "ok"]


async def test_a_connection_that_drops_leaves_the_outcome_unknown(tmp_path: Path) -> None:
    conductor = await conducted(tmp_path, {"github:get_pull_request": Drop()})
    assert_failed(await conductor.execute_ensemble("github-pr-analyzer"), kind="unknown")


@pytest.mark.parametrize("content", ["gone", ["gone"], [{"type": "text", "text": "gone"}]])
async def test_a_tools_own_error_is_an_answer(tmp_path: Path, content: Any) -> None:
    conductor = await conducted(tmp_path, {"github:get_pull_request": {"isError": True, "content": content}})
    result = await conductor.execute_ensemble("github-pr-analyzer")
    assert_successful(result)
    assert result.steps["get-pr"].output["isError"] is True
    assert "gone" in result.output["pr_data"]
    assert [call.outcome for call in result.calls] == ["error"]


async def test_a_delay_waits_by_the_clock_of_the_test(tmp_path: Path) -> None:
    clock = FakeClock()
    conductor = await conducted(
        tmp_path, {"github:search": Delay(20, lambda a: a["q"]), "archive:look": 0}, clock=clock
    )
    running = asyncio.create_task(conductor.execute_ensemble("fallback", q="late"))
    while not running.done():
        await clock.advance(1)
    assert (await running).output == {"results": "late"}
    assert running.result().steps["first"].output["duration"] >= 20_000


async def test_patterns_mock_what_the_ensembles_name_and_the_first_that_fits_answers(tmp_path: Path) -> None:
    conductor = await conducted(tmp_path, {"github:get_*": "got", "*:search": "searched", "*": "else"})
    assert (await conductor.execute_ensemble("github-pr-analyzer")).output == {"pr_data": "got"}
    assert (await conductor.execute_ensemble("fallback", q="")).output == {"results": "searched"}
    assert (await conductor.call("mcp://archive/anything")).content == "else"


async def test_a_tool_without_a_mock_is_the_tests_own_error_whatever_the_ensemble_makes_of_it(
    tmp_path: Path,
) -> None:
    conductor = await conducted(tmp_path, {"github:get_pull_request": 1, "archive:look": []})
    with pytest.raises(MockError, match="'github:search' was called and is not mocked"):
        await conductor.execute_ensemble("fallback", q="x")
    conductor.mock("github:search", "now")
    assert (await conductor.execute_ensemble("fallback", q="x")).output == {"results": "now"}


async def test_an_assertion_in_a_mock_reaches_the_test(tmp_path: Path) -> None:
    def wants_a_number(arguments: dict[str, Any]) -> Any:
        assert arguments["q"] == 1, "q is no number"

    conductor = await conducted(tmp_path, {"github:search": wants_a_number, "archive:look": []})
    with pytest.raises(AssertionError, match="q is no number"):
        await conductor.execute_ensemble("fallback", q="x")


@pytest.mark.parametrize("key", ["github", ":tool", "github:"])
async def test_a_mock_that_names_no_tool_is_refused(tmp_path: Path, key: str) -> None:
    with pytest.raises(MockError, match="names no tool"):
        await conducted(tmp_path, {key: 1})


async def test_mocks_of_what_there_is_not_are_refused(tmp_path: Path) -> None:
    with pytest.raises(MockError, match="no mocks of 'tolls'"):
        await TestConductor.create(project_path=write(tmp_path), mocks={"tolls": {}})


async def test_arguments_are_judged_by_the_schema_where_one_is_given(tmp_path: Path) -> None:
    definition = {"inputSchema": {"type": "object", "properties": {"pull_number": {"type": "string"}}}}
    conductor = await TestConductor.create(
        project_path=write(tmp_path),
        mocks={
            "tools": {"github:get_pull_request": PULL},
            "definitions": {"github": {"get_pull_request": definition}},
        },
    )
    result = await conductor.execute_ensemble("github-pr-analyzer")
    assert_failed(result, kind="arguments", at="get-pr")
    assert_not_called(result, "github:get_pull_request")


async def test_access_rules_and_trust_are_those_of_the_project(tmp_path: Path) -> None:
    write(
        tmp_path,
        "mcpServers:\n"
        "  github: {command: python, args: [none.py], allowed_agents: ['ensemble:fallback', operator],\n"
        "    trust: trusted}\n",
    )
    conductor = await conducted(tmp_path, {"github:*": "mine", "archive:*": "theirs"})
    assert_failed(await conductor.execute_ensemble("github-pr-analyzer"), kind="denied")
    result = await conductor.execute_ensemble("fallback", q="x")
    assert_successful(result)
    with pytest.raises(AssertionError, match="the output is trusted"):
        assert_untrusted(result)


async def test_policies_see_the_labels_of_mocked_calls_and_every_call_is_recorded_with_its_own(
    tmp_path: Path,
) -> None:
    chain = """\
agents:
  - {name: read, operation: tools, config: {mcp: web, tool: fetch}}
  - {name: send, operation: tools, config: {mcp: mail, tool: send}, input: {text: "${read.output}"}}
"""
    when = "{tool: 'mcp://mail/*', label: {integrity: untrusted}}"
    rules = f"policies: [{{name: no mail, when: {when}, then: deny}}]\n"
    write(tmp_path, rules, chain=chain)
    conductor = await conducted(tmp_path, {"web:fetch": "page", "mail:send": "sent"})
    assert_failed(await conductor.execute_ensemble("chain"), kind="denied", at="send")
    write(tmp_path, chain=chain)
    conductor = await conducted(tmp_path, {"web:fetch": "page", "mail:send": "sent"})
    result = await conductor.execute_ensemble("chain")
    read, send = result.calls
    assert (read.label.integrity.name, send.label.integrity.name) == ("trusted", "untrusted")
    assert {source.server for source in send.label.sources} == {"web"}
    assert send.step == "send"
    kinds = [record.__struct_config__.tag for record in conductor.audit.records]
    assert [kind for kind in kinds if kind != "pinned"] == ["verdict", "intent", "outcome"] * 2


async def test_a_production_project_can_be_tested_as_it_stands(tmp_path: Path) -> None:
    write(
        tmp_path,
        "environment: production\nmcpServers:\n  github:\n    url: https://github.example.com/mcp\n"
        "    allowed_agents: [operator, 'ensemble:github-pr-analyzer']\n",
    )
    conductor = await conducted(tmp_path, {"github:*": PULL}, strict=True)
    assert_successful(await conductor.execute_ensemble("github-pr-analyzer"))


async def test_a_server_that_waits_for_approval_waits_in_tests_too(tmp_path: Path) -> None:
    write(tmp_path, "mcpServers:\n  github: {command: python, args: [none.py], approved: false}\n")
    conductor = await conducted(tmp_path, {"github:*": PULL})
    assert_failed(await conductor.execute_ensemble("github-pr-analyzer"), kind="approval")


async def test_state_lasts_from_one_execution_to_the_next_until_it_is_cleared(tmp_path: Path) -> None:
    conductor = await conducted(tmp_path, {"github:*": 1})
    await conductor.execute_ensemble("github-pr-analyzer")
    assert len(conductor.calls) == 1
    assert conductor.audit.records
    conductor.clear()
    assert (conductor.calls, conductor.events, conductor.audit.records) == ([], [], [])


async def test_nothing_starts_for_a_faulty_ensemble_or_one_that_is_not_there(tmp_path: Path) -> None:
    write(tmp_path, broken="agents: [{name: a, operation: nothing}]\n")
    conductor = await conducted(tmp_path, {"*": 1})
    with pytest.raises(SpecError):
        await conductor.execute_ensemble("broken")
    with pytest.raises(NotFoundError):
        await conductor.execute_ensemble("brken")


def test_play_is_for_tests_that_are_no_coroutines(tmp_path: Path) -> None:
    conductor = TestConductor(write(tmp_path), mocks={"tools": {"github:*": PULL}})
    result = conductor.play("github-pr-analyzer", pull_number=5)
    assert result.output == {"pr_data": PULL}
    assert result.calls[0].arguments["pull_number"] == 5
    assert result.duration >= 0


async def test_a_server_that_is_neither_configured_nor_mocked_is_a_fault_of_the_file(tmp_path: Path) -> None:
    conductor = await conducted(tmp_path, {})
    with pytest.raises(SpecError, match="no server `github`"):
        await conductor.execute_ensemble("github-pr-analyzer")


async def test_what_is_not_mocked_is_real(tmp_path: Path) -> None:
    write(tmp_path, f"mcpServers:\n  github: {{command: python, args: ['{REAL}']}}\n")
    conductor = await conducted(tmp_path, {"archive:*": 1})
    result = await conductor.execute_ensemble("github-pr-analyzer")
    assert_successful(result)
    assert result.output["pr_data"]["pull_number"] == 123
