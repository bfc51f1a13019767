"""The kill switch: what is turned off calls nothing more, also what is under way; not to know is a no."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest

from luthier.clock import FakeClock, settle
from luthier.connect import MemoryState
from luthier.context import CallContext
from luthier.errors import AuditError, NotFoundError, Refused, StoreError
from luthier.govern import MemoryAudit, Switched, Verdict
from luthier.govern.switch import KIND, KillSwitch
from luthier.tools import Refusal, Reply, Tool, ToolResult
from luthier.tools.builtin import Builtin, LocalTools
from luthier.uri import ToolUri
from luthier.wire import MemoryServer
from luthier.wire.behaviour import Hang
from tests.govern.kit import Gate, intended

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from luthier.govern.guard import Up

AGENT = ("operator", "ensemble:x", "reviewer")
LONG = 30.0


def lute(**tools: Any) -> MemoryServer:
    return MemoryServer("lute", {"play": "a note", "slow": Hang(), **tools})


def house(*servers: MemoryServer, **rest: Any) -> Gate:
    return Gate(*(servers or (lute(),)), switched=True, **rest)


QUESTIONS: dict[str, Callable[[Gate], Awaitable[Any]]] = {
    "tool": lambda gate: gate.gateway.tool(ToolUri.parse("mcp://lute/play"), CallContext()),
    "tools of one": lambda gate: gate.gateway.tools(CallContext(), "lute"),
    "manifest": lambda gate: gate.gateway.manifest("lute", CallContext()),
    "review": lambda gate: gate.gateway.review("lute", CallContext()),
    "tools of all": lambda gate: gate.gateway.tools(CallContext()),
    "servers": lambda gate: gate.gateway.servers(CallContext()),
}
"""What may be asked of the gate without a call."""
LISTS = {"tools of all", "servers"}


def refused(up: Up) -> Refusal:
    assert isinstance(up, Refusal), up
    return up


async def under_way(gate: Gate, uri: str = "mcp://lute/slow", **rest: Any) -> asyncio.Task[Up]:
    """A call that has been sent and is not answered."""
    task = gate.start(gate.gateway.call(intended(uri, **rest)))
    async with asyncio.timeout(LONG):
        while "intent" not in gate.kinds:
            await settle()
    return task


class TestNewCalls:
    async def test_a_server_that_is_off_is_not_called(self) -> None:
        gate = house()
        await gate.switches.disable("server:lute", via="cli")
        got = refused(await gate.asked("mcp://lute/play"))
        assert (got.kind, got.rule, got.place) == ("denied", "kill switch", "luthier servers disable lute")
        assert "luthier servers enable lute" in got.hint
        assert gate.servers["lute"].calls == []
        switched, verdict = gate.log.records
        assert isinstance(switched, Switched)
        assert (switched.what, switched.to, switched.by, switched.via) == (
            "server:lute",
            "disabled",
            "operator",
            "cli",
        )
        assert isinstance(verdict, Verdict)
        assert (verdict.verdict, verdict.rule) == ("refused", "kill switch")

    async def test_to_an_agent_it_is_not_there(self) -> None:
        gate = house()
        await gate.switches.disable("server:lute")
        context = CallContext(principals=AGENT)
        with pytest.raises(NotFoundError) as off:
            await gate.asked("mcp://lute/play", principals=AGENT)
        with pytest.raises(NotFoundError) as absent:
            await gate.asked("mcp://lude/play", principals=AGENT)
        assert str(off.value).replace("lute", "lude") == str(absent.value)
        assert await gate.settled(gate.gateway.servers(context)) == ()
        with pytest.raises(NotFoundError):
            await gate.settled(gate.gateway.manifest("lute", context))
        with pytest.raises(Refused, match="turned off"):
            await gate.settled(gate.gateway.manifest("lute", CallContext()))

    @pytest.mark.parametrize("question", QUESTIONS)
    async def test_whoever_only_asks_about_it_is_told_before_it_is_started(self, question: str) -> None:
        gate = house()
        await gate.switches.disable("server:lute")
        async with asyncio.timeout(LONG):
            if question in LISTS:
                assert await QUESTIONS[question](gate) == ()
            else:
                with pytest.raises(Refused, match="turned off"):
                    await QUESTIONS[question](gate)
        assert gate.servers["lute"].connections == 0

    @pytest.mark.parametrize("name", AGENT)
    async def test_a_caller_that_is_off_calls_nothing_and_neither_does_who_calls_for_it(
        self, name: str
    ) -> None:
        async def act(arguments: Any, context: CallContext) -> Reply:
            raise AssertionError

        local = LocalTools(builtin=[Builtin(Tool(uri=ToolUri.builtin("note"), input_schema={}), act)])
        gate = house(local=local)
        await gate.switches.disable(f"agent:{name}")
        for uri in ("mcp://lute/play", "builtin://note"):
            got = refused(await gate.asked(uri, principals=AGENT))
            assert (got.kind, got.place) == ("denied", f"luthier agents disable {name}")
        assert gate.servers["lute"].calls == []

    async def test_others_are_not_touched(self) -> None:
        gate = house(lute(), MemoryServer("harp", {"play": "another"}))
        await gate.switches.disable("server:harp")
        await gate.switches.disable("agent:writer")
        assert isinstance(await gate.asked("mcp://lute/play", principals=AGENT), ToolResult)

    async def test_what_is_on_again_is_called(self) -> None:
        gate = house()
        await gate.switches.disable("server:lute")
        assert isinstance(await gate.asked("mcp://lute/play"), Refusal)
        await gate.switches.enable("server:lute")
        await gate.clock.advance(1.0)
        assert isinstance(await gate.asked("mcp://lute/play"), ToolResult)

    async def test_a_call_looks_itself_when_nobody_did_for_long(self) -> None:
        gate = house()
        assert isinstance(await gate.asked("mcp://lute/play"), ToolResult)
        await gate.switches.disable("server:lute")
        await gate.clock.advance(0.8)
        assert isinstance(await gate.asked("mcp://lute/play"), Refusal)


class TestCallsUnderWay:
    @pytest.mark.parametrize("what", ["server:lute", "agent:reviewer", "agent:ensemble:x", "agent:operator"])
    async def test_it_is_cut_off_and_ends_as_refused(self, what: str) -> None:
        gate = house()
        task = await under_way(gate, principals=AGENT)
        await gate.switches.disable(what)
        await gate.switch.look()
        async with asyncio.timeout(LONG):
            got = refused(await task)
        assert (got.kind, got.rule) == ("denied", "kill switch")
        assert "not known" in got.reason
        assert [kind for kind in gate.kinds if kind != "switched"] == [
            "verdict allowed",
            "intent",
            "outcome cancelled",
            "verdict revoked",
        ]

    async def test_it_takes_less_than_a_second_and_the_connection_is_closed(self) -> None:
        gate = house()
        task = await under_way(gate)
        watching = gate.start(gate.switch.watch(gate.manager.reconnect))
        async with asyncio.timeout(LONG):
            while not gate.clock.waiting:
                await settle()
        began = gate.clock.monotonic()
        gate.state.put(KIND, "server:lute", {})
        await gate.in_pauses(task.done)
        assert gate.clock.monotonic() - began < 1.0
        assert isinstance(task.result(), Refusal)
        await gate.in_pauses(lambda: gate.manager.state("lute") != "ready")
        watching.cancel()
        await asyncio.wait({watching})

    async def test_others_go_on(self) -> None:
        gate = house(lute(), MemoryServer("harp", {"slow": Hang()}))
        task = await under_way(gate)
        await gate.switches.disable("server:harp")
        await gate.switch.look()
        await settle()
        assert not task.done()
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled()

    async def test_what_waits_for_an_approval_is_cut_off_too(self) -> None:
        from luthier.spec import Policies, PolicyRule

        gate = house(
            asks=True, approval_timeout=60, policies=Policies(rules=(PolicyRule(name="a", then="ask"),))
        )
        task = gate.start(gate.gateway.call(intended("mcp://lute/play")))
        async with asyncio.timeout(LONG):
            while not await gate.approvals.list():
                await settle()
        await gate.switches.disable("server:lute")
        await gate.switch.look()
        async with asyncio.timeout(LONG):
            got = refused(await task)
        assert "not known" not in got.reason
        assert gate.kinds[-1] == "verdict refused"
        assert await gate.approvals.list() == ()

    async def test_who_cancels_it_as_well_is_not_kept_from_it(self) -> None:
        gate = house()
        task = await under_way(gate)
        await gate.switches.disable("server:lute")
        task.cancel()
        await gate.switch.look()
        await asyncio.wait({task}, timeout=LONG)
        assert task.cancelled()

    async def test_its_task_is_as_if_nothing_had_happened(self) -> None:
        gate = house()

        async def twice() -> tuple[Up, int]:
            first = await gate.gateway.call(intended("mcp://lute/slow"))
            await asyncio.sleep(0)
            task = asyncio.current_task()
            assert task is not None
            return first, task.cancelling()

        task = gate.start(twice())
        async with asyncio.timeout(LONG):
            while "intent" not in gate.kinds:
                await settle()
            await gate.switches.disable("server:lute")
            await gate.switch.look()
            got, cancelling = await task
        assert isinstance(got, Refusal)
        assert cancelling == 0

    @pytest.mark.parametrize("fault", [None, RuntimeError("closed underneath")])
    async def test_what_came_of_it_all_the_same_is_not_handed_out(self, fault: Exception | None) -> None:
        async def act(arguments: Any, context: CallContext) -> Reply:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                if fault is not None:
                    raise fault from None
            return Reply(structured="a secret")

        local = LocalTools(builtin=[Builtin(Tool(uri=ToolUri.builtin("slow"), input_schema={}), act)])
        gate = house(local=local)
        task = await under_way(gate, "builtin://slow")
        await gate.switches.disable("agent:operator")
        await gate.switch.look()
        async with asyncio.timeout(LONG):
            got = refused(await task)
        assert got.rule == "kill switch"

    async def test_what_is_on_again_by_then_ends_refused_all_the_same(self) -> None:
        gate = house()
        task = await under_way(gate)
        await gate.switches.disable("server:lute")
        await gate.switch.look()
        gate.switch.off = frozenset()
        async with asyncio.timeout(LONG):
            assert "again" in refused(await task).hint


class Store(MemoryState):
    """A store whose `revision` does something else from a moment on."""

    def __init__(self) -> None:
        super().__init__()
        self.does: Any = None

    def revision(self) -> int:
        return super().revision() if self.does is None else self.does()


def fail() -> int:
    raise StoreError("gone")


class TestTheStore:
    async def test_while_it_cannot_be_read_nothing_is_called(self) -> None:
        store = Store()
        gate = house(state=store)
        assert isinstance(await gate.asked("mcp://lute/play"), ToolResult)
        store.does = fail
        await gate.clock.advance(1.0)
        got = refused(await gate.asked("mcp://lute/play"))
        assert (got.kind, got.rule, got.place) == ("denied", "kill switch", "the state store")
        assert gate.kinds[-1] == "verdict refused"
        store.does = None
        assert isinstance(await gate.asked("mcp://lute/play"), ToolResult)

    @pytest.mark.parametrize("question", QUESTIONS)
    async def test_while_it_cannot_be_read_nothing_is_told(self, question: str) -> None:
        store = Store()
        store.does = fail
        gate = house(state=store)
        async with asyncio.timeout(LONG):
            with pytest.raises(Refused, match="cannot be read"):
                await QUESTIONS[question](gate)
        assert gate.servers["lute"].connections == 0
        assert gate.kinds == ["verdict refused"]

    async def test_that_it_cannot_be_read_is_logged_once_with_the_reason(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        store = Store()
        gate = house(state=store)
        for _ in range(2):
            store.does = fail
            for _ in range(3):
                await gate.clock.advance(1.0)
                refused(await gate.asked("mcp://lute/play"))
            store.does = None
            assert isinstance(await gate.asked("mcp://lute/play"), ToolResult)
        told = [record for record in caplog.records if "kill switch" in record.message]
        assert [record.message for record in told] == ["the kill switch could not be read: gone"] * 2
        assert not any(record.exc_info or record.exc_text for record in told)

    async def test_one_that_hangs_is_no_better(self) -> None:
        leave = threading.Event()
        store = Store()
        store.does = lambda: leave.wait(LONG)
        gate = house(state=store)
        task = gate.start(gate.asked("mcp://lute/play"))
        async with asyncio.timeout(LONG):
            while not task.done():
                await gate.clock.advance(1.0)
        leave.set()
        assert refused(task.result()).rule == "kill switch"

    async def test_the_watcher_goes_on_when_a_look_fails(self) -> None:
        store = Store()
        store.does = fail
        gate = house(state=store)
        watching = gate.start(gate.switch.watch(gate.manager.reconnect))
        async with asyncio.timeout(LONG):
            while not gate.clock.waiting:
                await settle()
            store.does = None
            gate.state.put(KIND, "agent:x", 1)
        await gate.in_pauses(lambda: bool(gate.switch.off))
        watching.cancel()
        await asyncio.wait({watching})

    async def test_a_watcher_that_is_stopped_leaves_nobody_behind_in_the_store(self) -> None:
        reading, leave = threading.Event(), threading.Event()

        def read() -> None:
            reading.set()
            leave.wait(LONG)

        store = Store()
        store.does = read
        gate = house(state=store)
        watching = gate.start(gate.switch.watch(gate.manager.reconnect))
        assert await asyncio.to_thread(reading.wait, LONG)
        watching.cancel()
        await settle()
        assert not watching.done()
        leave.set()
        await asyncio.wait({watching}, timeout=LONG)
        assert watching.cancelled()

    async def test_the_watcher_goes_on_when_a_connection_cannot_be_closed(self) -> None:
        async def close(server: str) -> None:
            raise OSError(server)

        gate = house()
        watching = gate.start(gate.switch.watch(close))
        gate.state.put(KIND, "server:lute", 1)
        await gate.in_pauses(lambda: bool(gate.switch.off))
        later = gate.clock.monotonic() + 1.0
        await gate.in_pauses(lambda: gate.clock.monotonic() >= later)
        assert not watching.done()
        watching.cancel()
        await asyncio.wait({watching})

    @pytest.mark.parametrize("row", [1, "x", {}, {"at": "never"}, {"at": 5.0, "by": 7}, [None]])
    async def test_what_is_off_is_off_whatever_its_row_says(self, row: Any) -> None:
        gate = house()
        gate.state.put(KIND, "server:lute", row)
        assert [off.what for off in await gate.switches.list()] == ["server:lute"]
        assert isinstance(await gate.asked("mcp://lute/play"), Refusal)

    async def test_who_turned_it_off_is_told(self) -> None:
        gate = house()
        await gate.switches.disable("agent:x", via="cli")
        (off,) = await gate.switches.list()
        assert (off.what, off.at, off.by) == ("agent:x", gate.clock.now(), "operator (cli)")

    @pytest.mark.parametrize("what", ["lute", "server:", "tool:x", ""])
    async def test_what_is_neither_a_server_nor_a_caller_cannot_be_turned_off(self, what: str) -> None:
        gate = house()
        with pytest.raises(ValueError, match="neither"):
            await gate.switches.disable(what)

    async def test_what_cannot_be_written_down_is_not_done(self) -> None:
        gate = house(audit=MemoryAudit(fails="switched"))
        with pytest.raises(AuditError):
            await gate.switches.disable("server:lute")
        assert await gate.switches.list() == ()

    async def test_what_the_store_does_not_take_is_taken_back_in_the_log(self) -> None:
        class Full(MemoryState):
            def put(self, kind: str, key: str, value: Any) -> None:
                raise StoreError(f"there is no room for {kind} {key}: {value}")

        gate = house(state=Full())
        with pytest.raises(StoreError):
            await gate.switches.disable("server:lute")
        said = [(record.what, record.to) for record in gate.log.records if isinstance(record, Switched)]
        assert said == [("server:lute", "disabled"), ("server:lute", "not kept")]


class Mute(MemoryState):
    """A store that breaks its contract: it has no revision."""

    def revision(self) -> Any:
        return None


async def test_a_store_without_a_revision_is_looked_at_all_the_same() -> None:
    state = Mute()
    state.put("disabled", "server:lute", {"at": 1.0, "by": "operator"})
    switch = KillSwitch(state, FakeClock())
    await switch.look()
    assert switch.off == {"server:lute"}
