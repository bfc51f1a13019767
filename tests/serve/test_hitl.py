"""Steps that ask the client whose run it is, through the official SDK's client in both eras."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from mcp_types import ElicitResult

from luthier import Runtime
from luthier.clock import FakeClock, settle
from luthier.serve import Service
from luthier.store import DEFAULT
from tests.serve.house import caller
from tests.workflows.house import LONG

if TYPE_CHECKING:
    from pathlib import Path

BOTH = pytest.mark.parametrize("mode", ["legacy", "auto"])


def asking(**config: Any) -> dict[str, Any]:
    return {
        "ensemble": "asking",
        "inputs": {"what": {"type": "string", "default": "it"}},
        "trigger": {"type": "mcp"},
        "agents": [
            {"name": "ask", "operation": "hitl", "config": {"prompt": "Do ${input.what}?", **config}},
        ],
        "outputs": "${ask.output}",
    }


@BOTH
async def test_the_client_is_asked_by_a_form_and_its_answer_goes_on(tmp_path: Path, mode: str) -> None:
    asked: list[Any] = []

    async def person(_: Any, params: Any) -> ElicitResult:
        asked.append(params)
        return ElicitResult(action="accept", content={"answer": "plum"})

    text = asking(schema={"enum": ["pear", "plum"]}, approvers=["caller"])
    async with caller(tmp_path, mode=mode, ensembles=[text], elicitation_callback=person) as (peer, _):
        result = await peer.call_tool("asking", {"what": "that"})
    assert not result.is_error
    assert '"answer":"plum"' in result.content[0].text.replace(" ", "")  # type: ignore[union-attr]
    (params,) = asked
    assert params.message == "Do that?"
    assert params.requested_schema["properties"]["answer"]["enum"] == ["pear", "plum"]


@BOTH
async def test_a_client_that_declines_has_said_no(tmp_path: Path, mode: str) -> None:
    async def person(_: Any, params: Any) -> ElicitResult:
        return ElicitResult(action="decline")

    text = asking(approvers=["caller"], onReject="continue")
    async with caller(tmp_path, mode=mode, ensembles=[text], elicitation_callback=person) as (peer, _):
        result = await peer.call_tool("asking")
    assert '"rejected"' in result.content[0].text  # type: ignore[union-attr]


@BOTH
async def test_a_client_is_not_asked_where_the_step_does_not_say_so(tmp_path: Path, mode: str) -> None:
    async def person(_: Any, params: Any) -> ElicitResult:
        raise AssertionError("nobody may ask it")

    async with caller(tmp_path, mode=mode, ensembles=[asking()], elicitation_callback=person) as (peer, _):
        assert (await peer.call_tool("asking")).is_error


async def test_a_client_that_cannot_be_asked_waits_for_others_or_fails(tmp_path: Path) -> None:
    async with caller(tmp_path, ensembles=[asking(approvers=["caller"])]) as (peer, _):
        assert (await peer.call_tool("asking")).is_error


async def test_a_suspended_run_of_which_a_question_is_void_ends_where_it_is_served(tmp_path: Path) -> None:
    clock, given = FakeClock(), asking(timeout=60_000)
    parts: dict[str, Any] = {"root": tmp_path, "ensembles": [given], "clock": clock}
    runtime = Runtime.open({"store": DEFAULT}, **parts)
    run = await runtime.run("asking", durable=True)
    assert run.suspended
    await runtime.close()

    host = Runtime.open({"store": DEFAULT}, **parts)
    service = Service(host)
    async with asyncio.timeout(LONG):
        while not clock.waiting:
            await settle()
        await clock.advance(60)
        while host.runs.get(run.id).status != "failed":
            await settle()
    await service.close()
    await host.close()
    assert clock.waiting == 0
