"""What the expressions of a run may see: its inputs, its steps, and little else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from luthier.taint import SECRET, Label, Labelled, join, merge
from luthier.workflows.run import status_of

if TYPE_CHECKING:
    from luthier.expr import Compiled
    from luthier.workflows.machine import State


class RunScope(Mapping[str, Labelled[Any]]):
    """A live view: a step's mapping is made when it is first looked at after its end, and kept."""

    def __init__(self, fixed: Mapping[str, Labelled[Any]], state: State) -> None:
        self._fixed = fixed
        self._state = state
        self._ended: dict[str, Labelled[Any]] = {}

    def __getitem__(self, name: str) -> Labelled[Any]:
        seen = self._fixed.get(name) or self._ended.get(name)
        if seen is not None:
            return seen
        progress = self._state.nodes.get(name)
        if progress is None:
            raise KeyError(name)
        view = status_of(progress).view()
        if progress.ended is None:
            return Labelled(view)
        self._ended[name] = labelled = _labelled(view, progress.ended.output, progress.ended.label)
        return labelled

    def __iter__(self) -> Iterator[str]:
        yield from self._fixed
        yield from self._state.nodes

    def __len__(self) -> int:
        return len(self._fixed) + len(self._state.nodes)


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


def _labelled(view: dict[str, Any], output: Labelled[Any], label: Label) -> Labelled[Any]:
    """The mapping with the step's label, and inside its output the labels of the parts."""
    if not output.parts and output.label == label:
        return Labelled(view, label)
    parts = {f"/output{pointer}": part for pointer, part in output.parts.items()}
    return Labelled(view, label, {"/output": output.label, **parts})
