"""The guard of policies: rules of the project, words of the entries, and functions of whoever embeds us.

Of all that fits a call the strictest decides; the default is for calls that nothing fits. What can be told
from the tool and the callers alone is worked out once; arguments and labels are looked at for each call, and
only where a rule asks for them.

Who wants less believes more: a rule that allows goes by annotations that are known to be true, one that asks
or denies also by what an untrusted server only claims. And an allowing rule must fit every caller of the
chain (the operator at its top aside), one that asks or denies any of them.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import msgspec

from luthier.context import OPERATOR
from luthier.govern.access import Denial, covers
from luthier.govern.checks import Decision, PolicyCall, judged
from luthier.govern.guard import said
from luthier.govern.hints import believed, claimed
from luthier.govern.pointers import compiled, labels_at
from luthier.spec.policy import Policies, PolicyRule, Then
from luthier.tools import Tool

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from luthier.clock import Clock
    from luthier.connect import ServerRegistry
    from luthier.govern.guard import GateCall, Next, Up
    from luthier.spec import LabelTest, ServerEntry
    from luthier.taint import Label
    from luthier.uri import ToolUri

STRICTNESS: dict[Then, int] = {"allow": 0, "ask": 1, "deny": 2}
IN_PYTHON = "policies, given in Python"
_MOST = 10_000  # plans kept


class _Plan(msgspec.Struct, frozen=True, gc=False):
    """What is known of one tool and its callers: what the strictest rule that fits anyhow says, if one does.

    `tried` holds the stricter ones, which fit some arguments, the strictest first.
    """

    tool: Tool
    decision: Decision | None
    tried: tuple[PolicyRule, ...]


class Policy:
    """Judges calls by `policies`, by `tools.ask` of the entries, and by the functions in `checks`."""

    def __init__(
        self,
        policies: Policies,
        registry: ServerRegistry,
        *,
        checks: Iterable[Callable[[PolicyCall], object]] = (),
        clock: Clock,
    ) -> None:
        self._policies = policies
        self._checks = tuple(checks)
        self._clock = clock
        self._plans: dict[tuple[ToolUri, tuple[str, ...]], _Plan] = {}
        self._default = Decision(
            policies.default,
            "No policy allows it.",
            rule="policies.default",
            place=policies.place or IN_PYTHON,
            hint="To allow it, add a rule with `then: allow` under `policies.rules`.",
        )
        self.use(registry)

    def use(self, registry: ServerRegistry) -> None:
        """Take the entries of another registry."""
        self._registry = registry
        self._plans = {}
        self._idle = (
            self._policies.default == "allow"
            and not self._policies.rules
            and not any(entry.tools.ask for entry in registry)
        )

    def guard(self, call: GateCall, inner: Next) -> Awaitable[Up]:
        """Refuse what is denied, mark what must be asked for, and let the rest pass."""
        if self._checks:
            return self._checked(call, inner)
        decision = None if self._idle else self.decide(call)
        if decision is None or decision.then == "allow":
            return inner(self._allowed(call, decision))
        return self._answer(call, inner, decision)

    def denial(self, tool: Tool, principals: tuple[str, ...]) -> Denial | None:
        """Why these may never call that tool, whatever with; None where that depends on more."""
        if self._idle:
            return None
        plan = self._plan(tool, principals)
        if plan.decision is not None:
            decision = plan.decision
        elif plan.tried or self._checks:
            return None
        else:
            decision = self._default
        if decision.then != "deny":
            return None
        return Denial(_reason(tool.uri, decision), decision.rule, decision.place, decision.hint)

    def decide(self, call: GateCall) -> Decision | None:
        """What the rules say of a call; None: it is allowed by the default."""
        tool = call.tool
        if tool is None:
            raise RuntimeError("the tool must be looked up before policies are asked")
        plan = self._plan(tool, call.call.context.principals)
        for rule in plan.tried:
            if fits(rule, call):
                return _decision(rule)
        if plan.decision is not None:
            return plan.decision
        return None if self._default.then == "allow" else self._default

    async def _checked(self, call: GateCall, inner: Next) -> Up:
        decision = self.decide(call)
        default = decision is self._default
        for check in self._checks:
            said_ = await judged(check, facts_of(call, self._registry), self._clock)
            if said_ is not None and (
                decision is None or default or STRICTNESS[said_.then] > STRICTNESS[decision.then]
            ):
                decision, default = said_, False
        if decision is None or decision.then == "allow":
            return await inner(self._allowed(call, decision))
        return await self._answer(call, inner, decision)

    def _allowed(self, call: GateCall, decision: Decision | None) -> GateCall:
        """Note by which rule a call is allowed, or is to be asked for; None: by the default."""
        ledger = call.ledger
        if decision is None:
            ledger.allowed_at = self._policies.place
        else:
            ledger.allowed_by, ledger.allowed_at = decision.rule, decision.place
        return call

    def _answer(self, call: GateCall, inner: Next, decision: Decision) -> Awaitable[Up]:
        if decision.then == "ask":
            call.ledger.ask = decision
            return inner(self._allowed(call, decision))
        refusal = call.refuse(
            "denied",
            _reason(call.call.uri, decision),
            rule=decision.rule,
            place=decision.place,
            hint=decision.hint,
        )
        return said(refusal)

    def _plan(self, tool: Tool, principals: tuple[str, ...]) -> _Plan:
        question = (tool.uri, principals)
        plan = self._plans.get(question)
        if plan is None or plan.tool is not tool:
            plan = self._planned(tool, principals)
            if len(self._plans) >= _MOST:
                self._plans.clear()
            self._plans[question] = plan
        return plan

    def _planned(self, tool: Tool, principals: tuple[str, ...]) -> _Plan:
        entry = self._registry.get(tool.uri.server) if tool.uri.scheme == "mcp" else None
        rules = [
            rule
            for rule in (*self._policies.rules, *_asked(entry, tool))
            if _may_fit(rule, tool, principals, entry)
        ]
        rules.sort(key=lambda rule: -STRICTNESS[rule.then])
        settled = next((rule for rule in rules if _is_settled(rule)), None)
        if settled is not None:
            rules = [rule for rule in rules if STRICTNESS[rule.then] > STRICTNESS[settled.then]]
        allowed = self._default.then if settled is None else settled.then
        matter = tuple(rule for rule in rules if not _is_settled(rule))
        if allowed == "allow":  # what allows changes nothing
            matter = tuple(rule for rule in matter if rule.then != "allow")
        return _Plan(tool, None if settled is None else _decision(settled), matter)


def answered(call: GateCall, inner: Next) -> Awaitable[Up]:
    """The guard behind the approvals: what was to be asked, and was not, is not done."""
    decision = call.ledger.ask
    if decision is None:
        return inner(call)
    refusal = call.refuse(
        "approval",
        f"{call.call.uri} needs an approval: {decision.reason or decision.rule}",
        rule=decision.rule,
        place=decision.place,
        hint=decision.hint,
    )
    return said(refusal)


def fits(rule: PolicyRule, call: GateCall) -> bool:
    """Whether a rule that may fit a tool and its callers fits the arguments and their labels."""
    test = rule.label
    if test is not None and rule.argument in (None, "*"):
        if not holds(test, call.label):
            return False  # it holds every label of the call, so none of them is as bad
        arguments, control = call.call.arguments, call.call.context.control
        return any(holds(test, label.join(control)) for label in (arguments.label, *arguments.parts.values()))
    if rule.argument is None or rule.argument == "*":
        return True
    labels = labels_at(call.call.arguments, compiled(rule.argument))
    return any(test is None or holds(test, label) for label in labels)


def holds(test: LabelTest, label: Label) -> bool:
    """Whether a label is at least as bad as a rule asks for."""
    if label.integrity < test.integrity or label.confidentiality < test.confidentiality:
        return False
    pattern = test.sources
    return pattern is None or any(
        fnmatchcase(f"{source.server}/{source.tool}", pattern) for source in label.sources
    )


def facts_of(call: GateCall, registry: ServerRegistry) -> PolicyCall:
    """A call as functions see it."""
    tool, wanted = call.tool, call.call
    if tool is None:
        raise RuntimeError("the tool must be looked up before policies are asked")
    entry = registry.get(tool.uri.server) if tool.uri.scheme == "mcp" else None
    return PolicyCall(
        uri=wanted.uri,
        arguments=wanted.arguments,
        label=call.label,
        principals=wanted.context.principals,
        control=wanted.context.control,
        annotations=believed(tool, entry),
        run=wanted.context.run,
        step=wanted.context.step,
    )


def _is_settled(rule: PolicyRule) -> bool:
    """Whether it fits whatever the arguments and labels are."""
    return rule.label is None and rule.argument in (None, "*")


def _may_fit(rule: PolicyRule, tool: Tool, principals: tuple[str, ...], entry: ServerEntry | None) -> bool:
    if rule.tool and not any(tool.uri.matches(pattern) for pattern in rule.tool):
        return False
    if rule.agent and not _fits_callers(rule, principals):
        return False
    if not rule.annotations:
        return True
    known = believed(tool, entry)
    if all(known[name] is value for name, value in rule.annotations.items()):
        return True
    if rule.then == "allow":
        return False
    said_ = claimed(tool, entry)
    return all(value in (known[name], said_[name]) for name, value in rule.annotations.items())


def _fits_callers(rule: PolicyRule, principals: tuple[str, ...]) -> bool:
    def is_meant(principal: str) -> bool:
        return any(fnmatchcase(principal, pattern) for pattern in rule.agent)

    if rule.then != "allow":
        return any(map(is_meant, principals))
    below = principals[1:] if principals[:1] == (OPERATOR,) and len(principals) > 1 else principals
    return bool(below) and all(map(is_meant, below))


def _asked(entry: ServerEntry | None, tool: Tool) -> tuple[PolicyRule, ...]:
    """What `tools.ask` of an entry means for one of its tools."""
    if entry is None or not covers(tool.name, entry.tools.ask):
        return ()
    place = entry.origin.place("tools", "ask")
    return (PolicyRule(name="tools.ask", then="ask", reason="Its entry asks for it.", place=place),)


def _decision(rule: PolicyRule) -> Decision:
    hint = "" if rule.then == "allow" else f"To allow it, change the rule {rule.name!r}."
    return Decision(rule.then, rule.reason, rule=rule.name, place=rule.place or IN_PYTHON, hint=hint)


def _reason(uri: Any, decision: Decision) -> str:
    return f"{uri} may not be called like this: {decision.reason or decision.rule}"
