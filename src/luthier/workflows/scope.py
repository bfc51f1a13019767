"""What the expressions of a run may see: its inputs, its steps, and little else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from luthier.taint import SECRET, Label, Labelled, join, merge
from luthier.workflows.record import NULL
from luthier.workflows.run import StepStatus, status_of

if TYPE_CHECKING:
    from luthier.expr import Compiled
    from luthier.workflows.machine import State
    from luthier.workflows.progress import Progress


class RunScope(Mapping[str, Labelled[Any]]):
    """A live view from one place. A step's mapping is made when it is first seen after its end, and kept.

    `viewer` None: from outside of all control steps.
    """

    def __init__(self, fixed: Mapping[str, Labelled[Any]], state: State) -> None:
        self._fixed = fixed
        self._state = state
        self._ended: dict[str, Labelled[Any]] = {}
        self._viewer: Progress | None = None
        self._brought: Mapping[str, Labelled[Any]] = {}

    def seen_from(self, viewer: Progress) -> RunScope:
        """The same as seen from inside of control steps, with the names that they bring."""
        if viewer.parent is None and viewer.node.members is None:
            return self
        inside = RunScope(self._fixed, self._state)
        inside._ended = self._ended
        inside._viewer = viewer
        inside._brought = dict(_brought(viewer))
        return inside

    def __getitem__(self, name: str) -> Labelled[Any]:
        if name == "state" and self._state.values:
            return self._current()
        seen = self._fixed.get(name) or self._brought.get(name)
        if seen is not None:
            return seen
        if name not in self._state.plan.nodes:
            raise KeyError(name)
        progress = self._state.seen(name, self._viewer)
        if progress is None:
            return Labelled(StepStatus(skipped=True).view(), self._label_around(name))
        if progress.key in self._ended:
            return self._ended[progress.key]
        view = status_of(progress).view()
        if progress.ended is None:
            return Labelled(view)
        made = step_view(view, progress.ended.output, progress.ended.label)
        self._ended[progress.key] = made
        return made

    def _current(self) -> Labelled[Any]:
        """The run's state: what it began with, and what steps have set since."""
        initial = self._fixed["state"]
        began = {field: initial.member(field, value) for field, value in initial.value.items()}
        return merge(began | self._state.values)

    def _label_around(self, name: str) -> Label:
        """Of what has not run: that of what kept the loop around it from running it."""
        plan = self._state.plan
        depth = plan.shared(name, self._viewer.node.key) if self._viewer is not None else 0
        around = (self._state.seen(loop, self._viewer) for loop in plan.loops[name][depth:])
        return join(loop.control for loop in around if loop is not None)

    def __iter__(self) -> Iterator[str]:
        yield from self._fixed
        yield from self._brought
        yield from self._state.plan.nodes

    def __len__(self) -> int:
        return len(self._fixed) + len(self._brought) + len(self._state.plan.nodes)


def _brought(viewer: Progress) -> Iterator[tuple[str, Labelled[Any]]]:
    """The names that control steps bring, those of the innermost last."""
    around: list[Progress] = [viewer]
    while around[-1].parent is not None:
        around.append(around[-1].parent)
    for group, inner in zip(around[:0:-1], around[-2::-1], strict=True):
        part = next((part for part, key in group.node.parts.items() if key == inner.node.key), "")
        yield from _brought_to(group, inner, part)
    yield from _brought_to(viewer, viewer, "itself")


def _brought_to(group: Progress, inner: Progress, part: str) -> Iterator[tuple[str, Labelled[Any]]]:
    """What a control step brings to one of its parts, or to its own expressions."""
    match group.node.kind, part:
        case "foreach" | "map-reduce", "body":
            index = _number(inner)
            if group.items is not None:
                yield "item", group.items[index]
            yield "index", Labelled(index, group.control)
        case "foreach", "itself":
            yield "lastBatchResults", _results(group, group.bodies[group.since :])
        case "while", "body":
            index = _number(inner)
            yield "iteration", Labelled(index, group.control)
            yield "lastIterationResults", _last_of(group, index - 1)
        case "while", "itself":
            yield "iteration", Labelled(len(group.bodies), group.control)
            yield "lastIterationResults", _last_of(group, len(group.bodies) - 1)
        case "map-reduce", "reduce":
            results = _results(group, group.bodies)
            yield "mapResults", results
            yield "results", results
        case "try", "catch":
            yield "error", _caught(group)


def _number(body: Progress) -> int:
    """Which iteration this is: `loop[3].`."""
    return int(body.prefixes[-1].rpartition("[")[2][:-2])


def _results(group: Progress, bodies: list[Progress]) -> Labelled[Any]:
    outputs = [NULL if body.ended is None else body.ended.output for body in bodies]
    return merge(outputs).joined(group.control)


def _last_of(group: Progress, index: int) -> Labelled[Any]:
    if index < 0:
        return Labelled(None, group.control)
    ended = group.bodies[index].ended
    return NULL if ended is None else ended.output


def _caught(group: Progress) -> Labelled[Any]:
    """What `catch` is there for: the error, the step that it came from, and its kind as a name."""
    caught = group.caught
    if caught is None:
        return NULL
    error = caught.error
    return Labelled({**error.view(), "name": error.kind, "step": caught.step}, caught.label)


def label_named(compiled: Compiled, names: Mapping[str, Labelled[Any]]) -> Label:
    """The join of all that an expression names: the label of the fact that it could not be evaluated."""
    roots = {one.root for one in compiled.references}
    return join(names[name].whole for name in roots if name in names)


def fixed_names(
    inputs: Labelled[Any], run: Mapping[str, Any], environ: Mapping[str, str], exposed: tuple[str, ...]
) -> dict[str, Labelled[Any]]:
    """The names that do not change while a run lasts. Of the environment only what the project exposes."""
    env = {name: Labelled(environ.get(name), SECRET) for name in exposed}
    return {
        "input": inputs,
        "state": Labelled({}),
        "run": Labelled(dict(run)),
        "env": merge(env),
    }


def step_view(view: dict[str, Any], output: Labelled[Any], label: Label) -> Labelled[Any]:
    """The mapping with the step's label, and inside its output the labels of the parts."""
    if not output.parts and output.label == label:
        return Labelled(view, label)
    parts = {f"/output{pointer}": part for pointer, part in output.parts.items()}
    return Labelled(view, label, {"/output": output.label, **parts})
