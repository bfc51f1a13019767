"""Budgets: what is used up is not given out again before its time, whoever asks and however it ended."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luthier.clock import FakeClock, settle
from luthier.govern.budget import Budgets
from luthier.govern.guard import GateCall, Ledger
from luthier.govern.usage import SLOTS, Amount, Limit, Usage
from luthier.spec import Budget, read_project
from luthier.taint import TRUSTED
from luthier.tools import Refusal, ToolResult
from luthier.wire import MemoryServer
from luthier.wire.behaviour import Fail, Hang
from tests.govern.kit import Gate, intended

if TYPE_CHECKING:
    from luthier.govern.guard import Up

WRITER = ("operator", "writer")
AGENT = ("operator", "ensemble:x", "reviewer")


class TestUsage:
    @pytest.mark.parametrize(
        ("spent", "now", "used"),
        [
            ([], 0, 0),
            ([0], 0, 1),
            ([0, 0, 0], 59, 3),
            ([0], 60, 1),  # a slot counts until all that may be in it is too old
            ([0], 60.999, 1),
            ([0], 61, 0),
            ([0.5], 61, 0),
            ([0, 30], 61, 1),
            ([0, 30, 59], 119, 1),
            ([0, 1, 2, 3], 62, 2),
        ],
    )
    def test_a_call_counts_for_a_minute_and_not_much_longer(
        self, spent: list[float], now: float, used: int
    ) -> None:
        usage = Usage(60)
        for moment in spent:
            usage.spend(moment, Amount(1))
        assert usage.used(now).calls == used

    @pytest.mark.parametrize(
        ("spent", "now", "limit", "free_in"),
        [
            ([0], 0, Limit(1), 61),
            ([0, 10], 20, Limit(2), 41),
            ([0, 10], 20, Limit(1), 51),
            ([0, 0.2, 0.4], 30, Limit(3), 31),
            ([0], 0, Limit(0), None),
            ([], 0, Limit(0), None),
        ],
    )
    def test_it_is_known_when_something_is_free_again(
        self, spent: list[float], now: float, limit: Limit, free_in: float | None
    ) -> None:
        usage = Usage(60)
        for moment in spent:
            usage.spend(moment, Amount(1))
        assert usage.free_in(now, limit) == free_in

    def test_what_counts_for_a_run_is_never_free_again(self) -> None:
        usage = Usage(None)
        usage.spend(5, Amount(1))
        usage.spend(1e9, Amount(2, 3.0, 4))
        assert usage.used(1e12) == Amount(3, 3.0, 4)
        assert usage.free_in(1e12, Limit(3)) is None
        assert not usage.is_empty(1e12)

    def test_time_that_stands_still_or_goes_back_refunds_nothing(self) -> None:
        usage = Usage(60)
        usage.spend(100, Amount(1))
        usage.spend(90, Amount(1))
        assert usage.used(90).calls == 2

    @given(
        st.lists(st.floats(0, 50, allow_nan=False), max_size=60),
        st.integers(1, 5),
        st.sampled_from([1.0, 10.0, 60.0]),
    )
    def test_in_no_window_is_more_used_than_may_be(
        self, pauses: list[float], limit: int, length: float
    ) -> None:
        usage, now, made = Usage(length), 0.0, []
        for pause in pauses:
            now += pause
            if not Limit(limit).reached(usage.used(now)):
                usage.spend(now, Amount(1))
                made.append(now)
        for start in made:
            assert sum(start <= moment < start + length for moment in made) <= limit

    @given(st.lists(st.floats(0, 50, allow_nan=False), min_size=1, max_size=60), st.integers(1, 5))
    def test_what_is_said_to_be_free_then_is(self, pauses: list[float], limit: int) -> None:
        usage, now = Usage(60), 0.0
        for pause in pauses:
            now += pause
            usage.spend(now, Amount(1))
        if Limit(limit).reached(usage.used(now)):
            free = usage.free_in(now, Limit(limit))
            assert free is not None
            assert not Limit(limit).reached(usage.used(now + free))

    def test_a_window_costs_the_same_however_much_is_called(self) -> None:
        usage = Usage(60)
        for number in range(10_000):
            usage.spend(number / 50, Amount(1))
        usage.used(200)
        assert len(usage._slots) <= SLOTS + 2  # noqa: SLF001  (what it costs)

    @pytest.mark.parametrize(
        ("limit", "used", "said"),
        [
            (Limit(), Amount(9, 9, 9), ""),
            (Limit(calls=1), Amount(1), "1 call"),
            (Limit(calls=2), Amount(1), ""),
            (Limit(calls=0), Amount(), "0 calls"),
            (Limit(seconds=1.5), Amount(0, 1.5), "1.5 s of calls"),
            (Limit(bytes=10), Amount(0, 0, 9), ""),
            (Limit(bytes=10), Amount(0, 0, 10), "10 bytes"),
        ],
    )
    def test_a_limit_says_what_is_used_up(self, limit: Limit, used: Amount, said: str) -> None:
        assert limit.reached(used) == said


def lute() -> MemoryServer:
    return MemoryServer("lute", {"play": "a note", "tune": "another", "odd": Fail("broken"), "slow": Hang()})


def house(*budgets: Budget, servers: tuple[MemoryServer, ...] = ()) -> Gate:
    return Gate(lute(), *servers, budgets=budgets)


def budget(per: str = "minute", **fields: Any) -> Budget:
    return Budget(name="thrift", per=per, place="luthier.yaml:3:5", **fields)  # type: ignore[arg-type]


def refused(up: Up) -> Refusal:
    assert isinstance(up, Refusal), up
    return up


class TestThroughTheGate:
    async def test_what_is_used_up_is_refused_until_it_is_free_again(self) -> None:
        gate = house(budget(calls=2))
        for _ in range(2):
            assert isinstance(await gate.through("mcp://lute/play"), ToolResult)
        got = refused(await gate.through("mcp://lute/play"))
        assert (got.kind, got.rule, got.place) == ("denied", "budget thrift", "luthier.yaml:3:5")
        assert "2 calls per minute" in got.reason
        assert got.hint.startswith("It may be called again in 61 s.")
        assert gate.kinds[-1] == "verdict refused"
        await gate.clock.advance(61)
        assert isinstance(await gate.through("mcp://lute/play"), ToolResult)
        assert len(gate.servers["lute"].calls) == 3

    @pytest.mark.parametrize(
        ("fields", "calls", "left"),
        [
            ({}, [("lute", "play", AGENT), ("harp", "pluck", ("operator",))], False),
            ({"server": "lute"}, [("lute", "play", AGENT), ("lute", "tune", ("operator",))], False),
            ({"server": "lute"}, [("lute", "play", AGENT), ("harp", "pluck", AGENT)], True),
            ({"server": "*"}, [("lute", "play", AGENT), ("harp", "pluck", AGENT)], True),
            ({"tool": "*"}, [("lute", "play", AGENT), ("lute", "tune", AGENT)], True),
            ({"tool": "mcp://lute/*"}, [("lute", "play", AGENT), ("lute", "play", ("operator",))], False),
            ({"agent": "reviewer"}, [("lute", "play", AGENT), ("harp", "pluck", AGENT)], False),
            (
                {"agent": "reviewer"},
                [("lute", "play", AGENT), ("lute", "play", WRITER)],
                True,
            ),
            ({"agent": "*"}, [("lute", "play", ("reviewer",)), ("lute", "play", ("writer",))], True),
            ({"agent": "*"}, [("lute", "play", AGENT), ("lute", "play", WRITER)], False),
            ({"agent": "reviewer"}, [("lute", "play", AGENT), ("lute", "play", (*AGENT, "helper"))], False),
        ],
        ids=str,
    )
    async def test_what_a_budget_names_is_counted_by_itself(
        self, fields: dict[str, str], calls: list[tuple[str, str, tuple[str, ...]]], *, left: bool
    ) -> None:
        gate = house(budget(calls=1, **fields), servers=(MemoryServer("harp", {"pluck": "x"}),))
        (server, name, who), (other, other_name, other_who) = calls
        assert isinstance(await gate.through(f"mcp://{server}/{name}", principals=who), ToolResult)
        got = await gate.through(f"mcp://{other}/{other_name}", principals=other_who)
        assert isinstance(got, ToolResult) is left

    async def test_a_budget_for_a_run_holds_for_the_runs_inside_of_it(self) -> None:
        gate = house(budget("run", calls=1))
        assert isinstance(await gate.through("mcp://lute/play", run="r1", root="r1"), ToolResult)
        got = refused(await gate.through("mcp://lute/play", run="r1-inner", root="r1"))
        assert "again in" not in got.hint
        assert isinstance(await gate.through("mcp://lute/play", run="r2", root="r2"), ToolResult)

    async def test_a_call_that_fails_is_not_refunded(self) -> None:
        gate = house(budget(calls=1))
        with pytest.raises(Exception, match="broken"):
            await gate.through("mcp://lute/odd")
        assert isinstance(await gate.through("mcp://lute/play"), Refusal)

    async def test_a_call_that_is_called_off_is_not_refunded(self) -> None:
        gate = house(budget(calls=1, seconds=100))
        task = gate.start(gate.gateway.call(intended("mcp://lute/slow")))
        await settle(100)
        task.cancel()
        await asyncio.wait({task})
        assert isinstance(await gate.through("mcp://lute/play"), Refusal)

    async def test_a_call_that_is_refused_counts_nowhere(self) -> None:
        gate = house(budget(calls=2, server="lute"), budget(calls=1, tool="mcp://lute/play"))
        assert isinstance(await gate.through("mcp://lute/play"), ToolResult)
        assert isinstance(await gate.through("mcp://lute/play"), Refusal)
        assert isinstance(await gate.through("mcp://lute/tune"), ToolResult)
        got = refused(await gate.through("mcp://lute/tune"))
        assert "of lute per minute" in got.reason

    async def test_calls_at_once_do_not_get_past_it(self) -> None:
        gate = house(budget(calls=3))
        calls = [gate.gateway.call(intended("mcp://lute/play", id=f"c{n}")) for n in range(10)]

        async def all_of_them() -> list[Up]:
            return list(await asyncio.gather(*calls))

        got = await gate.settled(all_of_them())
        assert sum(isinstance(up, ToolResult) for up in got) == 3

    async def test_time_is_counted(self) -> None:
        gate = house(budget(seconds=2.0))
        task = gate.start(gate.gateway.call(intended("mcp://lute/slow", timeout=3.0)))
        await settle(100)
        await gate.clock.advance(3.0)
        with pytest.raises(Exception, match="lute"):
            await task
        got = refused(await gate.through("mcp://lute/play"))
        assert "2 s of calls per minute" in got.reason

    async def test_bytes_are_counted_both_ways(self) -> None:
        gate = house(budget(bytes=100))
        assert isinstance(await gate.through("mcp://lute/play", {"text": "x" * 20}), ToolResult)
        assert isinstance(await gate.through("mcp://lute/play", {"text": "x" * 20}), ToolResult)
        got = refused(await gate.through("mcp://lute/play"))
        assert "100 bytes" in got.reason

    async def test_nothing_at_all_may_be_allowed(self) -> None:
        gate = house(budget(calls=0, agent="reviewer"))
        got = refused(await gate.through("mcp://lute/play", principals=AGENT))
        assert "'reviewer'" in got.reason
        assert isinstance(await gate.through("mcp://lute/play"), ToolResult)


async def carried(_: GateCall) -> Any:
    return None


async def test_counters_that_count_nothing_any_more_are_given_up() -> None:
    clock = FakeClock()
    budgets = Budgets((budget(calls=5, agent="*"),), clock)
    for number in range(10_000):
        call = intended("mcp://lute/play", principals=(f"agent{number}",))
        await budgets.guard(GateCall(call, TRUSTED, Ledger()), carried)
    await clock.advance(62)
    await budgets.guard(GateCall(intended("mcp://lute/play"), TRUSTED, Ledger()), carried)
    assert len(budgets._usages) == 1  # noqa: SLF001  (what they cost)


async def test_a_run_that_has_ended_is_forgotten() -> None:
    budgets = Budgets((budget("run", calls=1),), FakeClock())
    for _ in range(2):
        call = GateCall(intended("mcp://lute/play", root="r1"), TRUSTED, Ledger())
        assert await budgets.guard(call, carried) is None
        budgets.forget("r1")


def test_budgets_are_read_with_their_place() -> None:
    source = {"per": "hour", "agent": "*", "calls": 5, "time_ms": 1500, "bytes": 10}
    assert read_project({"budgets": [source]}, root="/").budgets == (
        Budget(name="budget 1", per="hour", agent="*", calls=5, seconds=1.5, bytes=10, place="budgets[0]"),
    )
