"""The control steps of a written flow, kind by kind: what each may say."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, cast

from luthier.spec.control import (
    CONCURRENCY,
    ITERATIONS,
    BranchFlow,
    ForeachFlow,
    MapReduceFlow,
    ParallelFlow,
    SwitchFlow,
    TryFlow,
    WhileFlow,
)
from luthier.spec.expressions import placed, placed_condition
from luthier.spec.reader import Found
from luthier.spec.words import quoted

if TYPE_CHECKING:
    from luthier.expr import Compiled
    from luthier.spec.control import FlowItem, WaitFor
    from luthier.spec.draft import Uses
    from luthier.spec.expressions import Placed
    from luthier.spec.reader import Reader, Sink

MOST_ITERATIONS = 1_000_000
MOST_AT_ONCE = 10_000
WAITS = ("all", "any", "first")


class Items(Protocol):
    """Reads the items inside."""

    sink: Sink

    def items(self, found: Found | None, around: str = "") -> tuple[FlowItem, ...]: ...

    def item(self, found: Found, around: str, index: int | str) -> FlowItem | None: ...


Read = Callable[[Items, "Reader", str, "Uses", "Found | None"], "FlowItem | None"]


def _parallel(flow: Items, reader: Reader, name: str, _: Uses, steps: Found | None) -> FlowItem:
    found = steps or reader.take("steps", required=True)
    wait_for = cast("WaitFor", reader.choice(WAITS, "wait_for") or "all")
    reader.done()
    return ParallelFlow(name=name, steps=flow.items(found, name), wait_for=wait_for)


def _branch(flow: Items, reader: Reader, name: str, uses: Uses, _: Found | None) -> FlowItem | None:
    condition = _needed(placed_condition(reader.sink, reader.take("condition", required=True)), uses)
    then, otherwise = reader.take("then", required=True), reader.take("else")
    reader.done()
    chosen = flow.items(then, f"{name}_then"), flow.items(otherwise, f"{name}_else")
    if condition is None:
        return None
    return BranchFlow(name=name, condition=condition, then=chosen[0], otherwise=chosen[1])


def _switch(flow: Items, reader: Reader, name: str, uses: Uses, _: Found | None) -> FlowItem | None:
    value = _needed(placed(reader.sink, reader.take("value", required=True)), uses)
    inner, default = reader.inner("cases", required=True), reader.take("default")
    reader.done()
    if inner is not None and not inner.data:
        reader.sink.add("`cases` is empty", inner.path)
    cases = {}
    for number, (key, steps) in enumerate(inner.data.items() if inner else ()):
        at = Found((*reader.places["cases"], key), steps)
        cases[key] = flow.items(at, f"{name}_case{number}")
    otherwise = flow.items(default, f"{name}_default")
    return None if value is None else SwitchFlow(name=name, value=value, cases=cases, default=otherwise)


def _try(flow: Items, reader: Reader, name: str, _: Uses, steps: Found | None) -> FlowItem:
    found = steps or reader.take("steps", required=True)
    catch, lastly = reader.take("catch"), reader.take("finally")
    reader.done()
    if catch is None and lastly is None:
        reader.sink.add("a `try` has a `catch` or a `finally`", reader.path)
    return TryFlow(
        name=name,
        steps=flow.items(found, name),
        catch=flow.items(catch, f"{name}_catch"),
        lastly=flow.items(lastly, f"{name}_finally"),
    )


def _foreach(flow: Items, reader: Reader, name: str, uses: Uses, _: Found | None) -> FlowItem | None:
    items = _list(reader, uses)
    at_once = reader.whole("max_concurrency", low=1, high=MOST_AT_ONCE)
    break_when = placed_condition(reader.sink, reader.take("break_when"))
    if break_when is not None:
        uses.expressions["break_when"] = break_when
    step, steps = reader.take("step"), reader.take("steps")
    reader.done()
    if (step is None) == (steps is None):
        reader.sink.add("a `foreach` has either `step` or `steps`", reader.path)
    lone = flow.item(step, name, "step") if step else None
    body = flow.items(steps, name) if lone is None else (lone,)
    if items is None or not body:
        return None
    return ForeachFlow(
        name=name,
        items=items,
        steps=body,
        lone=lone is not None,
        max_concurrency=at_once or CONCURRENCY,
        break_when=break_when.compiled if break_when else None,
    )


def _while(flow: Items, reader: Reader, name: str, uses: Uses, _: Found | None) -> FlowItem | None:
    condition = _needed(placed_condition(reader.sink, reader.take("condition", required=True)), uses)
    most = reader.whole("max_iterations", low=1, high=MOST_ITERATIONS)
    steps = reader.take("steps", required=True)
    reader.done()
    body = flow.items(steps, name)
    if condition is None or not body:
        return None
    return WhileFlow(name=name, condition=condition, steps=body, max_iterations=most or ITERATIONS)


def _map_reduce(flow: Items, reader: Reader, name: str, uses: Uses, _: Found | None) -> FlowItem | None:
    items = _list(reader, uses)
    at_once = reader.whole("max_concurrency", low=1, high=MOST_AT_ONCE)
    mapping, reducing = reader.take("map", required=True), reader.take("reduce", required=True)
    reader.done()
    each = flow.item(mapping, name, "map") if mapping else None
    reduce = flow.item(reducing, name, "reduce") if reducing else None
    if items is None or each is None or reduce is None:
        return None
    return MapReduceFlow(
        name=name, items=items, map=each, reduce=reduce, max_concurrency=at_once or CONCURRENCY
    )


READERS: dict[str, Read] = {
    "parallel": _parallel,
    "branch": _branch,
    "foreach": _foreach,
    "try": _try,
    "switch": _switch,
    "while": _while,
    "map-reduce": _map_reduce,
}
"""The control steps of the language."""

KINDS = {kind: kind for kind in READERS} | {"mapReduce": "map-reduce", "map_reduce": "map-reduce"}
"""Every spelling of a kind."""


def _needed(found: Placed | None, uses: Uses) -> Compiled | None:
    """The expression that the control step cannot do without, noted among its uses."""
    if found is None:
        return None
    uses.expressions[str(found.path[-1])] = found
    return found.compiled


def _list(reader: Reader, uses: Uses) -> Compiled | None:
    found = reader.take("items", required=True)
    if found is not None and not isinstance(found.value, (list, str)):
        reader.sink.wrong("a list, or an expression that gives one", *found)
        return None
    items = _needed(placed(reader.sink, found), uses)
    value: Any = None if found is None else found.value
    if items is not None and items.is_constant and isinstance(value, str):
        reader.sink.add(f"{quoted('items')} must be a list, not text", reader.places["items"])
        return None
    return items
