"""Approvals: a call waits for a person, is made once if they say yes, and else never."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from luthier.clock import settle
from luthier.connect import MemoryState
from luthier.errors import NotFoundError, Refused, StoreError
from luthier.govern import (
    Approvals,
    Asked,
    Decided,
    Decision,
    GateCall,
    Gateway,
    MemoryAudit,
    Request,
    Verdict,
)
from luthier.govern.guard import Ledger
from luthier.govern.requests import LONGEST, MOST, WITHHELD, binding_of, leaves_of, read_request, request_of
from luthier.spec import Policies, PolicyRule
from luthier.taint import SECRET, TRUSTED, UNTRUSTED, Confidentiality, Integrity, Label, Labelled, Source
from luthier.tools import Refusal, Tool, ToolResult
from luthier.wire import MemoryServer
from tests.govern.kit import Gate, intended

if TYPE_CHECKING:
    from collections.abc import Callable

    from luthier.govern.guard import Up

ASK = Policies(
    rules=(PolicyRule(name="ask first", then="ask", reason="It costs money.", place="p.yaml:3:5"),)
)
WEB = Label(Integrity.untrusted, Confidentiality.private, frozenset({Source("web", "fetch", "c0")}))


def mail() -> MemoryServer:
    return MemoryServer("mail", {"send": "sent", "read": "a letter"})


def house(**rest: Any) -> Gate:
    return Gate(mail(), policies=ASK, **{"asks": True, **rest})


def refused(up: Up) -> Refusal:
    assert isinstance(up, Refusal), up
    return up


async def waiting(gate: Gate) -> Request:
    """The one request that waits, as soon as there is one."""
    async with asyncio.timeout(30):
        while not (found := await gate.approvals.list()):
            await settle()
    (request,) = found
    return request


async def asked_and_approved(gate: Gate, arguments: Any = None, **rest: Any) -> Request:
    """A call outside of a run was refused, and its request approved."""
    got = refused(
        await gate.asked("mcp://mail/send", arguments or {"to": "a"}, **{"run": "", "step": "", **rest})
    )
    assert got.kind == "approval"
    return await gate.approvals.approve((await waiting(gate)).id)


class TestOneCall:
    async def test_a_call_that_nobody_can_decide_about_is_refused_and_says_what_to_do(self) -> None:
        gate = house()
        got = refused(await gate.asked("mcp://mail/send", {"to": "a"}))
        assert (got.kind, got.rule, got.place) == ("approval", "ask first", "p.yaml:3:5")
        assert "It costs money." in got.reason
        assert "approval_timeout" in got.hint
        assert gate.servers["mail"].calls == []
        assert await gate.approvals.list() == (), "no other run can use its approval"

    async def test_outside_of_a_run_the_request_stays_and_the_next_such_call_uses_it(self) -> None:
        gate = house()
        got = refused(await gate.asked("mcp://mail/send", {"to": "a"}, run="", step=""))
        request = await waiting(gate)
        assert f"luthier approvals approve {request.id}" in got.hint
        again = refused(await gate.asked("mcp://mail/send", {"to": "a"}, run="", step="", id="c2"))
        assert request.id in again.hint, "the same call is not asked for twice"
        await gate.approvals.approve(request.id)
        assert isinstance(
            await gate.asked("mcp://mail/send", {"to": "a"}, run="", step="", id="c3"), ToolResult
        )
        assert await gate.approvals.list() == ()

    async def test_a_waiting_call_goes_on_when_it_is_approved(self) -> None:
        gate = house(approval_timeout=60)
        task = gate.start(gate.asked("mcp://mail/send", {"to": "a"}))
        request = await waiting(gate)
        await gate.approvals.approve(request.id, via="cli")
        assert isinstance(await task, ToolResult)
        asked, decided, verdict = gate.log.records[:3]
        assert isinstance(asked, Asked)
        assert isinstance(decided, Decided)
        assert isinstance(verdict, Verdict)
        assert (asked.approval, asked.request, asked.rule) == (request.id, request.binding, "ask first")
        assert (decided.decision, decided.by, decided.via) == ("approved", "operator", "cli")
        assert (verdict.verdict, verdict.approval, verdict.approver) == (
            "allowed",
            request.id,
            "operator (cli)",
        )

    async def test_who_calls_is_told_that_it_passes_only_when_nothing_keeps_it_back_any_more(self) -> None:
        gate, told = house(), [""]

        async def passed() -> None:
            assert gate.servers["mail"].calls == [], "nothing has been sent"
            assert "intent" not in gate.kinds
            told.append("passed")

        call = intended("mcp://mail/send", {"to": "a"}, run="", step="")
        call = msgspec.structs.replace(call, passed=passed)
        assert refused(await gate.gateway.call(call)).kind == "approval"
        assert told == [""], "a person is asked before"
        await gate.approvals.approve((await waiting(gate)).id)
        assert isinstance(await gate.gateway.call(call), ToolResult)
        assert told == ["", "passed"]
        assert await gate.approvals.list() == ()

    async def test_a_waiting_call_ends_when_it_is_denied(self) -> None:
        gate = house(approval_timeout=60)
        task = gate.start(gate.asked("mcp://mail/send", {"to": "a"}))
        await gate.approvals.deny((await waiting(gate)).id)
        got = refused(await task)
        assert (got.kind, got.rule) == ("denied", "ask first")
        assert "operator said no" in got.reason
        assert gate.servers["mail"].calls == []
        assert await gate.approvals.list() == ()

    async def test_another_process_decides_and_is_heard_of_within_a_second(self) -> None:
        gate = house(approval_timeout=60)
        other = Approvals(gate.state, MemoryAudit(), gate.clock)
        task = gate.start(gate.asked("mcp://mail/send", {"to": "a"}))
        await other.approve((await waiting(gate)).id)
        await gate.in_pauses(task.done)
        assert isinstance(task.result(), ToolResult)
        assert gate.clock.monotonic() <= 1.0

    async def test_a_call_waits_as_long_as_it_may_and_no_longer(self) -> None:
        gate = house(approval_timeout=2.0)
        task = gate.start(gate.asked("mcp://mail/send", {"to": "a"}))
        await gate.in_pauses(task.done)
        assert refused(task.result()).kind == "approval"
        assert await gate.approvals.list() == ()

    async def test_only_that_call_waits(self) -> None:
        rule = PolicyRule(name="ask", then="ask", tool=("mcp://mail/send",))
        gate = Gate(mail(), policies=Policies(rules=(rule,)), asks=True, approval_timeout=60)
        task = gate.start(gate.asked("mcp://mail/send", {"to": "a"}))
        request = await waiting(gate)
        assert isinstance(await gate.asked("mcp://mail/read", id="c2"), ToolResult)
        await gate.approvals.deny(request.id)
        assert isinstance(await task, Refusal)

    async def test_a_caller_that_goes_takes_its_request_along(self) -> None:
        gate = house(approval_timeout=60)
        task = gate.start(gate.asked("mcp://mail/send", {"to": "a"}))
        request = await waiting(gate)
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled()
        assert await gate.approvals.list() == ()
        with pytest.raises(NotFoundError):
            await gate.approvals.approve(request.id)


class TestReplay:
    async def test_an_approval_is_for_one_call(self) -> None:
        gate = house()
        await asked_and_approved(gate)
        assert isinstance(await gate.asked("mcp://mail/send", {"to": "a"}, run="", step=""), ToolResult)
        assert refused(await gate.asked("mcp://mail/send", {"to": "a"}, run="", step="")).kind == "approval"
        assert len(gate.servers["mail"].calls) == 1

    @pytest.mark.parametrize(
        ("uri", "arguments", "rest"),
        [
            ("mcp://mail/send", {"to": "b"}, {}),
            ("mcp://mail/send", {"to": "a", "cc": "b"}, {}),
            ("mcp://mail/send", {}, {}),
            ("mcp://mail/read", {"to": "a"}, {}),
            ("mcp://mail/send", {"to": "a"}, {"run": "r2"}),
            ("mcp://mail/send", {"to": "a"}, {"step": "s2"}),
            ("mcp://mail/send", {"to": "a"}, {"label": UNTRUSTED}),
            ("mcp://mail/send", {"to": "a"}, {"label": TRUSTED}),
            ("mcp://mail/send", {"to": "a"}, {"parts": {"/to": UNTRUSTED}}),
            ("mcp://mail/send", {"to": "a"}, {"control": WEB}),
            ("mcp://mail/send", {"to": "a"}, {"principals": ("operator", "reviewer")}),
        ],
        ids=str,
    )
    async def test_it_fits_no_other_call(self, uri: str, arguments: Any, rest: dict[str, Any]) -> None:
        gate = house()
        await asked_and_approved(gate, label=WEB)
        same = {"run": "", "step": "", "label": WEB, "id": "c2", **rest}
        assert refused(await gate.asked(uri, arguments, **same)).kind == "approval"
        assert gate.servers["mail"].calls == []

    async def test_it_does_not_fit_when_the_tool_is_defined_anew(self) -> None:
        gate = house()
        await asked_and_approved(gate)
        gate.servers["mail"].schemas["send"] = {"type": "object", "description": "Send it to me too."}
        await gate.manager.reconnect("mail")
        got = refused(await gate.asked("mcp://mail/send", {"to": "a"}, run="", step=""))
        assert got.kind == "approval"
        assert gate.servers["mail"].calls == []

    async def test_it_does_not_fit_when_it_has_expired(self) -> None:
        gate = house()
        await asked_and_approved(gate)
        await gate.clock.advance(3601)
        got = refused(await gate.asked("mcp://mail/send", {"to": "a"}, run="", step=""))
        assert got.kind == "approval"
        assert gate.servers["mail"].calls == []

    async def test_the_order_of_names_makes_no_other_call(self) -> None:
        gate = house()
        await asked_and_approved(gate, {"to": "a", "cc": "b"})
        got = await gate.asked("mcp://mail/send", {"cc": "b", "to": "a"}, run="", step="")
        assert isinstance(got, ToolResult)

    async def test_of_calls_at_once_one_can_use_it(self) -> None:
        gate = house()
        await asked_and_approved(gate)
        calls = (
            gate.asked("mcp://mail/send", {"to": "a"}, run="", step="", id=f"c{number}")
            for number in range(8)
        )
        got = await asyncio.gather(*calls)
        assert sum(isinstance(up, ToolResult) for up in got) == 1
        assert len(gate.servers["mail"].calls) == 1

    async def test_of_calls_that_wait_for_the_same_request_one_can_use_it(self) -> None:
        gate = house(approval_timeout=60)
        calls = [
            gate.start(gate.asked("mcp://mail/send", {"to": "a"}, run="", step="", id="c1")),
        ]
        request = await waiting(gate)
        calls.append(gate.start(gate.asked("mcp://mail/send", {"to": "a"}, run="", step="", id="c2")))
        await settle()
        await gate.approvals.approve(request.id)
        await gate.in_pauses(lambda: all(task.done() for task in calls))
        assert len(gate.servers["mail"].calls) <= 1

    async def test_it_expires_while_it_is_used(self) -> None:
        gate = house(approval_timeout=7200)
        task = gate.start(gate.asked("mcp://mail/send", {"to": "a"}))
        request = await waiting(gate)
        row = gate.state.get("approvals", request.id)
        assert row is not None
        gate.state.put("approvals", request.id, {**row, "expires": gate.clock.now() + 0.5})
        await gate.in_pauses(task.done)
        assert refused(task.result()).kind == "approval"


class TestWhoDecides:
    @pytest.mark.parametrize("who", ["reviewer", "ensemble:x", "client:7", "", "Operator"])
    @pytest.mark.parametrize("word", ["approve", "deny"])
    async def test_nobody_but_the_operator(self, who: str, word: str) -> None:
        gate = house()
        await gate.asked("mcp://mail/send", {"to": "a"}, run="", step="")
        request = await waiting(gate)
        with pytest.raises(Refused, match="may not decide"):
            await getattr(gate.approvals, word)(request.id, by=who)
        assert (await waiting(gate)).state == "waiting"
        assert not any(isinstance(record, Decided) for record in gate.log.records)

    async def test_what_is_decided_is_decided(self) -> None:
        gate = house()
        request = await asked_and_approved(gate)
        with pytest.raises(Refused, match="decided already"):
            await gate.approvals.deny(request.id)

    async def test_a_decision_that_came_between_is_not_overwritten(self) -> None:
        class Slow(MemoryState):
            def swap(self, kind: str, key: str, expected: Any, value: Any) -> bool:
                if value is not None and expected is not None:
                    super().swap(kind, key, expected, {**value, "state": "denied"})
                return super().swap(kind, key, expected, value)

        gate = house(state=Slow())
        await gate.asked("mcp://mail/send", {"to": "a"}, run="", step="")
        with pytest.raises(Refused, match="decided already"):
            await gate.approvals.approve((await waiting(gate)).id)
        decided = [record.decision for record in gate.log.records if isinstance(record, Decided)]
        assert decided[-2:] == ["approved", "not kept"]

    async def test_a_decision_that_cannot_be_written_down_does_not_count(self) -> None:
        gate = house(audit=MemoryAudit(fails="decided"))
        await gate.asked("mcp://mail/send", {"to": "a"}, run="", step="")
        request = await waiting(gate)
        with pytest.raises(Exception, match="audit log"):
            await gate.approvals.approve(request.id)
        assert (await waiting(gate)).state == "waiting"


class TestCallbacks:
    async def through(self, approve: Callable[[Request], Any], **rest: Any) -> tuple[Gate, Up]:
        gate = house(approve=approve, **rest)
        return gate, await gate.asked("mcp://mail/send", {"to": "a"}, parts={"/to": WEB})

    async def test_it_sees_the_call_and_says_yes(self) -> None:
        seen: list[Request] = []

        def approve(request: Request) -> bool:
            seen.append(request)
            return True

        gate, got = await self.through(approve)
        assert isinstance(got, ToolResult)
        (request,) = seen
        assert (request.uri, request.reason, request.run, request.step) == (
            "mcp://mail/send",
            "It costs money.",
            "r1",
            "s1",
        )
        (argument,) = request.arguments
        assert (argument.at, argument.shown) == ("/to", '"a"')
        assert argument.label is not None
        assert argument.label.sources == ("web/fetch#c0",)
        decided = next(record for record in gate.log.records if isinstance(record, Decided))
        assert decided.via == "callback"

    async def test_it_may_be_a_coroutine_or_promise_one(self) -> None:
        async def approve(request: Request) -> bool:
            return request.uri == "mcp://mail/send"

        _, got = first = await self.through(approve)
        assert isinstance(got, ToolResult)

        def promise(request: Request) -> Any:
            return approve(request)

        assert isinstance((await self.through(promise))[1], ToolResult)
        assert first, "a gate is held until its test ends"

    @pytest.mark.parametrize("answer", [False, None, 1, "yes", "true", [True], {"approved": True}])
    async def test_what_is_not_true_is_a_no(self, answer: Any) -> None:
        gate, got = await self.through(lambda _: answer)
        assert refused(got).kind == "denied"
        assert gate.servers["mail"].calls == []

    @pytest.mark.parametrize(
        "fault", [ValueError("x"), KeyError("x"), TimeoutError(), RecursionError(), SystemExit(3)]
    )
    async def test_one_that_fails_has_said_no(self, fault: BaseException) -> None:
        def approve(request: Request) -> bool:
            raise fault

        gate, got = await self.through(approve)
        assert refused(got).kind == "denied"
        decided = next(record for record in gate.log.records if isinstance(record, Decided))
        assert decided.via == f"callback failed: {type(fault).__name__}"

    async def test_one_that_hangs_is_not_waited_for(self) -> None:
        entered, leave = threading.Event(), threading.Event()

        def approve(request: Request) -> bool:
            entered.set()
            leave.wait(30)
            return True

        gate = house(approve=approve, approval_timeout=2.0)
        task = gate.start(gate.asked("mcp://mail/send", {"to": "a"}))
        async with asyncio.timeout(30):
            while not entered.is_set():
                await settle()
        await gate.in_pauses(task.done)
        leave.set()
        assert refused(task.result()).kind == "approval"
        assert gate.servers["mail"].calls == []

    async def test_who_is_faster_decides(self) -> None:
        never = asyncio.Event()

        async def approve(request: Request) -> bool:
            await never.wait()
            return False

        gate = house(approve=approve)
        task = gate.start(gate.asked("mcp://mail/send", {"to": "a"}))
        await gate.approvals.approve((await waiting(gate)).id, via="cli")
        assert isinstance(await task, ToolResult)


class FailingState(MemoryState):
    """A store of which one method does something else for approvals."""

    def __init__(self, method: str, does: Callable[[], Any]) -> None:
        super().__init__()
        self._method = method
        self._does = does

    def __getattribute__(self, name: str) -> Any:
        real = super().__getattribute__(name)
        if name.startswith("_") or name != self._method:
            return real
        does = self._does
        return lambda kind, *rest: does() if kind == "approvals" else real(kind, *rest)


def fail() -> Any:
    raise StoreError("The store cannot be read.")


class TestTheStore:
    @pytest.mark.parametrize("method", ["list", "get", "swap"])
    async def test_a_store_that_fails_is_a_no_that_is_written_down(self, method: str) -> None:
        gate = house(state=FailingState(method, fail), approval_timeout=60)
        got = refused(await gate.asked("mcp://mail/send", {"to": "a"}, run="" if method == "list" else "r1"))
        assert (got.kind, got.rule) == ("denied", "guard failed: StoreError")
        assert gate.servers["mail"].calls == []
        assert isinstance(gate.log.records[-1], Verdict)

    @pytest.mark.parametrize("row", [{}, {"id": 5}, "text", 7, [], {"state": "approved"}])
    async def test_a_row_that_is_no_request_is_a_no(self, row: Any) -> None:
        gate = house(state=FailingState("get", lambda: row), approval_timeout=60)
        got = refused(await gate.asked("mcp://mail/send", {"to": "a"}))
        assert (got.kind, got.rule) == ("denied", "guard failed: ValueError")
        assert gate.servers["mail"].calls == []

    async def test_a_row_that_is_gone_is_a_no(self) -> None:
        gate = house(state=FailingState("get", lambda: None), approval_timeout=60)
        assert refused(await gate.asked("mcp://mail/send", {"to": "a"})).kind == "approval"

    async def test_a_row_that_is_bound_to_something_else_is_a_no(self) -> None:
        gate = house(approval_timeout=60)
        task = gate.start(gate.asked("mcp://mail/send", {"to": "a"}))
        request = await waiting(gate)
        row = gate.state.get("approvals", request.id)
        assert row is not None
        gate.state.put("approvals", request.id, {**row, "state": "approved", "binding": "0" * 64})
        await gate.in_pauses(task.done)
        assert refused(task.result()).kind == "approval"
        assert gate.servers["mail"].calls == []

    async def test_rows_that_cannot_be_read_are_in_nobodys_way(self) -> None:
        gate = house()
        gate.state.put("approvals", "odd", {"state": "approved"})
        await asked_and_approved(gate)
        assert isinstance(await gate.asked("mcp://mail/send", {"to": "a"}, run="", step=""), ToolResult)

    async def test_a_store_that_hangs_is_a_no(self) -> None:
        leave = threading.Event()
        gate = house(state=FailingState("swap", lambda: leave.wait(30)))
        task = gate.start(gate.asked("mcp://mail/send", {"to": "a"}))
        async with asyncio.timeout(30):
            while not gate.clock.waiting:
                await settle()
            while not task.done():
                await gate.clock.advance(5.0)
        leave.set()
        assert refused(task.result()).rule == "guard failed: StoreError"

    async def test_an_id_that_is_taken_is_a_fault(self) -> None:
        gate = house()
        await gate.asked("mcp://mail/send", {"to": "a"}, run="", step="")
        with pytest.raises(RuntimeError, match="taken"):
            await gate.approvals.put(await waiting(gate))


class TestWhatIsShown:
    def request(self, arguments: Any, **rest: Any) -> Request:
        call = intended("mcp://mail/send", arguments, **rest)
        gated = GateCall(call, TRUSTED, Ledger(), Tool(uri=call.uri, input_schema={}))
        return request_of(gated, Decision("ask"), id="1", now=0, expires=1)

    def test_each_leaf_has_its_own_origin(self) -> None:
        request = self.request(
            {"to": ["a", "b"], "opts": {}, "n": 1, "a/b": None}, parts={"/to/1": WEB, "/n": UNTRUSTED}
        )
        shown = {argument.at: (argument.shown, argument.label is None) for argument in request.arguments}
        assert shown == {
            "/to/0": ('"a"', True),
            "/to/1": ('"b"', False),
            "/opts": ("{}", True),
            "/n": ("1", False),
            "/a~1b": ("null", True),
        }

    def test_what_steers_a_terminal_is_escaped_and_secrets_are_withheld(self) -> None:
        request = self.request({"a": "x\x1b[2J\u202e", "key": "hunter2"}, parts={"/key": SECRET})
        a, key = request.arguments
        assert "\x1b" not in a.shown
        assert "\u202e" not in a.shown
        assert key.shown == WITHHELD

    def test_known_secrets_are_taken_out(self) -> None:
        call = intended("mcp://mail/send", {"a": "my hunter2!"})
        gated = GateCall(call, TRUSTED, Ledger(), Tool(uri=call.uri, input_schema={}))
        request = request_of(
            gated,
            Decision("ask"),
            id="1",
            now=0,
            expires=1,
            redact=lambda text: text.replace("hunter2", "[redacted]"),
        )
        assert request.arguments[0].shown == '"my [redacted]!"'

    def test_what_is_cut_off_is_counted(self) -> None:
        request = self.request({"long": "x" * (LONGEST + 8), **{f"n{n}": n for n in range(MOST)}})
        assert len(request.arguments) == MOST
        assert request.more == 1
        assert request.arguments[0].shown.endswith("(and 10 more characters)")

    def test_no_arguments_are_no_leaves(self) -> None:
        assert list(leaves_of(Labelled({}))) == []

    def test_a_request_survives_being_stored(self) -> None:
        import msgspec

        request = self.request({"a": [1]}, parts={"/a/0": WEB}, control=WEB)
        assert read_request(msgspec.to_builtins(request)) == request


def test_nothing_is_bound_before_its_tool_is_found() -> None:
    with pytest.raises(RuntimeError, match="looked up"):
        binding_of(GateCall(intended("mcp://mail/send"), TRUSTED, Ledger()))


async def test_a_gate_without_approvals_refuses_what_must_be_asked_for() -> None:
    gate = house()
    bare = Gateway(manager=gate.manager, registry=gate.registry, audit=gate.log, policy=gate.policy)
    got = await gate.settled(bare.call(intended("mcp://mail/send", {"to": "a"})))
    assert refused(got).kind == "approval"
