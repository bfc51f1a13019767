"""Policies: which rules fit a call, which of them decides, and that whatever fails says no."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any, cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from luthier.clock import FakeClock, settle
from luthier.connect import ServerRegistry
from luthier.context import CallContext
from luthier.errors import NotFoundError, Refused
from luthier.govern import Decision, GateCall, Policy, PolicyCall, Verdict
from luthier.govern.guard import Ledger
from luthier.govern.hints import believed
from luthier.govern.labels import known_label
from luthier.govern.policy import STRICTNESS
from luthier.spec import Policies, PolicyRule, ServerEntry, read_project
from luthier.taint import SECRET, TRUSTED, UNTRUSTED, Confidentiality, Integrity, Label, Source
from luthier.tools import Refusal, Tool, ToolResult
from luthier.uri import ToolUri
from luthier.wire import MemoryServer
from tests.govern.kit import Gate, intended

if TYPE_CHECKING:
    from luthier.govern.guard import Up
    from luthier.tools import ToolCall

WEB = Label(Integrity.untrusted, Confidentiality.private, frozenset({Source("web", "fetch", "c0")}))
SEND = ToolUri.mcp("mail", "send")
REGISTRY = ServerRegistry([ServerEntry(id="mail", command="python")])
REVIEWER = ("operator", "ensemble:x", "reviewer")


def mail(**tools: Any) -> MemoryServer:
    return MemoryServer("mail", {"send": "sent", "read": "a letter", **tools})


def policies(source: Any) -> Policies:
    return read_project({"policies": source}, root="/").policies


def rule(then: str, reason: str = "", **when: Any) -> dict[str, Any]:
    return {"name": f"{then} rule", "when": when, "then": then, "reason": reason}


def judge(
    source: Any,
    call: ToolCall,
    *,
    annotations: dict[str, Any] | None = None,
    entry: ServerEntry | None = None,
) -> str:
    """What policies say of a call."""
    registry = ServerRegistry([entry or ServerEntry(id="mail", command="python")])
    label = known_label(call)
    assert label is not None
    tool = Tool(uri=call.uri, input_schema={}, annotations=annotations or {})
    decision = Policy(policies(source), registry, clock=FakeClock()).decide(
        GateCall(call, label, Ledger(), tool)
    )
    return "allow" if decision is None else decision.then


def send(arguments: Any = None, **rest: Any) -> ToolCall:
    return intended("mcp://mail/send", arguments, **rest)


class TestWhichRulesFit:
    @pytest.mark.parametrize(
        ("when", "fits"),
        [
            ({}, True),
            ({"tool": "mcp://mail/*"}, True),
            ({"tool": ["mcp://git/*", "mcp://mail/send"]}, True),
            ({"tool": "mcp://git/*"}, False),
            ({"tool": "*"}, True),
            ({"agent": "reviewer"}, True),
            ({"agent": "ensemble:*"}, True),
            ({"agent": "operator"}, True),
            ({"agent": "writer"}, False),
            ({"tool": "mcp://mail/*", "agent": "writer"}, False),
        ],
    )
    def test_a_restricting_rule_fits_a_tool_and_any_caller_of_the_chain(
        self, when: dict[str, Any], *, fits: bool
    ) -> None:
        said = judge([rule("deny", **when)], send(principals=REVIEWER))
        assert said == ("deny" if fits else "allow")

    @pytest.mark.parametrize(
        ("agents", "principals", "allowed"),
        [
            (["reviewer"], ("operator", "reviewer"), True),
            (["reviewer"], REVIEWER, False),
            (["reviewer", "ensemble:x"], REVIEWER, True),
            (["operator"], ("operator",), True),
            (["operator"], ("operator", "reviewer"), False),
            (["reviewer"], ("operator", "reviewer", "helper"), False),
            (["reviewer"], (), False),
        ],
    )
    def test_an_allowing_rule_must_fit_every_caller_below_the_operator(
        self, agents: list[str], principals: tuple[str, ...], *, allowed: bool
    ) -> None:
        said = judge({"default": "deny", "rules": [rule("allow", agent=agents)]}, send(principals=principals))
        assert said == ("allow" if allowed else "deny")

    @pytest.mark.parametrize(
        ("argument", "arguments", "fits"),
        [
            ("/to", {"to": "a"}, True),
            ("/to", {"cc": "a"}, False),
            ("/to", {"to": None}, True),
            ("/to/*", {"to": []}, False),
            ("/to/*", {"to": ["a"]}, True),
            ("/to/0", {"to": ["a"]}, True),
            ("/to/1", {"to": ["a"]}, False),
            ("/*/name", {"to": {"name": 1}}, True),
            ("/*/name", {"to": 5}, False),
            ("/**/name", {"to": [{"x": {"name": 1}}]}, True),
            ("/**/name", {"name": 1}, True),
            ("/**/name", {"nom": 1}, False),
            ("/b?d*", {"body": 1}, True),
            ("/a~1b/c~0d", {"a/b": {"c~d": 1}}, True),
            ("/", {"": 1}, True),
            ("*", {}, True),
        ],
    )
    def test_a_place_is_a_pointer_with_wildcards(
        self, argument: str, arguments: dict[str, Any], *, fits: bool
    ) -> None:
        said = judge([rule("deny", argument=argument)], send(arguments))
        assert said == ("deny" if fits else "allow")

    def test_a_value_of_a_kind_that_is_not_known_may_hold_anything(self) -> None:
        said = judge([rule("deny", argument="/to/name")], send({"to": Source("a", "b")}))
        assert said == "deny"

    @pytest.mark.parametrize(
        ("argument", "parts", "control", "fits"),
        [
            ("/to", {"/to": UNTRUSTED}, TRUSTED, True),
            ("/to", {"/body": UNTRUSTED}, TRUSTED, False),
            ("/to", {}, UNTRUSTED, False),  # a branch is every argument's, which only `*` asks for
            ("/to", {"/to/0": UNTRUSTED}, TRUSTED, True),
            ("/to/1", {"/to/0": UNTRUSTED}, TRUSTED, False),
            ("*", {"/body": UNTRUSTED}, TRUSTED, True),
            ("*", {}, UNTRUSTED, True),
            ("*", {}, TRUSTED, False),
            (None, {"/body": UNTRUSTED}, TRUSTED, True),
            (None, {}, UNTRUSTED, True),
        ],
    )
    def test_a_label_is_looked_for_at_the_place(
        self, argument: str | None, parts: dict[str, Label], control: Label, *, fits: bool
    ) -> None:
        when: dict[str, Any] = {"label": {"integrity": "untrusted"}} | (
            {} if argument is None else {"argument": argument}
        )
        call = send({"to": ["a", "b"], "body": "c"}, parts=parts, control=control)
        assert judge([rule("deny", **when)], call) == ("deny" if fits else "allow")

    @pytest.mark.parametrize(
        ("test", "label", "fits"),
        [
            ({"integrity": "untrusted"}, UNTRUSTED, True),
            ({"integrity": "trusted"}, TRUSTED, True),
            ({"confidentiality": "private"}, SECRET, True),
            ({"confidentiality": "private"}, UNTRUSTED, True),
            ({"confidentiality": "secret"}, UNTRUSTED, False),
            ({"integrity": "untrusted", "confidentiality": "secret"}, SECRET, False),
            ({"sources": "web/*"}, WEB, True),
            ({"sources": "web/fetch"}, WEB, True),
            ({"sources": "git/*"}, WEB, False),
            ({"sources": "*"}, UNTRUSTED, False),
        ],
    )
    def test_a_label_fits_what_is_at_least_that_bad(
        self, test: dict[str, str], label: Label, *, fits: bool
    ) -> None:
        said = judge([rule("deny", label=test)], send({"a": 1}, label=label))
        assert said == ("deny" if fits else "allow")

    def test_two_halves_of_a_label_at_two_places_are_not_the_whole(self) -> None:
        call = send({"a": 1, "b": 2}, parts={"/a": UNTRUSTED, "/b": SECRET})
        both = {"integrity": "untrusted", "confidentiality": "secret"}
        assert judge([rule("deny", label=both)], call) == "allow"


LYING = {"readOnlyHint": True}


class TestAnnotations:
    @pytest.mark.parametrize(
        ("then", "wanted", "trust", "word", "fits"),
        [
            ("allow", True, "untrusted", (), False),  # a server that is not trusted only claims it
            ("allow", True, "trusted", (), True),
            ("allow", True, "untrusted", ("send",), True),  # the operator says so
            ("allow", False, "untrusted", (), True),
            ("allow", False, "trusted", (), False),
            ("deny", False, "untrusted", (), True),  # and so it does not escape
            ("deny", True, "untrusted", (), True),  # nor by claiming it
            ("deny", False, "trusted", (), False),
            ("deny", False, "untrusted", ("send",), False),
        ],
    )
    def test_hints_of_servers_only_lower_trust(
        self, then: str, *, wanted: bool, trust: str, word: tuple[str, ...], fits: bool
    ) -> None:
        source = {"command": "python", "trust": trust, "tools": {"read_only": list(word)}}
        entry = read_project({"mcpServers": {"mail": source}}, root="/").servers["mail"]
        default = "deny" if then == "allow" else "allow"
        rules = [rule(then, annotations={"readOnlyHint": wanted})]
        said = judge({"default": default, "rules": rules}, send(), annotations=LYING, entry=entry)
        assert said == (then if fits else default)

    @pytest.mark.parametrize("hints", [{}, {"readOnlyHint": "yes"}, {"readOnlyHint": 1}])
    def test_a_tool_that_says_nothing_is_the_worst(self, hints: dict[str, Any]) -> None:
        known = believed(Tool(uri=ToolUri.custom("x"), input_schema={}, annotations=hints), None)
        assert known == {
            "readOnlyHint": False,
            "destructiveHint": True,
            "idempotentHint": False,
            "openWorldHint": True,
        }

    def test_tools_of_this_process_are_believed(self) -> None:
        known = believed(Tool(uri=ToolUri.custom("x"), input_schema={}, annotations=LYING), None)
        assert known["readOnlyHint"]
        assert not known["destructiveHint"]

    def test_the_operators_word_of_what_may_be_done_twice_stands(self) -> None:
        entry = read_project(
            {"mcpServers": {"mail": {"command": "python", "tools": {"idempotent": ["send"]}}}}, root="/"
        ).servers["mail"]
        known = believed(Tool(uri=SEND, input_schema={}), entry)
        assert known["idempotentHint"]
        assert not known["readOnlyHint"]


class TestWhichRuleDecides:
    @given(
        st.sampled_from(["allow", "ask", "deny"]),
        st.lists(st.tuples(st.sampled_from(["allow", "ask", "deny"]), st.booleans(), st.booleans())),
        st.sampled_from([TRUSTED, UNTRUSTED]),
    )
    def test_it_is_the_strictest_that_fits_and_the_default_where_none_does(
        self, default: Any, drawn: list[tuple[Any, bool, bool]], label: Label
    ) -> None:
        rules = []
        fitting = []
        for then, other_tool, on_label in drawn:
            when: dict[str, Any] = {"tool": "mcp://git/*"} if other_tool else {}
            if on_label:
                when["label"] = {"integrity": "untrusted"}
            rules.append(rule(then, **when))
            if not other_tool and (label is UNTRUSTED or not on_label):
                fitting.append(then)
        said = judge({"default": default, "rules": rules}, send({"a": 1}, label=label))
        if fitting:
            strictest = max(fitting, key=lambda then: STRICTNESS[then])
            assert said == strictest
        else:
            assert said == default

    def test_of_equally_strict_rules_the_first_is_named(self) -> None:
        source = [rule("deny", "one"), rule("deny", "two")]
        policy = Policy(policies(source), REGISTRY, clock=FakeClock())
        denial = policy.denial(Tool(uri=SEND, input_schema={}), ("operator",))
        assert denial is not None
        assert "one" in denial.reason

    def test_a_plan_is_made_anew_for_a_tool_that_changed(self) -> None:
        policy = Policy(
            policies([rule("deny", annotations={"destructiveHint": False})]),
            REGISTRY,
            clock=FakeClock(),
        )
        uri = ToolUri.custom("x")
        harmless = Tool(uri=uri, input_schema={}, annotations={"destructiveHint": False})
        assert policy.denial(harmless, ("operator",)) is not None
        assert policy.denial(Tool(uri=uri, input_schema={}), ("operator",)) is None
        assert policy.denial(harmless, ("operator",)) is not None


class TestThroughTheGate:
    async def test_a_call_that_is_denied_is_not_made_and_says_by_which_rule(self) -> None:
        rules = policies([rule("deny", "It may carry instructions.", label={"integrity": "untrusted"})])
        gate = Gate(mail(), policies=rules)
        got = await gate.through("mcp://mail/send", {"body": "x"}, parts={"/body": UNTRUSTED})
        assert isinstance(got, Refusal)
        assert (got.kind, got.rule, got.place) == ("denied", "deny rule", "policies[0]")
        assert "It may carry instructions." in got.reason
        assert "'deny rule'" in got.hint
        assert gate.servers["mail"].calls == []
        verdict = gate.log.records[0]
        assert isinstance(verdict, Verdict)
        assert (verdict.verdict, verdict.rule, verdict.place) == ("refused", "deny rule", "policies[0]")
        assert isinstance(await gate.through("mcp://mail/send", {"body": "x"}), ToolResult)

    @pytest.mark.parametrize(
        ("source", "rule_", "place"),
        [
            (None, "policies.default", ""),
            ({"default": "allow"}, "policies.default", "policies.default"),
            ([rule("allow")], "allow rule", "policies[0]"),
            (
                {"default": "deny", "rules": [rule("allow", argument="/body")]},
                "allow rule",
                "policies.rules[0]",
            ),
            ([rule("deny", label={"integrity": "untrusted"}), rule("allow")], "allow rule", "policies[1]"),
            ([rule("deny", label={"integrity": "untrusted"})], "policies.default", ""),
        ],
    )
    async def test_what_allowed_a_call_is_in_the_log(self, source: Any, rule_: str, place: str) -> None:
        gate = Gate(mail(), policies=None if source is None else policies(source))
        assert isinstance(await gate.through("mcp://mail/send", {"body": "x"}), ToolResult)
        verdict = gate.log.records[0]
        assert isinstance(verdict, Verdict)
        assert (verdict.verdict, verdict.rule, verdict.place) == ("allowed", rule_, place)

    async def test_a_function_that_allowed_a_call_is_in_the_log_too(self) -> None:
        def fine(call: PolicyCall) -> Decision:
            return Decision("allow", rule="fine", place=str(call.uri))

        gate = Gate(mail(), policies=policies({"default": "deny"}), checks=[fine])
        assert isinstance(await gate.asked("mcp://mail/send"), ToolResult)
        verdict = gate.log.records[0]
        assert isinstance(verdict, Verdict)
        assert (verdict.verdict, verdict.rule) == ("allowed", "fine")

    async def test_what_a_person_allowed_names_the_rule_that_asked(self) -> None:
        gate = Gate(mail(), policies=policies([rule("ask")]), approve=lambda _: True)
        assert isinstance(await gate.asked("mcp://mail/send"), ToolResult)
        verdict = next(record for record in gate.log.records if isinstance(record, Verdict))
        assert (verdict.verdict, verdict.rule, verdict.place) == ("allowed", "ask rule", "policies[0]")
        assert verdict.approver == "operator (callback)"

    async def test_the_default_is_said_to_be_the_rule(self) -> None:
        gate = Gate(mail(), policies=policies({"default": "deny"}))
        got = await gate.through("mcp://mail/send")
        assert isinstance(got, Refusal)
        assert got.rule == "policies.default"
        assert "then: allow" in got.hint

    async def test_what_must_be_asked_for_is_refused_where_nobody_can_be_asked(self) -> None:
        gate = Gate(mail(), policies=policies([rule("ask", "Mail costs money.")]))
        got = await gate.through("mcp://mail/send")
        assert isinstance(got, Refusal)
        assert (got.kind, got.rule) == ("approval", "ask rule")
        assert "Mail costs money." in got.reason
        assert gate.kinds == ["verdict refused"]

    async def test_tools_ask_of_an_entry_is_a_rule(self) -> None:
        from luthier.spec import ToolFilter

        gate = Gate(mail(), mail={"tools": ToolFilter(ask=("se*",))})
        got = await gate.through("mcp://mail/send")
        assert isinstance(got, Refusal)
        assert (got.kind, got.rule) == ("approval", "tools.ask")
        assert isinstance(await gate.through("mcp://mail/read"), ToolResult)

    async def test_a_registry_that_is_replaced_brings_its_own_words(self) -> None:
        from luthier.spec import ToolFilter

        gate = Gate(mail())
        assert isinstance(await gate.through("mcp://mail/send"), ToolResult)
        asking = ServerEntry(id="mail", command="python", tools=ToolFilter(ask=("*",)))
        gate.gateway.use(gate.registry.with_entry(asking))
        got = await gate.through("mcp://mail/send")
        assert isinstance(got, Refusal)

    async def test_what_is_always_denied_does_not_exist_for_an_agent(self) -> None:
        gate = Gate(mail(), policies=policies([rule("deny", tool="mcp://mail/send", agent="reviewer")]))
        context = CallContext(principals=("operator", "reviewer"))
        with pytest.raises(NotFoundError) as denied:
            await gate.through("mcp://mail/send", principals=context.principals)
        with pytest.raises(NotFoundError) as absent:
            await gate.through("mcp://mail/sent", principals=context.principals)
        assert str(denied.value).replace("send", "sent") == str(absent.value)
        listed = await gate.settled(gate.gateway.tools(context, "mail"))
        assert [tool.name for tool in listed] == ["read"]
        with pytest.raises(NotFoundError):
            await gate.settled(gate.gateway.tool(SEND, context))
        verdict = gate.log.records[0]
        assert isinstance(verdict, Verdict)
        assert (verdict.verdict, verdict.rule) == ("refused", "deny rule")

    async def test_what_is_always_denied_is_told_to_the_operator(self) -> None:
        gate = Gate(mail(), policies=policies([rule("deny", "No mail.", tool="mcp://mail/send")]))
        with pytest.raises(Refused, match=r"No mail\.") as caught:
            await gate.settled(gate.gateway.tool(SEND, CallContext()))
        assert caught.value.place == "policies[0]"

    @pytest.mark.parametrize(
        "label",
        [
            cast("Label", "trusted"),
            cast("Label", None),
            Label(cast("Integrity", 7)),
            Label(confidentiality=cast("Confidentiality", "public")),
            Label(sources=cast("Any", ["web"])),
        ],
    )
    @pytest.mark.parametrize("at", ["value", "part", "branch"])
    async def test_a_label_that_is_not_known_is_a_no_that_is_written_down(
        self, label: Label, at: str
    ) -> None:
        gate = Gate(mail())
        got = await gate.through(
            "mcp://mail/send",
            {"a": 1},
            label=label if at == "value" else TRUSTED,
            parts={"/a": label} if at == "part" else None,
            control=label if at == "branch" else TRUSTED,
        )
        assert isinstance(got, Refusal)
        assert (got.kind, got.rule) == ("denied", "labels")
        assert gate.kinds == ["verdict refused"]
        assert gate.servers["mail"].calls == []


class TestFunctions:
    async def through(self, *checks: Any, source: Any = None, call: dict[str, Any] | None = None) -> Up:
        gate = Gate(mail(), policies=policies(source or []), checks=checks)
        async with asyncio.timeout(30):
            up = await gate.gateway.call(send(**(call or {})))
            await gate.manager.close_all()  # while somebody still holds it
        return up

    async def test_a_function_sees_the_call(self) -> None:
        seen: list[PolicyCall] = []

        def look(call: PolicyCall) -> None:
            seen.append(call)

        got = await self.through(look, call={"arguments": {"to": "a"}, "parts": {"/to": WEB}})
        assert isinstance(got, ToolResult)
        (call,) = seen
        assert (str(call.uri), call.arguments.value, call.arguments.at("/to")) == (
            str(SEND),
            {"to": "a"},
            WEB,
        )
        assert (call.label, call.principals, call.run, call.step) == (WEB, ("operator",), "r1", "s1")
        assert call.annotations["destructiveHint"]

    @pytest.mark.parametrize(
        ("answer", "then"),
        [
            ("allow", "allow"),
            (None, "allow"),
            ("ask", "approval"),
            ("deny", "denied"),
            (Decision("deny", "because", rule="mine", place="here.py:1"), "denied"),
        ],
    )
    async def test_what_it_says_is_done(self, answer: Any, then: str) -> None:
        def check(call: PolicyCall) -> Any:
            return answer

        got = await self.through(check)
        assert (got.kind if isinstance(got, Refusal) else "allow") == then
        if isinstance(answer, Decision) and isinstance(got, Refusal):
            assert (got.rule, got.place) == ("mine", "here.py:1")
            assert "because" in got.reason

    async def test_where_it_is_written_is_told(self) -> None:
        class Rule:
            def __call__(self, _: PolicyCall) -> str:
                return "deny"

        def check(call: PolicyCall) -> str:
            return "deny"

        line = check.__code__.co_firstlineno
        for policy, rule, place in (
            (check, check.__qualname__, f"{__file__}:{line}"),
            (Rule(), "Rule", f"{__name__}.{Rule.__qualname__}"),
        ):
            got = await self.through(policy)
            assert isinstance(got, Refusal)
            assert (got.rule, got.place) == (rule, place)
            assert rule in got.hint

    @pytest.mark.parametrize("answer", [True, False, 1, "yes", "", [], Decision(cast("Any", "maybe"))])
    async def test_an_odd_answer_is_a_no(self, answer: Any) -> None:
        got = await self.through(lambda _: answer)
        assert isinstance(got, Refusal)
        assert got.kind == "denied"
        assert "policy failed" in got.rule

    async def test_a_coroutine_is_an_odd_answer(self) -> None:
        async def check(call: PolicyCall) -> str:
            return "allow"

        got = await self.through(check)
        assert isinstance(got, Refusal)
        assert "coroutine" in got.rule

    @pytest.mark.parametrize(
        "fault", [ValueError("x"), KeyError("row"), TimeoutError(), RecursionError(), SystemExit(3)]
    )
    async def test_a_function_that_fails_has_said_no(self, fault: BaseException) -> None:
        def check(call: PolicyCall) -> str:
            raise fault

        got = await self.through(check)
        assert isinstance(got, Refusal)
        assert type(fault).__name__ in got.rule

    async def test_a_function_that_hangs_has_said_no_and_blocks_nobody(self) -> None:
        entered, leave = threading.Event(), threading.Event()

        def check(call: PolicyCall) -> str:
            entered.set()
            leave.wait(30)
            return "allow"

        gate = Gate(mail(), checks=[check])
        task = gate.start(gate.gateway.call(send()))
        async with asyncio.timeout(30):
            while not entered.is_set():
                await settle()
            await gate.clock.advance(5.0)
            got = await task
        leave.set()
        assert isinstance(got, Refusal)
        assert "longer than 5 s" in got.rule

    async def test_of_rules_and_functions_the_strictest_decides(self) -> None:
        def allows(call: PolicyCall) -> str:
            return "allow"

        def denies(call: PolicyCall) -> str:
            return "deny"

        asked = await self.through(
            allows, source=[rule("ask", argument="/to")], call={"arguments": {"to": 1}}
        )
        assert isinstance(asked, Refusal)
        assert asked.kind == "approval"
        denied = await self.through(denies, allows)
        assert isinstance(denied, Refusal)
        opened = await self.through(allows, source={"default": "deny"})
        assert isinstance(opened, ToolResult), "to allow is to fit, so the default is not asked"

    async def test_what_a_function_does_to_the_arguments_changes_nothing(self) -> None:
        def check(call: PolicyCall) -> None:
            call.arguments.value["to"] = "evil"

        server = mail()
        gate = Gate(server, checks=[check])
        async with asyncio.timeout(30):
            await gate.gateway.call(send({"to": "a"}))
        assert server.calls == [("send", {"to": "a"})]


async def test_nothing_is_judged_before_its_tool_is_found() -> None:
    policy = Policy(Policies(), REGISTRY, checks=[lambda _: "allow"], clock=FakeClock())
    call = GateCall(send(), TRUSTED, Ledger())
    with pytest.raises(RuntimeError, match="looked up"):
        policy.decide(call)


def test_a_rule_made_in_python_with_a_word_that_there_is_not_fails() -> None:
    odd = Policies(rules=(PolicyRule(name="x", then=cast("Any", "maybe")),))
    policy = Policy(odd, REGISTRY, clock=FakeClock())
    with pytest.raises(KeyError):
        policy.denial(Tool(uri=SEND, input_schema={}), ("operator",))


def test_rules_are_read_with_their_place() -> None:
    (read,) = policies([{"when": {"tool": "mcp://mail/*"}, "then": "deny"}]).rules
    assert read == PolicyRule(name="rule 1", then="deny", tool=("mcp://mail/*",), place="policies[0]")
    assert msgspec.json.encode(read)
