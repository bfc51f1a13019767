"""The nodes of a plan: steps as they are placed, control steps, and the parts of control steps. Pure.

A part of a control step (the `then` of a branch, the body of a loop) is a node of its own that nobody sees: a
sequence named `<control step>.<part>`, which begins and ends without an entry in the record.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from luthier.errors import Fault, SpecError
from luthier.expr import Compiled
from luthier.spec import (
    BranchFlow,
    FlowStep,
    ForeachFlow,
    MapReduceFlow,
    ParallelFlow,
    Retry,
    RunScoring,
    Step,
    SwitchFlow,
    TryFlow,
    WaitFor,
    WhileFlow,
)
from luthier.spec.control import StepSettings
from luthier.workflows.scores import retry_of, settled

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from luthier.spec import Config, ControlFlow, Ensemble, FlowItem

Kind = Literal["step", "sequence", "parallel", "branch", "switch", "try", "foreach", "while", "map-reduce"]
LOOPS: frozenset[Kind] = frozenset({"foreach", "while", "map-reduce"})


class Node(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """One step, or one group of nodes. `key` is the name in expressions, `parent` the group around it.

    `reads` is what a control step decides by, `breaks` what ends a `foreach` early, `limit` its bound.
    `parts` are the members that are parts, by their names, and `cases` those of a switch. A failure that
    nobody looks at stops a `scope`, and goes no further by itself. `lone`: its result is that of its member.
    """

    key: str
    kind: Kind = "step"
    needs: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    looks: frozenset[str] = frozenset()
    parent: str = ""
    members: tuple[str, ...] | None = None
    parts: dict[str, str] = {}
    cases: dict[str, str] = {}
    wait_for: WaitFor = "all"
    scope: bool = False
    lone: bool = False
    limit: int = 0
    reads: Compiled | None = None
    breaks: Compiled | None = None
    conditional: bool = False
    retry: Retry | None = None
    step: Step | None = None

    @property
    def waits_for(self) -> tuple[str, ...]:
        """All that must have ended before it starts, the parent's start aside."""
        return self.needs + self.after

    @cached_property
    def body(self) -> str:
        """The part that a loop repeats; empty for what is no loop."""
        return self.parts["body"] if self.kind in LOOPS else ""

    @cached_property
    def inside(self) -> tuple[str, ...]:
        """The members, without what a loop repeats."""
        return tuple(member for member in self.members or () if member != self.body)

    @cached_property
    def part(self) -> str:
        """Which part of its control step it is; empty for what is none."""
        return self.key.removeprefix(f"{self.parent}.") if self.kind == "sequence" else ""


def nodes_of(ensemble: Ensemble) -> list[Node]:
    """Every node in written order, a group before its members. Raises SpecError for a name without a step."""
    steps = {step.name: step for step in ensemble.steps}
    layout = _Layout(steps, ensemble.file)
    if ensemble.flow is None:
        judges = {step.scoring.evaluator for step in ensemble.steps if step.scoring is not None}
        nodes = [_step_node(step) for step in ensemble.steps if step.name not in judges]
    else:
        nodes = list(layout.sequence(ensemble.flow))
    nodes = [_judged(node, steps, ensemble.scoring) for node in nodes]
    keys = {node.key for node in nodes}
    return [_within(node, keys, ensemble.file) for node in nodes]


def _judged(node: Node, steps: dict[str, Step], run: RunScoring) -> Node:
    """The node with all that is to be known about the judging of its step."""
    step = node.step
    if step is None or step.scoring is None:
        return node
    if not run.enabled:
        return msgspec.structs.replace(node, step=msgspec.structs.replace(step, scoring=None))
    scoring = settled(step.scoring, run, steps.get(step.scoring.evaluator))
    retry = retry_of(scoring, run, node.retry)
    step = msgspec.structs.replace(step, scoring=scoring, retry=retry)
    return msgspec.structs.replace(node, step=step, retry=retry)


def expressions(step: Step) -> Iterator[Compiled]:
    """Every parsed expression of a step; those of its config stand in fields of their own."""
    found = [step.inputs, step.condition, *compiled_in(step.config)]
    if step.on_timeout is not None:
        found.append(step.on_timeout.fallback)
    if step.state is not None:
        found.append(step.state.values)
    if step.cache is not None:
        found.append(step.cache.key)
    if step.scoring is not None:
        found.append(step.scoring.criteria)
    return (one for one in found if one is not None)


def compiled_in(config: Config) -> list[Compiled]:
    """The expressions in the config of a step."""
    fields = (getattr(config, name) for name in config.__struct_fields__)
    return [field for field in fields if isinstance(field, Compiled)]


def _named(found: Iterable[Compiled | None]) -> tuple[dict[str, None], set[str]]:
    """The roots that expressions name, and those whose failure they look at."""
    named: dict[str, None] = {}
    looks: set[str] = set()
    for compiled in found:
        if compiled is not None:
            named.update(dict.fromkeys(sorted(reference.root for reference in compiled.references)))
            looks |= compiled.looked_at
    return named, looks


def _step_node(step: Step, parent: str = "", after: tuple[str, ...] = ()) -> Node:
    named, looks = _named(expressions(step))
    named.pop(step.name, None)  # what it sets of the state may be made of its own output
    return Node(
        key=step.name,
        needs=tuple(dict.fromkeys(step.depends_on) | named),
        after=after,
        looks=frozenset(looks - {step.name}),
        parent=parent,
        conditional=step.condition is not None,
        retry=step.retry,
        step=step,
    )


class _Layout:
    """Lays out a flow."""

    def __init__(self, steps: dict[str, Step], file: str) -> None:
        self._steps = steps
        self._file = file

    def sequence(self, items: Iterable[FlowItem], parent: str = "") -> Iterator[Node]:
        after: tuple[str, ...] = ()
        for item in items:
            yield from self._item(item, parent, after)
            after = (item.name,)

    def _item(self, item: FlowItem, parent: str, after: tuple[str, ...] = ()) -> Iterator[Node]:
        if isinstance(item, FlowStep):
            yield _step_node(_placed(item, self._steps, self._file), parent, after)
            return
        inside = list(self._inside(item))
        members = tuple(node.key for node in inside if node.parent == item.name)
        fields = _fields(item)
        named, looks = _named((fields.get("reads"), fields.get("breaks")))
        below = {node.key for node in inside}
        yield Node(
            key=item.name,
            needs=tuple(name for name in named if name not in below),
            looks=frozenset(looks),
            after=after,
            parent=parent,
            members=members,
            **fields,
        )
        yield from inside

    def _inside(self, item: ControlFlow) -> Iterator[Node]:
        if isinstance(item, ParallelFlow):
            for member in item.steps:
                yield from self._item(member, item.name)
            return
        tried: set[str] = set()
        for part, items in _parts(item):
            nodes = list(self.sequence(items, f"{item.name}.{part}"))
            lone = isinstance(item, MapReduceFlow) or (isinstance(item, ForeachFlow) and item.lone)
            yield Node(
                key=f"{item.name}.{part}",
                kind="sequence",
                parent=item.name,
                members=tuple(inner.name for inner in items),
                scope=isinstance(item, TryFlow),
                lone=lone,
            )
            # What is written for the case of a failure looks at all that may have failed.
            yield from (_looking(node, tried) for node in nodes)
            if isinstance(item, TryFlow):
                tried.update(node.key for node in nodes)


def _looking(node: Node, tried: set[str]) -> Node:
    seen = tried.intersection(node.needs)
    return msgspec.structs.replace(node, looks=node.looks | seen) if seen else node


def _parts(item: ControlFlow) -> Iterator[tuple[str, tuple[FlowItem, ...]]]:
    """The parts of a control step that are written, by name; a case of a switch is called by its number."""
    found: dict[str, tuple[FlowItem, ...]] = {}
    match item:
        case BranchFlow(then=then, otherwise=otherwise):
            found = {"then": then, "else": otherwise}
        case SwitchFlow(cases=cases, default=default):
            found = {f"case{number}": items for number, items in enumerate(cases.values())}
            found["default"] = default
        case TryFlow(steps=steps, catch=catch, lastly=lastly):
            found = {"steps": steps, "catch": catch, "finally": lastly}
        case ForeachFlow(steps=steps) | WhileFlow(steps=steps):
            found = {"body": steps}
        case MapReduceFlow(map=each, reduce=reduce):
            found = {"body": (each,), "reduce": (reduce,)}
    return ((part, items) for part, items in found.items() if items)


def _fields(item: ControlFlow) -> dict[str, Any]:
    parts = {part: f"{item.name}.{part}" for part, _ in _parts(item)}
    match item:
        case ParallelFlow(wait_for=wait_for):
            return {"kind": "parallel", "wait_for": wait_for}
        case BranchFlow(condition=condition):
            return {"kind": "branch", "reads": condition, "parts": parts}
        case SwitchFlow(value=value, cases=cases):
            numbered = {key: f"{item.name}.case{number}" for number, key in enumerate(cases)}
            return {"kind": "switch", "reads": value, "parts": parts, "cases": numbered}
        case TryFlow():
            return {"kind": "try", "parts": parts}
        case ForeachFlow(items=items, break_when=breaks, max_concurrency=limit):
            return {"kind": "foreach", "reads": items, "breaks": breaks, "limit": limit, "parts": parts}
        case WhileFlow(condition=condition, max_iterations=limit):
            return {"kind": "while", "reads": condition, "limit": limit, "parts": parts}
        case MapReduceFlow(items=items, max_concurrency=limit):
            return {"kind": "map-reduce", "reads": items, "limit": limit, "parts": parts}


def _placed(place: FlowStep, steps: dict[str, Step], file: str) -> Step:
    """The definition as it runs at this place."""
    step = steps.get(place.step)
    if step is None:
        raise SpecError([Fault(f"the flow names the step {place.step!r}, which is not there", file)])
    given = {field: getattr(place, field) for field in StepSettings.__struct_fields__}
    said = {field: value for field, value in given.items() if value not in (None, ())}
    return msgspec.structs.replace(step, name=place.name, **said)


def _within(node: Node, keys: set[str], file: str) -> Node:
    """The node with only those names that stand for nodes; `input`, `run` and the like fall away."""
    if node.step is not None:
        unknown = [name for name in node.step.depends_on if name not in keys]
        if unknown:
            raise SpecError([Fault(f"step {node.key!r} depends on {unknown[0]!r}, which is not there", file)])
    needs = tuple(name for name in node.needs if name in keys)
    after = tuple(name for name in node.after if name not in needs)
    return msgspec.structs.replace(node, needs=needs, after=after, looks=node.looks & keys)
