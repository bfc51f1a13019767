"""The plan of an ensemble: steps and groups as nodes, who waits for whom, who looks at whose failure. Pure.

A node `needs` what it names: it waits for its end, and its failure matters. It comes `after` what only stands
before it in a written flow: it waits, and nothing more. It `looks` at a failure that it says how to deal
with. A group (`members` set) starts when what stands before it has ended, and its members start with it. All
of this is known before the run.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import msgspec

from luthier.errors import Fault, SpecError
from luthier.expr import Compiled
from luthier.spec import EndorseConfig, FlowStep, Retry, Step, TransformConfig
from luthier.spec.ensemble import WaitFor

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from luthier.spec import Ensemble, FlowItem, ParallelFlow

OUTPUTS = ""
"""Stands for the ensemble's outputs among those who look."""


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """One step, or one group of them. `key` is the name in expressions, `parent` the group around it."""

    key: str
    needs: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    looks: frozenset[str] = frozenset()
    parent: str = ""
    members: tuple[str, ...] | None = None
    wait_for: WaitFor = "all"
    conditional: bool = False
    retry: Retry | None = None
    step: Step | None = None

    @property
    def waits_for(self) -> tuple[str, ...]:
        """All that must have ended before it starts, the parent's start aside."""
        return self.needs + self.after


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """`nodes` in written order, and what follows from them.

    `followers`: who waits for a node. `lookers`: who looks at its failure, at it or at a group around it.
    `covers`: the node whose failure counts when it fails: a group that waits for any or the first stands for
    its members. `last`: whose output is the run's where `outputs` says nothing.
    """

    ensemble: str
    nodes: dict[str, Node]
    followers: dict[str, tuple[str, ...]]
    lookers: dict[str, tuple[str, ...]]
    covers: dict[str, str]
    last: str = ""
    outputs: Compiled | None = None

    @property
    def steps(self) -> tuple[str, ...]:
        """The keys of the steps, groups left out."""
        return tuple(key for key, node in self.nodes.items() if node.members is None)

    def step(self, key: str) -> Step:
        """The step of that key. Raises KeyError for a group."""
        step = self.nodes[key].step
        if step is None:
            raise KeyError(key)
        return step

    def leaves(self, key: str) -> Iterator[str]:
        """The steps below a node; a step is its own."""
        members = self.nodes[key].members
        if members is None:
            yield key
            return
        for member in members:
            yield from self.leaves(member)

    def digest(self) -> str:
        """SHA-256 of everything that decides what a run of it does; the same for the same file."""
        parts = [list(self.nodes.values()), self.outputs, self.last]
        text = msgspec.json.encode(parts, enc_hook=_spelled, order="deterministic")
        return hashlib.sha256(text).hexdigest()


def plan(ensemble: Ensemble) -> Plan:
    """Plan an ensemble. Raises SpecError where steps wait for each other, or for one that is not there."""
    if ensemble.flow is None:
        nodes = [_step_node(step) for step in ensemble.steps]
    else:
        steps = {step.name: step for step in ensemble.steps}
        nodes = list(_sequence(ensemble.flow, steps, ensemble.file))
    top = [node.key for node in nodes if not node.parent]
    keys = {node.key for node in nodes}
    return arrange(
        [_within(node, keys, ensemble.file) for node in nodes],
        ensemble=ensemble.name,
        file=ensemble.file,
        last=top[-1] if top else "",
        outputs=ensemble.outputs,
    )


def arrange(
    nodes: Sequence[Node],
    *,
    ensemble: str = "",
    file: str = "",
    last: str = "",
    outputs: Compiled | None = None,
    looked_at: Iterable[str] | None = None,
) -> Plan:
    """A plan out of nodes that name only each other. `looked_at` stands in where `outputs` is not given."""
    by_key = {node.key: node for node in nodes}
    if len(by_key) < len(nodes):
        doubled = next(node.key for index, node in enumerate(nodes) if by_key[node.key] is not nodes[index])
        raise SpecError([Fault(f"two places in the flow are named {doubled!r}; give one an id", file)])
    _refuse_cycles(by_key, file)
    followers: dict[str, list[str]] = {key: [] for key in by_key}
    for node in nodes:
        for awaited in node.waits_for:
            followers[awaited].append(node.key)
    if looked_at is None:
        looked_at = outputs.looked_at & by_key.keys() if outputs is not None else ()
    lookers: dict[str, list[str]] = {key: [] for key in by_key}
    for looker, targets in [(node.key, node.looks) for node in nodes] + [(OUTPUTS, frozenset(looked_at))]:
        for target in targets:
            for leaf in _below(by_key, target):
                lookers[leaf].append(looker)
    return Plan(
        ensemble=ensemble,
        nodes=by_key,
        followers={key: tuple(keys) for key, keys in followers.items()},
        lookers={key: tuple(keys) for key, keys in lookers.items()},
        covers={key: _cover(by_key, key) for key in by_key},
        last=last,
        outputs=outputs,
    )


def expressions(step: Step) -> Iterator[Compiled]:
    """Every parsed expression of a step."""
    found = [step.inputs, step.condition]
    if isinstance(step.config, TransformConfig):
        found += [step.config.value, step.config.merge, step.config.input, step.config.defaults]
    if isinstance(step.config, EndorseConfig):
        found += [step.config.value, step.config.ids]
    return (compiled for compiled in found if compiled is not None)


def _step_node(step: Step, parent: str = "", after: tuple[str, ...] = ()) -> Node:
    named = dict.fromkeys(step.depends_on)
    looks: set[str] = set()
    for compiled in expressions(step):
        named.update(dict.fromkeys(sorted(reference.root for reference in compiled.references)))
        looks |= compiled.looked_at
    return Node(
        key=step.name,
        needs=tuple(named),
        after=after,
        looks=frozenset(looks),
        parent=parent,
        conditional=step.condition is not None,
        retry=step.retry,
        step=step,
    )


def _sequence(items: Iterable[FlowItem], steps: dict[str, Step], file: str) -> Iterator[Node]:
    after: tuple[str, ...] = ()
    for item in items:
        yield from _item(item, steps, file, after=after)
        after = (item.name,)


def _item(
    item: FlowItem, steps: dict[str, Step], file: str, *, parent: str = "", after: tuple[str, ...] = ()
) -> Iterator[Node]:
    if isinstance(item, FlowStep):
        yield _step_node(_placed(item, steps, file), parent, after)
        return
    yield _group_node(item, parent, after)
    for member in item.steps:
        yield from _item(member, steps, file, parent=item.name)


def _group_node(group: ParallelFlow, parent: str, after: tuple[str, ...]) -> Node:
    return Node(
        key=group.name,
        after=after,
        parent=parent,
        members=tuple(member.name for member in group.steps),
        wait_for=group.wait_for,
    )


def _placed(place: FlowStep, steps: dict[str, Step], file: str) -> Step:
    """The definition as it runs at this place."""
    step = steps.get(place.step)
    if step is None:
        raise SpecError([Fault(f"the flow names the step {place.step!r}, which is not there", file)])
    return msgspec.structs.replace(
        step,
        name=place.name,
        inputs=step.inputs if place.inputs is None else place.inputs,
        condition=step.condition if place.condition is None else place.condition,
        depends_on=place.depends_on or step.depends_on,
        retry=step.retry if place.retry is None else place.retry,
        timeout=step.timeout if place.timeout is None else place.timeout,
    )


def _within(node: Node, keys: set[str], file: str) -> Node:
    """The node with only those names that stand for nodes; `input`, `run` and the like fall away."""
    if node.step is not None:
        unknown = [name for name in node.step.depends_on if name not in keys]
        if unknown:
            raise SpecError([Fault(f"step {node.key!r} depends on {unknown[0]!r}, which is not there", file)])
    needs = tuple(name for name in node.needs if name in keys)
    after = tuple(name for name in node.after if name not in needs)
    return msgspec.structs.replace(node, needs=needs, after=after, looks=node.looks & keys)


def _below(nodes: dict[str, Node], key: str) -> Iterator[str]:
    yield key
    for member in nodes[key].members or ():
        yield from _below(nodes, member)


def _cover(nodes: dict[str, Node], key: str) -> str:
    """The outermost group around it that does not wait for all, else itself."""
    cover, current = key, key
    while current:
        if nodes[current].wait_for != "all":
            cover = current
        current = nodes[current].parent
    return cover


def _refuse_cycles(nodes: dict[str, Node], file: str) -> None:
    """Walk who waits for whom, without recursion: a chain may be long.

    A group is two points, its start and its end: members wait for the start, others for the end.
    """
    edges: dict[tuple[str, bool], list[tuple[str, bool]]] = {}
    for node in nodes.values():
        awaited = [(key, True) for key in node.waits_for]
        if node.parent:
            awaited.append((node.parent, False))
        edges[node.key, False] = awaited
        edges[node.key, True] = [(node.key, False), *((member, True) for member in node.members or ())]
    done: set[tuple[str, bool]] = set()
    for start, first in edges.items():
        path = [start]
        on_path = {start: iter(first)}
        while path and start not in done:
            following = next((point for point in on_path[path[-1]] if point not in done), None)
            if following is None:
                done.add(path[-1])
                del on_path[path.pop()]
            elif following in on_path:
                circle = dict.fromkeys(key for key, _ in path[path.index(following) :])
                raise SpecError([Fault(_circle(list(circle)), file)])
            else:
                path.append(following)
                on_path[following] = iter(edges[following])


def _circle(keys: list[str]) -> str:
    if len(keys) == 1:
        return f"step {keys[0]!r} waits for itself"
    return f"steps wait for each other: {' → '.join((*keys, keys[0]))} (each waits for the next)"


def _spelled(value: Any) -> Any:
    """What the encoder does not know: expressions by their source, places by nothing."""
    return getattr(value, "source", None)
