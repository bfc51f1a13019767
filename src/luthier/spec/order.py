"""Checks what steps name: that it is there, that it ended before, and that no steps wait for each other."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from luthier.spec.members import warn_of_members
from luthier.spec.names import BREAK_NAMES, LOOP_NAMES, SCOPE
from luthier.spec.words import meant, quoted
from luthier.text import one_line

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from luthier.errors import Fault
    from luthier.spec.draft import Draft, Uses
    from luthier.spec.expressions import Placed
    from luthier.spec.origin import KeyPath
    from luthier.spec.reader import Sink

_MOST_CIRCLES = 20
NOTHING: frozenset[str] = frozenset()


class Mention(NamedTuple):
    """A name that is used: in an expression, or as an entry of `depends_on` at `path`."""

    name: str
    use: Placed | None
    path: KeyPath

    def tell(
        self, sink: Sink, message: str, suggestion: str = "", *, member: str = "", warning: bool = False
    ) -> None:
        """A fault where the name stands; in an expression with a caret below it."""
        if self.use is None:
            sink.add(message, self.path, suggestion=suggestion, warning=warning)
            return
        path, offset = self.use.spot(self.name, member)
        within = sink.document.fault_within
        sink.faults.append(within(message, path, offset, suggestion=suggestion, warning=warning))


class Names:
    """The names of one ensemble. `steps` may be named.

    `idle` are steps that are not in the flow under their own name, with the names that they have there;
    `judges` run only where others are judged. `fields` are those of the run's state.
    """

    def __init__(
        self,
        sink: Sink,
        steps: Collection[str],
        inputs: Collection[str],
        idle: Mapping[str, list[str]],
        judges: Collection[str] = (),
        fields: Collection[str] = (),
    ) -> None:
        self.sink = sink
        self.steps = steps
        self.reads_env: dict[str, Fault] = {}
        self._inputs = inputs
        self._idle = idle
        self._judges = judges
        self._fields = fields

    def named(self, uses: Uses, owner: str, known: frozenset[str] = NOTHING) -> Iterator[Mention]:
        """Every other step that is named; what is not there becomes a fault. `known` are further names."""
        for key, use in uses.expressions.items():
            brought = {"break_when": BREAK_NAMES, "state.set": {owner}}.get(key, NOTHING)
            yield from self.in_expression(use, owner, known | brought)
        for path, name in uses.depends_on:
            mention = Mention(name, None, path)
            if name == owner:
                mention.tell(self.sink, f"step {quoted(owner)} depends on itself")
            elif name in self.steps:
                yield mention
            else:
                mention.tell(self.sink, self._absent(name), self._suggestion(name))

    def in_expression(self, use: Placed, owner: str, known: frozenset[str] = NOTHING) -> Iterator[Mention]:
        """The steps that one compiled value names."""
        self._check_inputs(use)
        self._note_env(use)
        warn_of_members(self.sink, use, {*self.steps, owner} - SCOPE - {""}, self._fields)
        for root in sorted({reference.root for reference in use.references} - SCOPE - known):
            mention = Mention(root, use, use.path)
            if root == owner:
                mention.tell(self.sink, f"step {quoted(owner)} names itself")
            elif root in self.steps:
                yield mention
            else:
                mention.tell(self.sink, self._absent(root), self._suggestion(root))

    def _only_inputs(self, use: Placed) -> None:
        """A value that is made before anything runs may name nothing else."""
        for root in sorted({reference.root for reference in use.references} - {"input"}):
            message = f"a default may name only `input`, not {quoted(root)}"
            Mention(root, use, use.path).tell(self.sink, message)

    def defaults(self, defaults: Mapping[str, Placed]) -> None:
        """Defaults name only inputs, and no two of them wait for each other."""
        edges: dict[str, dict[str, Mention]] = {}
        for name, use in defaults.items():
            self._only_inputs(use)
            edges[name] = {
                str(reference.path[0]): Mention("input", use, use.path)
                for reference in use.references
                if reference.root == "input" and reference.path
            }
        for circle in islice(circles(edges), _MOST_CIRCLES):
            message = f"defaults need each other: {' → '.join(circle)}"
            edges[circle[0]][circle[1]].tell(self.sink, message, member=circle[1])

    def _check_inputs(self, use: Placed) -> None:
        members = {ref.path[0] for ref in use.references if ref.root == "input" and ref.path}
        for member in sorted(member for member in members if isinstance(member, str)):
            if member not in self._inputs:
                message, suggestion = (
                    f"the input {quoted(member)} is not declared",
                    meant(member, self._inputs),
                )
                Mention("input", use, use.path).tell(
                    self.sink, message, suggestion, member=member, warning=True
                )

    def _note_env(self, use: Placed) -> None:
        """Whether a name may be read is for the project to say."""
        read = {str(ref.path[0]) for ref in use.references if ref.root == "env" and ref.path}
        for name in sorted(read - self.reads_env.keys()):
            path, offset = use.spot("env", name)
            message = f"the environment variable {quoted(name)} is not exposed to ensembles"
            hint = f"list {one_line(name)} under `expose_env` in luthier.yaml"
            self.reads_env[name] = self.sink.document.fault_within(message, path, offset, suggestion=hint)

    def _absent(self, name: str) -> str:
        if name in self._judges:
            return f"step {quoted(name)} runs only to judge others"
        if name in self._idle:
            others = " or ".join(map(quoted, self._idle[name]))
            return f"step {quoted(name)} is not in the flow" + (f", only as {others}" if others else "")
        if name in LOOP_NAMES:
            return f"{quoted(name)} is known only {LOOP_NAMES[name]}"
        return f"there is no step {quoted(name)}"

    def _suggestion(self, name: str) -> str:
        if name in self._idle or name in LOOP_NAMES or name in self._judges:
            return ""
        if name in self._inputs:
            return f"write input.{name}"
        return meant(name, {*self.steps, *SCOPE})


def check_free(names: Names, drafts: Iterable[Draft]) -> None:
    """Without a flow: steps run as their references allow, so these must not go in a circle."""
    edges: dict[str, dict[str, Mention]] = {}
    for draft in drafts:
        named = {mention.name: mention for mention in names.named(draft.uses, draft.name)}
        edges[draft.name] = {**named, **edges.get(draft.name, {})}
    for circle in islice(circles(edges), _MOST_CIRCLES):
        message = f"steps wait for each other: {' → '.join(circle)}"
        edges[circle[0]][circle[1]].tell(names.sink, message, "each waits for the next")


def circles(edges: Mapping[str, Iterable[str]]) -> Iterator[list[str]]:
    """Closed ways through the graph, first name repeated at the end; no two of them share a name."""
    left = {name: {other for other in named if other in edges} for name, named in edges.items()}
    while left := _stripped(left):
        way = {next(iter(left)): None}
        while (following := min(left[next(reversed(way))])) not in way:
            way[following] = None
        names = list(way)
        circle = names[names.index(following) :]
        yield [*circle, circle[0]]
        for name in circle:
            del left[name]
        left = {name: {other for other in named if other in left} for name, named in left.items()}


def _stripped(left: dict[str, set[str]]) -> dict[str, set[str]]:
    """The graph without all that can run: what remains are circles and what waits for them."""
    waiting: dict[str, list[str]] = {name: [] for name in left}
    counts = {name: len(named) for name, named in left.items()}
    for name, named in left.items():
        for other in named:
            waiting[other].append(name)
    ready = [name for name, count in counts.items() if not count]
    while ready:
        name = ready.pop()
        del counts[name]
        for other in waiting[name]:
            counts[other] -= 1
            if not counts[other]:
                ready.append(other)
    return {name: {other for other in left[name] if other in counts} for name in counts}
