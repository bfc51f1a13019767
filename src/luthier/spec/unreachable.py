"""Warns of what can never run and of loops that can only fail, as conditions that never change tell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from luthier.errors import ExpressionError
from luthier.expr import Scope
from luthier.spec.control import (
    ITERATIONS,
    BranchFlow,
    FlowStep,
    ForeachFlow,
    MapReduceFlow,
    SwitchFlow,
    TryFlow,
    WhileFlow,
)
from luthier.spec.words import quoted
from luthier.spec.written import parts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from luthier.spec.control import FlowItem
    from luthier.spec.draft import Draft, Place, Uses
    from luthier.spec.expressions import Placed
    from luthier.spec.reader import Sink

_UNKNOWN = object()


def warn_of_steps(sink: Sink, drafts: Iterable[Draft]) -> None:
    """Without a flow: each step by its own condition, and fallbacks for what never runs."""
    found = [(draft.name, draft.uses) for draft in drafts]
    never = {name for name, uses in found if _never(uses)}
    for name, uses in found:
        _warn_of_step(sink, name, uses, never)


def warn_of_flow(sink: Sink, flow: Iterable[FlowItem], places: Mapping[str, Place]) -> None:
    """With a flow: the parts of control steps too. Of a part that never runs only that is told."""
    _Walk(sink, places).items(flow)


class _Walk:
    def __init__(self, sink: Sink, places: Mapping[str, Place]) -> None:
        self._sink = sink
        self._places = places
        self._never: set[str] = set()

    def items(self, items: Iterable[FlowItem]) -> None:
        for item in items:
            uses = self._places[item.name].uses
            if isinstance(item, FlowStep):
                if _never(uses):
                    self._never.add(item.name)
                _warn_of_step(self._sink, item.name, uses, self._never)
                continue
            dead = self._dead(item, uses)
            for inner, _ in parts(item):
                if any(inner in part for part in dead):
                    self._never.add(inner.name)
                else:
                    self.items([inner])
            if (
                isinstance(item, TryFlow)
                and item.catch
                and all(one.name in self._never for one in item.steps)
            ):
                self._tell(
                    item.name, uses, "", f"the `catch` of {quoted(item.name)} never runs: no step can fail"
                )

    def _dead(self, item: FlowItem, uses: Uses) -> list[tuple[FlowItem, ...]]:
        """The parts that never run, each told."""
        match item:
            case BranchFlow(then=then, otherwise=otherwise):
                value = _constant(uses.expressions.get("condition"))
                if value is True and otherwise:
                    self._tell(
                        item.name, uses, "condition", "`else` never runs: the condition is always true"
                    )
                    return [otherwise]
                if value is False or value is None:
                    self._tell(
                        item.name, uses, "condition", "`then` never runs: the condition is always false"
                    )
                    return [then]
            case SwitchFlow(cases=cases):
                value = _constant(uses.expressions.get("value"))
                if isinstance(value, str):
                    dead = {case: steps for case, steps in cases.items() if case != value}
                    for case in dead:
                        message = f"the case {quoted(case)} never runs: the value is always {quoted(value)}"
                        self._tell(item.name, uses, "value", message)
                    return list(dead.values())
            case WhileFlow(steps=steps, max_iterations=most):
                value = _constant(uses.expressions.get("condition"))
                if value is True:
                    message = f"this loop has no end: it fails after {most} iterations"
                    hint = "" if most != ITERATIONS else "let the condition name what the steps find out"
                    self._tell(item.name, uses, "condition", message, hint)
                if value is False or value is None:
                    self._tell(
                        item.name, uses, "condition", "this loop never runs: the condition is always false"
                    )
                    return [steps]
            case ForeachFlow(steps=steps) if _constant(uses.expressions.get("items")) == []:
                self._tell(item.name, uses, "items", "this loop never runs: it has no items")
                return [steps]
            case MapReduceFlow(map=each) if _constant(uses.expressions.get("items")) == []:
                self._tell(item.name, uses, "items", "`map` never runs: there are no items")
                return [(each,)]
        return []

    def _tell(self, name: str, uses: Uses, key: str, message: str, hint: str = "") -> None:
        use = uses.expressions.get(key)
        path = use.path if use is not None else self._places[name].path
        self._sink.add(message, path, suggestion=hint, warning=True)


def _warn_of_step(sink: Sink, name: str, uses: Uses, never: set[str]) -> None:
    condition = uses.expressions.get("condition")
    if condition is None:
        return
    if _never(uses):
        message = f"step {quoted(name)} never runs: its condition is always false"
        sink.add(message, condition.path, warning=True)
    for reference in condition.references:
        plain = str(condition.value).strip("${} ") == f"{reference.root}.failed"
        if plain and reference.root in never:
            message = (
                f"step {quoted(name)} never runs: {quoted(reference.root)} never runs, so it cannot fail"
            )
            sink.add(message, condition.path, warning=True)


def _never(uses: Uses) -> bool:
    value = _constant(uses.expressions.get("condition"))
    return value is False or value is None


def _constant(use: Placed | None) -> Any:
    """The value of an expression that names nothing; what depends on the time is not known either."""
    if use is None or use.compiled is None or use.compiled.references:
        return _UNKNOWN
    if not use.compiled.is_constant and any(word in str(use.value) for word in ("now", "Date")):
        return _UNKNOWN
    try:
        return use.compiled.evaluate(Scope({}, now=0.0)).value
    except ExpressionError:
        return _UNKNOWN
