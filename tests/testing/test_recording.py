"""Record and replay: what real tools answered answers again, matched by tool and arguments."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from luthier import Runtime
from luthier.connect.traffic import Traffic, TrafficWriter, read_traffic
from luthier.errors import (
    CallTimeoutError,
    ConnectError,
    ConnectionLostError,
    LuthierError,
    MockError,
    SpecError,
)
from luthier.redaction import known
from luthier.testing import MemoryServer, TestConductor, assert_failed
from luthier.testing.recording import TrafficRecorder, replayed
from luthier.uri import ToolUri
from luthier.wire import Drop, Fail, Result
from tests.testing.project import write

if TYPE_CHECKING:
    from pathlib import Path

CONFIG = (
    "mcpServers: {github: {command: python, args: [none.py]}, archive: {command: python, args: [none.py]}}\n"
)
SCHEMA = {"type": "object", "properties": {"q": {"type": "string"}}}


async def record(folder: Path, answer: Any, *inputs: dict[str, Any]) -> Path:
    """Run `fallback` with each of these inputs against servers in memory, recorded."""
    write(folder, CONFIG)
    file = folder / "traffic.jsonl"
    servers = [
        MemoryServer("github", {"search": answer}, schemas={"search": SCHEMA}),
        MemoryServer("archive", {"look": ["from the archive"]}),
    ]
    writer = TrafficWriter(file)
    ways = {server.server_id: server.transport for server in servers}
    async with Runtime.open(folder, transports=ways, guards=[TrafficRecorder(writer).guard]) as rt:
        for one in inputs:
            await rt.run("fallback", one)
    writer.close()
    return file


async def replay(folder: Path, file: Path, **tools: Any) -> TestConductor:
    return await TestConductor.create(
        project_path=folder, mocks={"replay": str(file), "tools": tools}, strict=True
    )


async def test_a_recording_answers_as_the_real_tools_did(tmp_path: Path) -> None:
    file = await record(tmp_path, lambda a: {"found": a["q"]}, {"q": "a"}, {"q": "b"})
    conductor = await replay(tmp_path, file)
    for q in ("b", "a"):
        assert (await conductor.execute_ensemble("fallback", q=q)).output == {"results": {"found": q}}


async def test_what_was_defined_judges_the_arguments_of_a_replay(tmp_path: Path) -> None:
    file = await record(tmp_path, "x", {"q": "a"})
    conductor = await replay(tmp_path, file, **{"archive:look": []})
    result = await conductor.execute_ensemble("fallback", q=7)
    assert result.steps["first"].error is not None
    assert result.steps["first"].error["kind"] == "arguments"


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (ConnectError("off", retryable=False), "connect"),
        (CallTimeoutError("off", sent=True), "timeout"),
        (ConnectionLostError("off"), "unknown"),
        (Drop(), "unknown"),
        (Fail("off"), "protocol"),
    ],
)
async def test_failures_are_replayed_as_what_they_were(tmp_path: Path, answer: Any, kind: str) -> None:
    file = await record(tmp_path, answer, {"q": "a"})
    result = await (await replay(tmp_path, file)).execute_ensemble("fallback", q="a")
    assert result.output == {"results": ["from the archive"]}
    assert result.steps["first"].error is not None
    assert result.steps["first"].error["kind"] == kind


async def test_results_are_kept_whole(tmp_path: Path) -> None:
    whole = {
        "content": [
            {"type": "text", "text": "a"},
            {"type": "image", "data": "aaaa", "mimeType": "image/png"},
        ],
        "isError": True,
    }
    file = await record(tmp_path, Result(whole), {"q": "a"})
    result = await (await replay(tmp_path, file)).execute_ensemble("fallback", q="a")
    output = result.steps["first"].output
    assert output["isError"] is True
    assert output["content"] == whole["content"]


async def test_a_miss_is_loud_and_says_what_differs(tmp_path: Path) -> None:
    file = await record(tmp_path, "x", {"q": "a"})
    conductor = await replay(tmp_path, file, **{"archive:look": []})
    with pytest.raises(MockError, match=r"not recorded: \{'q': 'b'\}; the nearest differs in q"):
        await conductor.execute_ensemble("fallback", q="b")


async def test_the_same_call_is_answered_in_order_and_no_more_often_than_it_was_recorded(
    tmp_path: Path,
) -> None:
    numbers = iter(range(1, 10))
    file = await record(tmp_path, lambda _: next(numbers), {"q": "a"}, {"q": "a"})
    conductor = await replay(tmp_path, file, **{"archive:look": []})
    outputs = [(await conductor.execute_ensemble("fallback", q="a")).output["results"] for _ in range(2)]
    assert outputs == [1, 2]
    with pytest.raises(MockError, match="more often than the 2 times"):
        await conductor.execute_ensemble("fallback", q="a")


async def test_the_last_answer_may_stand_for_all_later_ones(tmp_path: Path) -> None:
    numbers = iter(range(1, 10))
    file = await record(tmp_path, lambda _: next(numbers), {"q": "a"}, {"q": "a"})
    ask = replayed(read_traffic(file), again=True)["github:search"]
    assert [json.loads(ask({"q": "a"}).value["content"][0]["text"]) for _ in range(4)] == [1, 2, 2, 2]


async def test_mocks_that_are_written_win_over_the_recording(tmp_path: Path) -> None:
    file = await record(tmp_path, "x", {"q": "a"})
    conductor = await replay(tmp_path, file, **{"github:search": "mine"})
    assert (await conductor.execute_ensemble("fallback", q="z")).output == {"results": "mine"}


async def test_secrets_are_kept_out_of_the_file_and_calls_with_them_are_found(tmp_path: Path) -> None:
    secret = "correct horse battery staple"
    known.add(secret)
    file = await record(tmp_path, lambda a: {"echo": a["q"]}, {"q": f"key: {secret}"})
    assert secret not in file.read_text()
    assert file.stat().st_mode & 0o077 == 0
    result = await (await replay(tmp_path, file)).execute_ensemble("fallback", q=f"key: {secret}")
    assert result.success
    assert secret not in str(result.output)


async def test_what_the_gate_refuses_is_not_recorded(tmp_path: Path) -> None:
    config = CONFIG + "policies: [{name: no, when: {tool: 'mcp://github/*'}, then: deny}]\n"
    write(tmp_path, config)
    conductor = await TestConductor.create(
        project_path=tmp_path, strict=True, mocks={"tools": {"github:*": 1}}
    )
    assert_failed(await conductor.execute_ensemble("github-pr-analyzer"), kind="denied")
    assert conductor.calls == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no recording"),
        ('{"traffic": 2}\n', "no recording"),
        ('{"traffic": 1}\nnot JSON\n', ":2"),
        ('{"traffic": 1}\n{"tol": "mcp://a/b"}\n', ":2"),
        ('{"traffic": 1}\n{"call": "a/b", "arguments": {}}\n', "no tool address"),
        ('{"traffic": 1}\n{"call": "builtin://b", "arguments": {}}\n', "no tool of a server"),
    ],
)
def test_a_file_that_is_no_recording_is_refused_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "x.jsonl"
    file.write_text(text)
    with pytest.raises(SpecError) as caught:
        read_traffic(file)
    assert said.replace("no tool address", "not a tool address") in str(caught.value)


def test_what_cannot_be_kept_of_a_recording_is_told_at_its_end(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    writer = TrafficWriter(tmp_path / "pipe")
    os.close(reader)
    for _ in range(2):
        writer.answered(ToolUri.parse("mcp://web/get"), {}, {"content": []})
    with pytest.raises(LuthierError, match="pipe is not whole: Broken pipe"):
        writer.close()


def test_an_empty_recording_answers_nothing() -> None:
    assert replayed(Traffic({}, {})) == {}
