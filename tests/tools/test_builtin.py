"""Local tools: found by address, carried within their time, no name given twice."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from luthier.clock import FakeClock, settle, sleep
from luthier.context import CallContext
from luthier.errors import CallTimeoutError, NotFoundError, ToolDefinitionError, kind_of
from luthier.taint import SECRET, UNTRUSTED, Labelled
from luthier.tools import Reply, Tool, ToolCall
from luthier.tools.builtin import Builtin, LocalTools
from luthier.uri import ToolUri

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

HTTP = ToolUri.builtin("http")
ADD = ToolUri.custom("add")


def builtin(
    uri: ToolUri,
    act: Callable[[Labelled[dict[str, Any]], CallContext], Awaitable[Reply]] | None = None,
    timeout: float | None = None,
) -> Builtin:
    async def nothing(arguments: Labelled[dict[str, Any]], context: CallContext) -> Reply:
        return Reply(structured={"arguments": arguments.value, "run": context.run})

    return Builtin(Tool(uri=uri, input_schema={}), act or nothing, timeout=timeout)


def call(uri: ToolUri, *, timeout: float | None = None, deadline: float | None = None) -> ToolCall:
    context = CallContext(run="r1", deadline=deadline)
    return ToolCall(id="c1", uri=uri, arguments=Labelled({"a": 1}, SECRET), context=context, timeout=timeout)


class TestFinding:
    def test_a_tool_is_found_by_its_address(self) -> None:
        http, add = builtin(HTTP), builtin(ADD)
        local = LocalTools([add], [http])
        assert local.find(HTTP) is local.get(HTTP) is http
        assert local.find(ADD) is add
        assert local.find(ToolUri.custom("http")) is None

    def test_an_unknown_one_is_not_found_and_near_ones_are_told(self) -> None:
        with pytest.raises(NotFoundError) as caught:
            LocalTools([builtin(ADD)], [builtin(HTTP)]).get(ToolUri.custom("adds"))
        assert caught.value.near[0] == "custom://add"

    def test_all_are_listed_in_the_order_of_their_addresses(self) -> None:
        local = LocalTools([builtin(ADD), builtin(ToolUri.custom("abs"))], [builtin(HTTP)])
        assert [str(tool.uri) for tool in local.list()] == ["builtin://http", "custom://abs", "custom://add"]
        assert LocalTools().list() == ()

    @pytest.mark.parametrize("other", [ADD, ToolUri.builtin("add")])
    def test_no_name_is_given_twice(self, other: ToolUri) -> None:
        custom, built_in = (
            ([builtin(ADD), builtin(other)], []) if other == ADD else ([builtin(ADD)], [builtin(other)])
        )
        with pytest.raises(ToolDefinitionError, match=f"its name is taken by {other}"):
            LocalTools(custom, built_in)


class TestCarrying:
    async def test_a_call_reaches_its_tool_with_labels_and_context(self) -> None:
        seen: list[tuple[Labelled[dict[str, Any]], CallContext]] = []

        async def act(arguments: Labelled[dict[str, Any]], context: CallContext) -> Reply:
            seen.append((arguments, context))
            return Reply(structured=1)

        wanted = call(HTTP)
        assert (await LocalTools([], [builtin(HTTP, act)]).run(wanted)).structured == 1
        assert seen == [(wanted.arguments, wanted.context)]

    async def test_an_unknown_tool_is_not_found(self) -> None:
        with pytest.raises(NotFoundError):
            await LocalTools().run(call(HTTP))

    @pytest.mark.parametrize(
        ("own", "asked", "deadline", "given_up_at"),
        [
            (5, None, None, 5),
            (5, 2, None, 2),
            (5, 9, None, 9),
            (5, None, 3, 3),
            (5, None, 7, 5),
            (None, None, 4, 4),
            (None, 6, 4, 4),
            (5, None, 0, 0),
        ],
    )
    async def test_it_is_given_up_when_its_time_is_up(
        self, own: float | None, asked: float | None, deadline: float | None, given_up_at: float
    ) -> None:
        clock = FakeClock()
        ended: list[float] = []

        async def act(arguments: Labelled[dict[str, Any]], context: CallContext) -> Reply:
            try:
                await sleep(clock, 100)
            finally:
                ended.append(clock.monotonic())
            return Reply(structured=(arguments, context))

        local = LocalTools([], [builtin(HTTP, act, own)], clock=clock)
        task = asyncio.ensure_future(local.run(call(HTTP, timeout=asked, deadline=deadline)))
        await clock.advance(50)
        with pytest.raises(
            CallTimeoutError, match=f"builtin://http did not answer within {given_up_at} s"
        ) as caught:
            await task
        assert ended == [given_up_at]
        assert caught.value.facts() == {"server": "", "tool": "http", "phase": "call", "sent": True}
        assert kind_of(caught.value) == "timeout"
        assert clock.waiting == 0

    async def test_a_deadline_is_a_moment_and_not_a_length_of_time(self) -> None:
        clock = FakeClock()
        await clock.advance(100)
        local = LocalTools([], [builtin(HTTP, lambda *_: sleep_for_ever(clock))], clock=clock)
        task = asyncio.ensure_future(local.run(call(HTTP, deadline=104)))
        await clock.advance(3)
        assert not task.done()
        await clock.advance(1)
        with pytest.raises(CallTimeoutError, match="within 4 s"):
            await task

    async def test_without_any_limit_it_may_take_its_time(self) -> None:
        clock = FakeClock()

        async def act(arguments: Labelled[dict[str, Any]], context: CallContext) -> Reply:
            await sleep(clock, 1000)
            return Reply(structured=[arguments.value, context.run])

        task = asyncio.ensure_future(LocalTools([], [builtin(HTTP, act)], clock=clock).run(call(HTTP)))
        await clock.advance(1000)
        assert (await task).structured == [{"a": 1}, "r1"]

    async def test_a_timeout_of_the_tool_s_own_is_not_taken_for_ours(self) -> None:
        async def act(arguments: Labelled[dict[str, Any]], context: CallContext) -> Reply:
            raise TimeoutError(f"upstream of {arguments.value} in {context.run}")

        with pytest.raises(TimeoutError, match="upstream") as caught:
            await LocalTools([], [builtin(HTTP, act, 5)]).run(call(HTTP))
        assert not isinstance(caught.value, CallTimeoutError)

    async def test_a_caller_that_is_cancelled_cancels_the_tool(self) -> None:
        clock = FakeClock()
        task = asyncio.ensure_future(
            LocalTools([], [builtin(HTTP, lambda *_: sleep_for_ever(clock), 5)], clock=clock).run(call(HTTP))
        )
        await settle()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert clock.waiting == 0

    def test_results_are_not_trusted_unless_it_is_declared(self) -> None:
        assert builtin(HTTP).label == UNTRUSTED


async def sleep_for_ever(clock: FakeClock) -> Reply:
    await sleep(clock, 1_000_000)
    return Reply()
