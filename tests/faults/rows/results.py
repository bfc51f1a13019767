"""Rows about answers: errors and results as servers write them, and how much of them is kept."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest

from luthier.errors import ProtocolError
from tests.faults.modes.answers import BLOCKS, ERRORS
from tests.faults.rows.table import BOTH, own, row

if TYPE_CHECKING:
    from tests.faults.bench import Bench, House


@row("74", "mixed_blocks")
async def every_block_is_kept_as_it_was_sent(house: House) -> None:
    assert (await house.call("act")).blocks == BLOCKS


@row("75", "mixed_blocks")
async def an_image_under_an_odd_type_is_kept_with_its_type(house: House) -> None:
    blocks = (await house.call("act")).blocks
    assert blocks[3]["resource"] == {"uri": "file:///a", "mimeType": "application/png", "blob": "iVBORw0="}


@row("77", "outputs")
async def a_promise_that_is_not_kept_costs_a_note_and_not_the_answer(house: House) -> None:
    for name, structured in (("missing", None), ("mismatch", {"n": "four"})):
        reply = await house.call(name)
        assert not reply.is_error
        assert reply.blocks == [{"type": "text", "text": "the answer"}]
        assert reply.notes, name
        if structured is not None:
            assert reply.structured == structured
    assert (await house.call("fits")).notes == ()
    failed = await house.call("failed")
    assert failed.is_error
    assert failed.notes == ()


@row("78", "outputs")
async def structured_content_is_used_whether_promised_or_not(house: House) -> None:
    assert (await house.call("structured_only")).content == {"n": 4}
    assert (await house.call("unpromised")).content == {"n": 4}


@own("79", "tool_errors", eras=BOTH)
async def a_tools_own_error_is_a_value_even_when_it_says_nothing(bench: Bench) -> None:
    ensemble = {
        "name": "lenient",
        "agents": [
            {"name": "fails", "operation": "tools", "config": {"mcp": "faulty", "tool": "act"}},
            {"name": "mute", "operation": "tools", "config": {"mcp": "faulty", "tool": "empty"}},
        ],
        "outputs": {
            "failed": "${fails.output.isError}",
            "said": "${fails.output.content}",
            "mute": "${mute.output.isError}",
        },
    }
    async with bench.runtime() as rt:
        result = await rt.call("mcp://faulty/act")
        assert (result.is_error, result.content) == (True, "401 from upstream")
        assert (await rt.call("mcp://faulty/empty")).is_error
        run = await rt.run(ensemble)
        assert run.output == {"failed": True, "said": "401 from upstream", "mute": True}


@row("81", "odd_results")
async def parts_that_are_missing_or_null_are_read_as_empty(house: House) -> None:
    assert (await house.call("no_content")).content == {"n": 1}
    for name in ("content_null", "empty"):
        reply = await house.call(name)
        assert reply.blocks == []
        assert not reply.is_error
    for name, words in (("content_text", "just text"), ("content_object", "alone")):
        assert words in json.dumps((await house.call(name)).blocks), name
    odd = await house.call("odd_blocks")
    assert {"type": "text", "text": "good"} in odd.blocks
    assert all(isinstance(block, dict) for block in odd.blocks)
    assert odd.notes


@row("81", "odd_results")
async def any_json_may_be_structured_content(house: House) -> None:
    assert (await house.call("structured_list")).content == [1, 2]
    assert (await house.call("structured_text")).content == "plain"


@row("81", "odd_results")
async def what_is_no_number_goes_no_further(house: House) -> None:
    reply = await house.call("nan")
    assert reply.structured == {"a": None, "b": [None, None], "c": 1.5}
    assert reply.notes
    json.dumps(reply.structured, allow_nan=False)
    json.dumps((await house.call("huge_exponent")).structured, allow_nan=False)


@row("81", "odd_results")
async def huge_whole_numbers_are_kept_and_endless_ones_settle_the_call(house: House) -> None:
    assert (await house.call("bigint")).structured == {"n": 10**40, "m": -(2**63) - 1}
    for name in ("long_number", "deep"):
        assert await settled(house, name), name


@row("82", "bad_errors")
async def an_error_object_of_any_shape_settles_its_call(house: House) -> None:
    for name, body in ERRORS.items():
        with pytest.raises(ProtocolError) as raised:
            await house.call(name)
        assert raised.value.tool == name
        if "it broke" in json.dumps(body):
            assert "it broke" in str(raised.value), name


@row("82", "doubled_and_unknown")
async def second_answers_and_answers_to_nobody_are_passed_over(house: House) -> None:
    assert (await house.call("act")).content == "first"
    assert house.watcher.noise


@row("0.5", "bad_errors")
async def an_error_without_a_message_or_with_a_text_for_a_code_keeps_what_it_says(house: House) -> None:
    with pytest.raises(ProtocolError) as raised:
        await house.call("err_no_message")
    assert raised.value.code == -32000
    with pytest.raises(ProtocolError) as raised:
        await house.call("err_text_code")
    assert "E_FAIL" in f"{raised.value} {raised.value.data}"


@row("0.5", "null_id")
async def an_error_without_an_id_settles_the_only_call_there_is(house: House) -> None:
    with pytest.raises(ProtocolError, match="Parse error"):
        await house.call("act", timeout=30)


@row("0.5", "null_id", fields={"tool_timeout_ms": 500})
async def an_error_without_an_id_among_several_calls_fails_none_that_is_answered(house: House) -> None:
    await house.call("echo")
    answers = await asyncio.gather(
        house.call("act"), *(house.call("echo", n=n) for n in range(5)), return_exceptions=True
    )
    assert isinstance(answers[0], Exception)
    for n, answer in enumerate(answers[1:]):
        assert not isinstance(answer, BaseException)
        assert answer.content == {"n": n}


async def settled(house: House, tool: str) -> bool:
    """Whether an unreadable answer came out as an error of its call, or as a reply that says what is odd."""
    (outcome,) = await asyncio.gather(house.call(tool), return_exceptions=True)
    if isinstance(outcome, BaseException):
        return isinstance(outcome, ProtocolError) and outcome.tool == tool
    return bool(outcome.notes)
