"""What the expressions of a run may see: its inputs, its steps, and little else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from luthier.taint import SECRET, Label, Labelled, join, merge
from luthier.workflows.record import NULL
from luthier.workflows.run import StepStatus, status_of
from luthier.workflows.scores import summary

if TYPE_CHECKING:
    from collections.abc import Callable

    from luthier.expr import Compiled
    from luthier.workflows.machine import State
    from luthier.workflows.progress import Progress

    _Maker = Callable[[Progress, Progress], Labelled[Any] | None]


class RunScope(Mapping[str, Labelled[Any]]):
    """A live view from one place. A step's mapping is made when it is first seen after its end, and kept.

    `viewer` None: from outside of all control steps.
    """

    __slots__ = ("_ended", "_fixed", "_state", "_viewer")

    def __init__(
        self,
        fixed: Mapping[str, Labelled[Any]],
        state: State,
        viewer: Progress | None = None,
        ended: dict[str, Labelled[Any]] | None = None,
    ) -> None:
        self._fixed = fixed
        self._state = state
        self._viewer = viewer
        self._ended: dict[str, Labelled[Any]] = {} if ended is None else ended

    def seen_from(self, viewer: Progress) -> RunScope:
        """The same as seen from inside of control steps, with the names that they bring."""
        if viewer.parent is None and viewer.node.members is None:
            return self
        return RunScope(self._fixed, self._state, viewer, self._ended)

    def __getitem__(self, name: str) -> Labelled[Any]:
        if name == "state" and self._state.values:
            return self._current()
        if name == "scoring":
            return self._scores()
        seen = self._fixed.get(name)
        if seen is None and name in _BROUGHT and self._viewer is not None:
            seen = _brought(name, self._viewer)
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

    def _scores(self) -> Labelled[Any]:
        """What the steps that have ended were judged, and what that comes to."""
        judged = [
            one for one in self._state.nodes.values() if one.ended is not None and one.ended.score is not None
        ]
        found = {progress.key: status_of(progress) for progress in judged}
        label = join(status.label for status in found.values())
        return Labelled(summary(found, self._state.plan.aggregation), label)

    def _label_around(self, name: str) -> Label:
        """Of what has not run: that of what kept the loop around it from running it."""
        plan = self._state.plan
        depth = plan.shared(name, self._viewer.node.key) if self._viewer is not None else 0
        around = (self._state.seen(loop, self._viewer) for loop in plan.loops[name][depth:])
        return join(loop.control for loop in around if loop is not None)

    def __iter__(self) -> Iterator[str]:
        yield from self._fixed
        if self._viewer is not None:
            yield from dict.fromkeys(name for _, _, makers in _around(self._viewer) for name in makers)
        yield from self._state.plan.nodes

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _brought(name: str, viewer: Progress) -> Labelled[Any] | None:
    """What a name of those that control steps bring stands for: the innermost of them that brings it."""
    for group, inner, makers in _around(viewer):
        if name in makers:
            return makers[name](group, inner)
    return None


def _around(viewer: Progress) -> Iterator[tuple[Progress, Progress, Mapping[str, _Maker]]]:
    """Each control step, what stands in it on the way to the viewer, and the names that it brings there.

    Innermost first, and before all others what the viewer's own expressions see.
    """
    group: Progress | None = viewer
    inner, part = viewer, "itself"
    while group is not None:
        makers = _BRINGS.get((group.node.kind, part))
        if makers is not None:
            yield group, inner, makers
        inner, part, group = group, group.node.part, group.parent


def _item(group: Progress, inner: Progress) -> Labelled[Any] | None:
    return None if group.items is None else group.items[_number(inner)]


def _index(group: Progress, inner: Progress) -> Labelled[Any]:
    return Labelled(_number(inner), group.control)


def _last_batch(group: Progress, _: Progress) -> Labelled[Any]:
    return _results(group, group.bodies[group.since :])


def _iterations(group: Progress, _: Progress) -> Labelled[Any]:
    return Labelled(len(group.bodies), group.control)


def _result_before(group: Progress, inner: Progress) -> Labelled[Any]:
    return _result_of(group, _number(inner) - 1)


def _result_so_far(group: Progress, _: Progress) -> Labelled[Any]:
    return _result_of(group, len(group.bodies) - 1)


def _all_results(group: Progress, _: Progress) -> Labelled[Any]:
    return _results(group, group.bodies)


def _number(body: Progress) -> int:
    """Which iteration this is: `loop[3].`."""
    return int(body.prefixes[-1].rpartition("[")[2][:-2])


def _results(group: Progress, bodies: list[Progress]) -> Labelled[Any]:
    outputs = [NULL if body.ended is None else body.ended.output for body in bodies]
    return merge(outputs).joined(group.control)


def _result_of(group: Progress, index: int) -> Labelled[Any]:
    if index < 0:
        return Labelled(None, group.control)
    ended = group.bodies[index].ended
    return NULL if ended is None else ended.output


def _caught(group: Progress, _: Progress) -> Labelled[Any]:
    """What `catch` is there for: the error, the step that it came from, and its kind as a name."""
    caught = group.caught
    if caught is None:
        return NULL
    error = caught.error
    return Labelled({**error.view(), "name": error.kind, "step": caught.step}, caught.label)


_BRINGS: dict[tuple[str, str], dict[str, _Maker]] = {
    ("foreach", "body"): {"item": _item, "index": _index},
    ("foreach", "itself"): {"lastBatchResults": _last_batch},
    ("while", "body"): {"iteration": _index, "lastIterationResults": _result_before},
    ("while", "itself"): {"iteration": _iterations, "lastIterationResults": _result_so_far},
    ("map-reduce", "body"): {"item": _item, "index": _index},
    ("map-reduce", "reduce"): {"mapResults": _all_results, "results": _all_results},
    ("try", "catch"): {"error": _caught},
}
"""The names that a kind of control step brings to one of its parts, or to its own expressions."""

_BROUGHT = frozenset(name for makers in _BRINGS.values() for name in makers)


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
