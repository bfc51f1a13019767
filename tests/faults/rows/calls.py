"""Rows about calls in time: many at once, given up, with progress; and about what is put into them."""

from __future__ import annotations

import asyncio
import time

import pytest

from luthier.errors import CallTimeoutError, ConnectError, WireError
from luthier.events import CallProgressed, ServerStopped
from tests.faults.bench import Bench, House, until
from tests.faults.modes.answers import RESULTS
from tests.faults.rows.results import settled
from tests.faults.rows.table import BOTH, own, row


@row("9", "plain")
async def many_calls_at_once_each_get_their_own_answer(house: House) -> None:
    replies = await asyncio.gather(*(house.call("echo", n=n) for n in range(64)))
    assert [reply.content for reply in replies] == [{"n": n} for n in range(64)]


@row("9", "out_of_order")
async def answers_are_matched_by_id_and_not_by_their_order(house: House) -> None:
    replies = await asyncio.gather(*(house.call("act", n=n, of=8) for n in range(8)))
    assert [reply.blocks[0]["text"] for reply in replies] == [str(n) for n in range(8)]


@row("9", "plain")
async def much_in_both_directions_at_once_jams_no_pipe(house: House) -> None:
    texts = [f"{n} " + "x" * 200_000 for n in range(16)]
    replies = await asyncio.gather(*(house.call("echo", text=text) for text in texts))
    assert [reply.content["text"] for reply in replies] == texts


@row("10", "waits_for_release")
async def a_slow_call_holds_up_no_other(house: House) -> None:
    slow = [asyncio.create_task(house.call("act")) for _ in range(5)]
    await house.journal.called("act", times=5)
    assert (await house.call("echo", a=1)).content == {"a": 1}
    assert not any(task.done() for task in slow)
    await house.call("release")
    assert [reply.content for reply in await asyncio.gather(*slow)] == ["released"] * 5


@row("10", "crowd", fields={"max_concurrent_calls": 1})
async def a_limit_lets_calls_in_one_at_a_time(house: House) -> None:
    replies = await asyncio.gather(*(house.call("act") for _ in range(8)))
    assert {reply.blocks[0]["text"] for reply in replies} == {"1"}


@row("10", "crowd", fields={"max_concurrent_calls": 3})
async def a_limit_lets_in_as_many_as_it_says(house: House) -> None:
    replies = await asyncio.gather(*(house.call("act") for _ in range(12)))
    assert max(int(reply.blocks[0]["text"]) for reply in replies) == 3


@row("10", "waits_for_release", fields={"max_concurrent_calls": 1})
async def a_call_that_waits_for_its_turn_in_vain_was_not_sent(house: House) -> None:
    first = asyncio.create_task(house.call("act"))
    await house.journal.called("act")
    with pytest.raises(CallTimeoutError) as raised:
        await house.call("release", timeout=0.3)
    assert not raised.value.sent
    assert house.journal.calls("release") == []
    first.cancel()
    await asyncio.wait([first])


@row("22", "hang_in_call")
async def a_call_whose_time_is_up_is_cancelled_at_the_server_and_a_flood_evicts_nothing(house: House) -> None:
    with pytest.raises(CallTimeoutError) as raised:
        await house.call("act", timeout=0.3)
    assert raised.value.sent
    (request,) = house.journal.heard("tools/call")
    (notice, *_) = await house.journal.hears("notifications/cancelled")
    assert notice["params"]["requestId"] == request["id"]
    replies = await asyncio.gather(*(house.call("echo", n=n) for n in range(20)))
    assert [reply.content for reply in replies] == [{"n": n} for n in range(20)]


@row("50", "hang_in_call")
async def a_cancelled_task_ends_at_once_and_the_server_is_told(house: House) -> None:
    task = asyncio.create_task(house.call("act"))
    await house.journal.called("act")
    began = time.monotonic()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert time.monotonic() - began < 1
    (request,) = house.journal.heard("tools/call")
    (notice, *_) = await house.journal.hears("notifications/cancelled")
    assert notice["params"]["requestId"] == request["id"]


@row("53", "late_answer")
async def a_call_that_timed_out_is_not_run_again_and_its_late_answer_is_nobodys(house: House) -> None:
    with pytest.raises(CallTimeoutError):
        await house.call("act", timeout=0.3)
    (notice, *_) = await house.journal.hears("notifications/cancelled")
    assert notice["params"]["reason"]
    assert (await house.call("echo", a=1)).content == {"a": 1}
    assert len(house.journal.calls("act")) == 1


@own("53", "late_answer", within=10)
async def a_step_with_retry_does_not_run_a_sent_call_twice(bench: Bench) -> None:
    ensemble = {
        "name": "impatient",
        "agents": [
            {
                "name": "slow",
                "operation": "tools",
                "config": {"mcp": "faulty", "tool": "act"},
                "timeout": 300,
                "retry": {"maxAttempts": 3, "initialDelay": 10, "retryOn": ["timeout", "unknown"]},
            }
        ],
        "outputs": {"kind": "${slow.error.kind}"},
    }
    async with bench.runtime() as rt:
        run = await rt.run(ensemble)
        assert run.output == {"kind": "timeout"}
        assert len(bench.journal.calls("act")) == 1


@own("53", "dies_in_call", within=10)
async def a_step_whose_call_was_lost_does_not_run_it_again(bench: Bench) -> None:
    ensemble = {
        "name": "unlucky",
        "agents": [
            {
                "name": "deadly",
                "operation": "tools",
                "config": {"mcp": "faulty", "tool": "act"},
                "retry": {"maxAttempts": 3, "initialDelay": 10},
            }
        ],
        "outputs": {"kind": "${deadly.error.kind}"},
    }
    async with bench.runtime() as rt:
        run = await rt.run(ensemble)
        assert run.output == {"kind": "unknown"}
        assert len(bench.journal.calls("act")) == 1


@row("54", "progress", fields={"tool_timeout_ms": 600, "tool_timeout_max_ms": 20_000})
async def progress_extends_the_time_of_a_call_and_is_told(house: House) -> None:
    assert (await house.call("act", times=3, pause=0.3)).content == "with a token"
    told = house.watcher.of(CallProgressed)
    assert [(event.progress, event.total, event.message) for event in told] == [
        (n, 3.0, f"part {n}") for n in range(1, 4)
    ]


@row("54", "progress", fields={"tool_timeout_ms": 400, "tool_timeout_max_ms": 800})
async def no_progress_extends_a_call_beyond_its_hard_maximum(house: House) -> None:
    began = time.monotonic()
    with pytest.raises(CallTimeoutError):
        await house.call("act", times=1000, pause=0.1)
    assert 0.75 < time.monotonic() - began < 2
    await house.journal.hears("notifications/cancelled")


@row("54", "progress", fields={"tool_timeout_ms": 400})
async def without_progress_a_call_has_its_plain_time(house: House) -> None:
    began = time.monotonic()
    with pytest.raises(CallTimeoutError):
        await house.call("act", times=1, pause=30)
    assert 0.35 < time.monotonic() - began < 1.5


@row("57", "null_results")
async def an_answer_without_a_result_settles_its_call_and_harms_no_other(house: House) -> None:
    for name in RESULTS:
        assert await settled(house, name), name
    assert house.watcher.of(ServerStopped) == []


# Arguments


@own("69", "strict_arguments", eras=BOTH)
async def a_null_is_dropped_where_the_schema_has_none_and_kept_where_it_has(bench: Bench) -> None:
    async with bench.runtime() as rt:
        result = await rt.call("mcp://faulty/act", {"name": None, "maybe": None, "count": 3, "ids": None})
        assert result.content == {"maybe": None, "count": 3}


@own("70", "strict_arguments", eras=BOTH)
async def json_text_is_decoded_only_where_the_schema_wants_what_it_holds(bench: Bench) -> None:
    async with bench.runtime() as rt:
        given = {"ids": "[1, 2]", "filter": '{"a": 1}', "name": "[1, 2]", "either": "[1, 2]"}
        result = await rt.call("mcp://faulty/act", given)
        assert result.content == {
            "ids": [1, 2],
            "filter": {"a": 1},
            "name": "[1, 2]",
            "either": "[1, 2]",
        }


@own("71", "strict_arguments", eras=BOTH)
async def nothing_of_ours_is_put_among_the_arguments(bench: Bench) -> None:
    async with bench.runtime() as rt:
        assert (await rt.call("mcp://faulty/act", name="x")).content == {"name": "x"}
        (request,) = bench.journal.heard("tools/call")
        assert request["params"]["arguments"] == {"name": "x"}
        assert set(request["params"]) <= {"name", "arguments", "_meta"}


@own("73", "strict_arguments", eras=BOTH)
async def false_zero_and_empty_text_are_values(bench: Bench) -> None:
    falsy = {"flag": False, "count": 0, "name": "", "ids": [], "filter": {}}
    async with bench.runtime() as rt:
        assert (await rt.call("mcp://faulty/act", falsy)).content == falsy


@own("73", "strict_arguments")
async def false_zero_and_empty_text_survive_an_ensemble(bench: Bench) -> None:
    falsy = {"flag": False, "count": 0, "name": "", "ids": [], "filter": {}}
    ensemble = {
        "name": "falsy",
        "inputs": {
            "flag": "boolean",
            "count": "integer",
            "name": "string",
            "ids": "array",
            "filter": "object",
        },
        "agents": [
            {
                "name": "ask",
                "operation": "tools",
                "config": {"mcp": "faulty", "tool": "act"},
                "input": {key: f"${{input.{key}}}" for key in falsy},
            }
        ],
        "outputs": {"got": "${ask.output}"},
    }
    async with bench.runtime() as rt:
        run = await rt.run(ensemble, falsy)
        assert run.success, run.error
        assert run.output == {"got": falsy}


# What servers ask of us


@row("w3", "asks_the_host", eras=("legacy",))
async def a_ping_is_answered_and_what_nobody_handles_is_refused_politely(house: House) -> None:
    answers = (await house.call("act")).content
    assert answers["ping"]["result"] == {}
    for method in ("roots/list", "sampling/createMessage", "elicitation/create", "nonsense/ask"):
        assert isinstance(answers[method]["error"]["code"], int), method
        assert answers[method]["error"]["message"], method


@row("w4", "input_required", eras=("modern",))
async def a_result_that_wants_more_input_is_handed_on_as_such(house: House) -> None:
    reply = await house.call("act")
    assert reply.input_required is not None
    assert reply.input_required["requestState"] == "x"
    assert "q" in reply.input_required["inputRequests"]


@own("99", "environment")
async def an_unset_variable_fails_its_own_server_only(bench: Bench) -> None:
    servers = {
        "well": bench.fields(mode="plain"),
        "poor": bench.fields(env={"TOKEN": "${env.NO_SUCH_TOKEN}"}),
    }
    async with bench.runtime(servers) as rt:
        assert (await rt.call("mcp://well/echo", a=1)).content == {"a": 1}
        with pytest.raises(ConnectError) as raised:
            await rt.call("mcp://poor/act")
        assert "NO_SUCH_TOKEN" in str(raised.value)
        assert "TOKEN" in str(raised.value)
        assert isinstance(raised.value, WireError)
    await until(lambda: len(bench.journal.starts()) == 1)
