"""The plan of an ensemble: steps and groups as nodes, who waits for whom, who looks at whose failure. Pure.

A node `needs` what it names: it waits for its end, and its failure matters. It comes `after` what only stands
before it in a written flow: it waits, and nothing more. It `looks` at a failure that it says how to deal
with. A group (`members` set) starts when what stands before it has ended, and its members start with it, or
when its rule says so. All of this is known before the run.

The body of a loop is planned once and run many times. From outside, what stands in it is named through the
loop: who names it waits for the loop, and what the body names outside is waited for by the loop.
"""

from __future__ import annotations

import hashlib
from functools import cached_property
from itertools import pairwise, takewhile
from typing import TYPE_CHECKING, Any

import msgspec

from luthier.errors import Fault, SpecError
from luthier.expr import Compiled
from luthier.spec import OutputBlock
from luthier.spec.control import Aggregation
from luthier.workflows.nodes import Node, nodes_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from luthier.spec import Ensemble, Step

OUTPUTS = ""
"""Stands for the ensemble's outputs among those who look."""


class Plan(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """`nodes` in written order, and what follows from them, by key.

    `around`: the groups around a node, outermost first; `loops`: those of them that repeat it. `waits`: whom
    it waits for, `followers`: who waits for it; both in the same loops as the node. `lookers`: who looks
    at its failure, at it or at a group around it; `looked`: at whose it looks, a loop for all inside. `last`:
    whose output is the run's without `outputs`. `file`: where it was read. `aggregation`: of scores.
    """

    ensemble: str
    nodes: dict[str, Node]
    around: dict[str, tuple[str, ...]]
    loops: dict[str, tuple[str, ...]]
    waits: dict[str, tuple[str, ...]]
    followers: dict[str, tuple[str, ...]]
    lookers: dict[str, tuple[str, ...]]
    looked: dict[str, tuple[str, ...]]
    last: str = ""
    outputs: Compiled | None = None
    blocks: tuple[OutputBlock, ...] = ()
    file: str = ""
    aggregation: Aggregation = "weighted_average"

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

    def below(self, key: str) -> Iterator[str]:
        """The node itself and all below it."""
        yield key
        for member in self.nodes[key].members or ():
            yield from self.below(member)

    def shared(self, key: str, other: str) -> int:
        """How many loops two nodes stand in together."""
        pairs = zip(self.loops[key], self.loops[other], strict=False)
        return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))

    def digest(self) -> str:
        """SHA-256 of everything that decides what a run of it does; the same for the same file."""
        return self._digest

    @cached_property
    def _digest(self) -> str:
        parts = [list(self.nodes.values()), self.outputs, self.blocks, self.last]
        text = msgspec.json.encode(parts, enc_hook=_spelled, order="deterministic")
        return hashlib.sha256(text).hexdigest()


class Plans:
    """The plan of each ensemble, made once: neither changes. Of one name, that which was asked for last."""

    def __init__(self) -> None:
        self._made: dict[str, tuple[Ensemble, Plan]] = {}

    def of(self, ensemble: Ensemble) -> Plan:
        """Raises SpecError, as `plan` does."""
        made = self._made.get(ensemble.name)
        if made is None or made[0] is not ensemble:
            made = self._made[ensemble.name] = ensemble, plan(ensemble)
        return made[1]


def plan(ensemble: Ensemble) -> Plan:
    """Plan an ensemble. Raises SpecError where steps wait for each other, or for one that is not there."""
    nodes = nodes_of(ensemble)
    top = [node.key for node in nodes if not node.parent]
    made = arrange(
        nodes,
        ensemble=ensemble.name,
        file=ensemble.file,
        last=top[-1] if top else "",
        outputs=ensemble.outputs,
        blocks=ensemble.blocks,
    )
    return msgspec.structs.replace(made, aggregation=ensemble.scoring.aggregation)


def named_by_outputs(plan: Plan) -> tuple[str, ...]:
    """The nodes that the outputs name; where there are none, the last."""
    if plan.outputs is None and not plan.blocks:
        return (plan.last,) if plan.last else ()
    roots = _roots(plan)
    return tuple(key for key in plan.nodes if key in roots)


def names_state(plan: Plan) -> bool:
    """Whether the outputs name the run's state."""
    return "state" in _roots(plan)


def _roots(plan: Plan) -> set[str]:
    read = (plan.outputs, *(one for block in plan.blocks for one in block.expressions))
    return {reference.root for one in read if one is not None for reference in one.references}


def arrange(
    nodes: Sequence[Node],
    *,
    ensemble: str = "",
    file: str = "",
    last: str = "",
    outputs: Compiled | None = None,
    blocks: tuple[OutputBlock, ...] = (),
    looked_at: Iterable[str] | None = None,
) -> Plan:
    """A plan out of nodes that name only each other. `looked_at` stands in where `outputs` is not given."""
    by_key = {node.key: node for node in nodes}
    by_key = {key: _scoped(node, by_key) for key, node in by_key.items()}
    if len(by_key) < len(nodes):
        keys = [node.key for node in nodes]
        doubled = next(node.key for index, node in enumerate(nodes) if node.key in keys[:index])
        raise SpecError([Fault(f"two places in the flow are named {doubled!r}; give one an id", file)])
    around = {key: tuple(_around(by_key, key)) for key in by_key}
    made = Plan(
        ensemble=ensemble,
        nodes=by_key,
        around=around,
        loops={key: tuple(_loops(by_key, key, around[key])) for key in by_key},
        waits={},
        followers={},
        lookers={},
        looked={},
        last=last,
        outputs=outputs,
        blocks=blocks,
        file=file,
    )
    waits = _waits(made)
    _refuse_cycles(by_key, waits, file)
    followers: dict[str, list[str]] = {key: [] for key in by_key}
    for key, awaited in waits.items():
        for one in awaited:
            followers[one].append(key)
    if looked_at is None:
        read = (outputs, *(one for block in blocks for one in block.expressions))
        looked_at = {name for one in read if one is not None for name in one.looked_at} & by_key.keys()
    lookers = _lookers(made, looked_at)
    looked: dict[str, list[str]] = {key: [] for key in by_key}
    for key, found in lookers.items():
        for looker in found:
            looked.setdefault(looker, []).append(key)
    return msgspec.structs.replace(
        made,
        waits={key: tuple(awaited) for key, awaited in waits.items()},
        followers={key: tuple(keys) for key, keys in followers.items()},
        lookers=lookers,
        looked={key: tuple(keys) for key, keys in looked.items()},
    )


def _scoped(node: Node, nodes: Mapping[str, Node]) -> Node:
    """A group in one that does not wait for all: that one deals with its failure."""
    if node.members is None or not node.parent or nodes[node.parent].wait_for == "all":
        return node
    return msgspec.structs.replace(node, scope=True)


def _around(nodes: dict[str, Node], key: str) -> list[str]:
    found: list[str] = []
    while key := nodes[key].parent:
        found.append(key)
    return found[::-1]


def _loops(nodes: dict[str, Node], key: str, around: tuple[str, ...]) -> Iterator[str]:
    for group, inner in pairwise((*around, key)):
        if nodes[group].body == inner:
            yield group


def _seen_from(plan: Plan, key: str, viewer: str) -> str:
    """What stands for a node where one is not in all of its loops: the outermost of the others."""
    loops, shared = plan.loops[key], plan.shared(key, viewer)
    return loops[shared] if len(loops) > shared else key


def _waits(plan: Plan) -> dict[str, dict[str, None]]:
    """Who waits for whom, told between nodes that stand in the same loops."""
    waits: dict[str, dict[str, None]] = {key: {} for key in plan.nodes}
    for key, node in plan.nodes.items():
        for awaited in node.waits_for:
            one, other = _seen_from(plan, key, awaited), _seen_from(plan, awaited, key)
            if one != other or key == awaited:  # else both stand for the loop that they are in
                if other != awaited and other in plan.around[one]:
                    continue  # `reduce` names what `map` did, which is over when it begins
                waits[one][other] = None
    return waits


def _lookers(plan: Plan, outputs: Iterable[str]) -> dict[str, tuple[str, ...]]:
    lookers: dict[str, dict[str, None]] = {key: {} for key in plan.nodes}
    for looker, node in plan.nodes.items():
        for target in node.looks:
            for below in plan.below(target):
                lookers[below][_seen_from(plan, looker, below)] = None
    for target in outputs:
        for below in plan.below(target):
            lookers[below][OUTPUTS] = None
    return {key: tuple(keys) for key, keys in lookers.items()}


def _refuse_cycles(nodes: dict[str, Node], waits: Mapping[str, Iterable[str]], file: str) -> None:
    """Walk who waits for whom, without recursion: a chain may be long.

    A group is two points, its start and its end: members wait for the start, others for the end.
    """
    edges: dict[tuple[str, bool], list[tuple[str, bool]]] = {}
    for node in nodes.values():
        awaited = [(key, True) for key in waits[node.key]]
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
