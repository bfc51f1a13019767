"""Whatever fails on the way down, nothing is sent; whatever fails on the way up, nothing is handed out."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from luthier.clock import settle
from luthier.errors import (
    AuditError,
    ConnectError,
    ConnectionLostError,
    LuthierError,
    NotFoundError,
    ProtocolError,
    ResultWithheldError,
    SchemaError,
    StoreError,
    kind_of,
)
from luthier.events import CallEnded
from luthier.govern import (
    AuditKey,
    FileAudit,
    FileSegments,
    GateCall,
    Gateway,
    Guard,
    MemoryAudit,
    Next,
    Outcome,
    Verdict,
    read_audit,
)
from luthier.govern.arguments import Arguments
from luthier.govern.guard import Ledger, fold
from luthier.govern.recorder import AuditRecorder
from luthier.taint import TRUSTED
from luthier.tools import Refusal, Reply, Tool, ToolResult
from luthier.tools.builtin import Builtin, LocalTools
from luthier.uri import ToolUri
from luthier.wire import MemoryServer
from luthier.wire.behaviour import Fail, Hang
from tests.govern.kit import Gate, intended

if TYPE_CHECKING:
    from pathlib import Path

    from luthier.context import CallContext
    from luthier.govern.guard import Up

FAULTS: list[BaseException] = [
    RuntimeError("bug"),
    KeyError("missing row"),
    TimeoutError(),
    RecursionError(),
    MemoryError(),
    OSError(28, "No space left on device"),
    UnicodeDecodeError("utf-8", b"\xff", 0, 1, "corrupt"),
    SchemaError("odd"),
    AssertionError(),
]
names = [type(fault).__name__ for fault in FAULTS]


def lute(**tools: Any) -> MemoryServer:
    return MemoryServer("lute", {"play": "a note", **tools})


def failing(fault: BaseException) -> Guard:
    async def guard(call: GateCall, inner: Next) -> Up:
        raise fault

    return guard


def failing_after(fault: BaseException) -> Guard:
    async def guard(call: GateCall, inner: Next) -> Up:
        await inner(call)
        raise fault

    return guard


@pytest.mark.parametrize("fault", FAULTS, ids=names)
async def test_a_guard_that_fails_has_said_no_and_that_is_written_down(fault: BaseException) -> None:
    gate = Gate(lute(), guards=[failing(fault)])
    got = await gate.through("mcp://lute/play", {"a": 1})
    assert isinstance(got, Refusal)
    assert (got.kind, got.rule) == ("denied", f"guard failed: {type(fault).__name__}")
    assert gate.servers["lute"].calls == []
    assert gate.kinds == ["verdict refused"]
    assert gate.notebook.of(CallEnded)[0].outcome == "refused"


async def test_what_is_wrong_with_the_store_is_told_to_the_operator_only() -> None:
    gate = Gate(lute(), guards=[failing(StoreError("The store is full.", hint="Make room."))])
    got = await gate.through("mcp://lute/play")
    assert isinstance(got, Refusal)
    assert got.hint == "The store is full. Make room."
    got = await gate.through("mcp://lute/play", principals=("operator", "agent"))
    assert isinstance(got, Refusal)
    assert "full" not in f"{got.reason} {got.hint}"


@pytest.mark.parametrize("fault", FAULTS, ids=names)
async def test_a_guard_that_fails_on_the_result_keeps_it_back(fault: BaseException) -> None:
    gate = Gate(lute(), guards=[failing_after(fault)])
    with pytest.raises(ResultWithheldError) as caught:
        await gate.through("mcp://lute/play")
    assert kind_of(caught.value) == "unknown"
    assert gate.kinds == ["verdict allowed", "intent", "outcome ok"]
    assert len(gate.servers["lute"].calls) == 1


@pytest.mark.parametrize("fault", [ConnectError("down"), ProtocolError("odd"), NotFoundError("key", "x")])
async def test_a_fault_of_the_wire_in_a_guard_is_raised_and_nothing_is_sent(fault: LuthierError) -> None:
    gate = Gate(lute(), guards=[failing(fault)])
    with pytest.raises(type(fault)):
        await gate.through("mcp://lute/play")
    assert gate.servers["lute"].calls == []
    assert gate.kinds == ["verdict failed"]


@pytest.mark.parametrize("kind", ["denied", "approval"])
async def test_a_guards_refusal_is_the_answer_and_the_inner_guards_are_not_asked(kind: str) -> None:
    async def refuse(call: GateCall, inner: Next) -> Up:
        return call.refuse(kind, "not today", rule="holiday", place="policies.yaml:3", hint="Wait.")

    gate = Gate(lute(), guards=[refuse, failing(RuntimeError("not reached"))])
    got = await gate.through("mcp://lute/play")
    assert isinstance(got, Refusal)
    assert (got.kind, got.reason, got.call_id) == (kind, "not today", "c1")
    verdict = gate.log.records[0]
    assert isinstance(verdict, Verdict)
    assert (verdict.reason, verdict.rule, verdict.place) == (kind, "holiday", "policies.yaml:3")


async def test_guards_are_asked_from_the_outside_in_and_see_the_call_as_it_will_be_sent() -> None:
    order: list[str] = []

    def named(name: str) -> Guard:
        async def guard(call: GateCall, inner: Next) -> Up:
            assert call.tool is not None
            order.append(f"{name} down {call.call.arguments.value}")
            up = await inner(call)
            order.append(f"{name} up {type(up).__name__}")
            return up

        return guard

    gate = Gate(lute(), guards=[named("one"), named("two")])
    await gate.through("mcp://lute/play", {"a": 1})
    assert order == ["one down {'a': 1}", "two down {'a': 1}", "two up ToolResult", "one up ToolResult"]


async def test_a_guard_that_hangs_is_ended_with_its_caller_and_nothing_is_sent() -> None:
    async def hang(call: GateCall, inner: Next) -> Up:
        await asyncio.Event().wait()
        return await inner(call)

    gate = Gate(lute(), guards=[hang])
    waiting = gate.start(gate.gateway.call(intended("mcp://lute/play")))
    await settle(100)
    waiting.cancel()
    await settle()
    assert waiting.cancelled()
    assert gate.servers["lute"].calls == []
    assert gate.kinds == ["verdict failed"]


# The audit log


@pytest.mark.parametrize("record", ["verdict", "intent"])
async def test_a_call_that_cannot_be_written_down_beforehand_is_not_made_and_neither_is_any_later(
    record: str,
) -> None:
    log = MemoryAudit(fails=record)
    gate = Gate(lute(), audit=log)
    for _ in range(2):
        with pytest.raises(AuditError) as caught:
            await gate.through("mcp://lute/play")
        assert kind_of(caught.value) == "denied"
    assert gate.servers["lute"].calls == []
    assert gate.notebook.of(CallEnded)[0].outcome == "denied"


async def test_an_outcome_that_cannot_be_written_is_withheld_as_unknown_and_later_calls_are_refused() -> None:
    gate = Gate(lute(), audit=MemoryAudit(fails="outcome"))
    with pytest.raises(ResultWithheldError) as caught:
        await gate.through("mcp://lute/play")
    assert kind_of(caught.value) == "unknown"
    assert "a note" not in str(caught.value)
    with pytest.raises(AuditError):
        await gate.through("mcp://lute/play")
    assert len(gate.servers["lute"].calls) == 1


async def test_a_fault_whose_outcome_cannot_be_written_is_unknown_too() -> None:
    gate = Gate(lute(odd=Fail("broken")), audit=MemoryAudit(fails="outcome"))
    with pytest.raises(ResultWithheldError) as caught:
        await gate.through("mcp://lute/odd")
    assert kind_of(caught.value) == "unknown"


async def test_a_cancellation_is_not_swallowed_by_a_log_that_fails() -> None:
    gate = Gate(lute(slow=Hang()), audit=MemoryAudit(fails="outcome"))
    waiting = gate.start(gate.gateway.call(intended("mcp://lute/slow")))
    await settle(100)
    waiting.cancel()
    await settle()
    assert waiting.cancelled()


async def test_a_refusal_that_cannot_be_written_stops_the_gate() -> None:
    gate = Gate(lute(), audit=MemoryAudit(fails="verdict"), lute={"disabled": True})
    with pytest.raises(AuditError):
        await gate.through("mcp://lute/play")


async def test_a_log_whose_file_is_gone_underneath_stops_calls_in_the_middle(tmp_path: Path) -> None:
    key = AuditKey.fresh()
    log = FileAudit(tmp_path, key=lambda: key)
    gate = Gate(lute(), audit=log)
    assert isinstance(await gate.through("mcp://lute/play"), ToolResult)
    log.close()
    with pytest.raises(AuditError):
        await gate.through("mcp://lute/play")
    assert len(gate.servers["lute"].calls) == 1
    trail = read_audit(FileSegments(tmp_path), key)
    assert (trail.faults, trail.torn) == ((), ())
    assert isinstance(trail.records[-1], Outcome)


# What lies behind the intent


async def test_a_fault_of_our_own_while_carrying_is_unknown_and_written_down() -> None:
    async def act(arguments: Any, context: CallContext) -> Reply:
        raise ZeroDivisionError

    uri = ToolUri.builtin("odd")
    gate = Gate(local=LocalTools(builtin=[Builtin(Tool(uri=uri, input_schema={}), act)]))
    with pytest.raises(ConnectionLostError) as caught:
        await gate.through("builtin://odd")
    assert kind_of(caught.value) == "unknown"
    assert gate.kinds == ["verdict allowed", "intent", "outcome unknown"]


async def test_a_refusal_from_behind_the_intent_is_an_outcome() -> None:
    log = MemoryAudit()
    recorder = AuditRecorder(log, Gate().clock)

    async def refuse(call: GateCall) -> Up:
        return call.refuse("denied", "too late", rule="hours", place="here", hint="Come earlier.")

    chain = fold([recorder.verdict, recorder.carried], refuse)
    got = await chain(GateCall(intended("mcp://lute/play"), TRUSTED, Ledger()))
    assert isinstance(got, Refusal)
    assert [type(record).__name__ for record in log.records] == ["Verdict", "Intent", "Outcome"]
    assert isinstance(log.records[-1], Outcome)
    assert log.records[-1].outcome == "refused"


async def test_nothing_is_carried_before_its_tool_is_found() -> None:
    gate = Gate(lute())

    async def forget(call: GateCall, inner: Next) -> Up:
        return await inner(msgspec.structs.replace(call, tool=None))

    forgetful = Gateway(manager=gate.manager, registry=gate.registry, audit=gate.log, guards=[forget])
    with pytest.raises(ConnectionLostError, match="looked up"):
        await gate.settled(forgetful.call(intended("mcp://lute/play")))
    assert gate.servers["lute"].calls == []


async def test_arguments_are_not_judged_before_their_tool_is_found() -> None:
    from luthier.connect.schemas import Schemas

    async def never(call: GateCall) -> Up:
        raise AssertionError

    chain = fold([Arguments(Schemas()).guard], never)
    with pytest.raises(RuntimeError, match="looked up"):
        await chain(GateCall(intended("mcp://lute/play"), TRUSTED, Ledger()))


# Each thing that the gate leans on, failing in each way


class Faulty:
    """Does what `real` does, but for one method, which raises."""

    def __init__(self, real: Any, method: str, fault: BaseException) -> None:
        self._real = real
        self._method = method
        self._fault = fault

    def __getattr__(self, name: str) -> Any:
        if name == self._method:
            raise self._fault
        return getattr(self._real, name)


@pytest.mark.parametrize("fault", FAULTS, ids=names)
@pytest.mark.parametrize(
    ("part", "method"),
    [
        ("registry", "find"),
        ("manager", "known"),
        ("manager", "manifest"),
        ("local", "get"),
        ("audit", "write"),
    ],
)
async def test_whatever_the_gate_leans_on_fails_nothing_is_sent(
    part: str, method: str, fault: BaseException
) -> None:
    sent: list[Any] = []

    async def act(arguments: Any, context: CallContext) -> Reply:
        sent.append(arguments)
        return Reply()

    uri = ToolUri.builtin("play")
    real = Gate(lute(), local=LocalTools(builtin=[Builtin(Tool(uri=uri, input_schema={}), act)]))
    parts: dict[str, Any] = {
        "registry": real.registry,
        "manager": real.manager,
        "local": LocalTools(builtin=[Builtin(Tool(uri=uri, input_schema={}), act)]),
        "audit": real.log,
    }
    parts[part] = Faulty(parts[part], method, fault)
    gateway = Gateway(**parts, policy=real.policy, clock=real.clock)
    asking = gateway.call(intended("builtin://play" if part == "local" else "mcp://lute/play"))
    if part == "audit":
        with pytest.raises(AuditError):
            await real.settled(asking)
    else:
        got = await real.settled(asking)
        assert isinstance(got, Refusal)
        assert (got.kind, got.rule) == ("denied", f"guard failed: {type(fault).__name__}")
        assert real.kinds == ["verdict refused"]
    assert sent == real.servers["lute"].calls == []
