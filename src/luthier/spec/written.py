"""Checks what the steps of a written flow name: a step may name only what ends before it starts.

Control steps bring names of their own, each in its part. What stands inside one is known by name to all that
comes after it, and to the conditions of a loop: there, it is that of the last iteration.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from luthier.spec.control import (
    BranchFlow,
    ForeachFlow,
    MapReduceFlow,
    ParallelFlow,
    SwitchFlow,
    TryFlow,
    WhileFlow,
)
from luthier.spec.names import CATCH_NAMES, ITEM_NAMES, ITERATION_NAMES, REDUCE_NAMES
from luthier.spec.order import NOTHING
from luthier.spec.words import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from luthier.spec.control import FlowItem
    from luthier.spec.draft import Place
    from luthier.spec.order import Names


def check_written(names: Names, flow: Iterable[FlowItem], places: Mapping[str, Place]) -> None:
    """Every name that a step uses before it is there becomes a fault at its place."""
    _Walk(names, places).sequence(flow, frozenset(), NOTHING)


class _Walk:
    """`ended` are the steps that are over where one stands, `known` what control steps around bring."""

    def __init__(self, names: Names, places: Mapping[str, Place]) -> None:
        self._names = names
        self._places = places
        self._around: list[str] = []
        self._beside: list[frozenset[str]] = []  # what runs at the same time, or in place of this

    def sequence(self, items: Iterable[FlowItem], ended: frozenset[str], known: frozenset[str]) -> None:
        for item in items:
            self.item(item, ended, known)
            ended |= _all_names((item,))

    def item(self, item: FlowItem, ended: frozenset[str], known: frozenset[str]) -> None:
        own = known | ITERATION_NAMES if isinstance(item, WhileFlow) else known
        self._mentions(item, ended, own)
        self._around.append(item.name)
        match item:
            case ParallelFlow(steps=steps):
                self._apart([(step,) for step in steps], ended, known)
            case BranchFlow() | SwitchFlow():
                self._apart([sequence for sequence, _ in _sequences(item)], ended, known)
            case TryFlow() | MapReduceFlow():
                for sequence, brought in _sequences(item):
                    self.sequence(sequence, ended, known | brought)
                    ended |= _all_names(sequence)
            case ForeachFlow() | WhileFlow():
                for sequence, brought in _sequences(item):
                    self.sequence(sequence, ended, known | brought)
        self._around.pop()

    def _apart(
        self, sequences: list[tuple[FlowItem, ...]], ended: frozenset[str], known: frozenset[str]
    ) -> None:
        """Sequences that know nothing of each other."""
        self._beside.append(_all_names(item for sequence in sequences for item in sequence))
        for sequence in sequences:
            self.sequence(sequence, ended, known)
        self._beside.pop()

    def _mentions(self, item: FlowItem, ended: frozenset[str], known: frozenset[str]) -> None:
        uses = self._places[item.name].uses
        loops = isinstance(item, WhileFlow | ForeachFlow)
        inside = _all_names(part for part, _ in parts(item)) if loops else NOTHING
        for mention in self._names.named(uses, item.name, known):
            early = mention.use is uses.expressions.get("items")
            if mention.name in ended or (mention.name in inside and not early):
                continue
            owner, named = quoted(item.name), quoted(mention.name)
            if mention.name in self._around:
                message = f"step {owner} stands inside {named}"
                mention.tell(self._names.sink, message, "what is inside ends first")
            else:
                beside = any(mention.name in names for names in self._beside)
                when = "does not run before" if beside else "comes after"
                message = f"step {named} {when} {owner} in the flow"
                mention.tell(self._names.sink, message, "put it before")


def parts(item: FlowItem) -> Iterator[tuple[FlowItem, frozenset[str]]]:
    """The items right inside, each with the names that are brought to it."""
    for sequence, brought in _sequences(item):
        for inner in sequence:
            yield inner, brought


def _sequences(item: FlowItem) -> Iterator[tuple[tuple[FlowItem, ...], frozenset[str]]]:
    match item:
        case ParallelFlow(steps=steps):
            yield steps, NOTHING
        case BranchFlow(then=then, otherwise=otherwise):
            yield then, NOTHING
            yield otherwise, NOTHING
        case SwitchFlow(cases=cases, default=default):
            for sequence in (*cases.values(), default):
                yield sequence, NOTHING
        case TryFlow(steps=steps, catch=catch, lastly=lastly):
            yield steps, NOTHING
            yield catch, CATCH_NAMES
            yield lastly, NOTHING
        case ForeachFlow(steps=steps):
            yield steps, ITEM_NAMES
        case WhileFlow(steps=steps):
            yield steps, ITERATION_NAMES
        case MapReduceFlow(map=each, reduce=reduce):
            yield (each,), ITEM_NAMES
            yield (reduce,), REDUCE_NAMES


def _all_names(items: Iterable[FlowItem]) -> frozenset[str]:
    found: set[str] = set()
    left = list(items)
    while left:
        item = left.pop()
        found.add(item.name)
        left += [inner for inner, _ in parts(item)]
    return frozenset(found)
