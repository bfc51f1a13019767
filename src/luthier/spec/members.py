"""Warns of what is read and nobody can find: members that steps, `run` and the state do not have, failures.

All of it is null at any time, so whoever writes it means something else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from luthier.spec.words import listed, meant, quoted

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from luthier.spec.draft import Uses
    from luthier.spec.expressions import Placed
    from luthier.spec.reader import Sink

STATUS = (
    *("output", "success", "failed", "executed", "attempted", "skipped", "error", "duration", "attempts"),
    *("retry_count", "cached", "score", "envelope"),
)
"""What every step has."""

RUN = ("id", "ensemble", "started")


def warn_of_members(sink: Sink, use: Placed, steps: Collection[str], fields: Collection[str]) -> None:
    """Members that what an expression names does not have. `fields` are those of the state."""
    for reference in sorted(use.references, key=lambda one: (one.root, str(one.path))):
        if not reference.path or not isinstance(reference.path[0], str):
            continue
        root, member = reference.root, reference.path[0]
        there: Collection[str]
        if root in steps:
            what, there = "a step", STATUS
        elif root == "run":
            what, there = "`run`", RUN
        elif root == "state":
            what, there = "the state", fields
        else:
            continue
        if member not in there:
            has = f"it has {listed(there)}" if there else "declare it under `state` beside `agents`"
            hint = meant(member, there, otherwise=has)
            path, offset = use.spot(root, member)
            message = f"{what} has no {quoted(member)}"
            fault = sink.document.fault_within(message, path, offset, suggestion=hint, warning=True)
            sink.faults.append(fault)


def warn_of_unread(sink: Sink, steps: Iterable[tuple[str, Uses]], outputs: Iterable[Placed]) -> None:
    """Outputs made of a step's null when it fails: another step deals with the failure, they do not look."""
    outputs = list(outputs)
    seen = {name for use in outputs if use.compiled is not None for name in use.compiled.looked_at}
    for name, uses in steps:
        looks = (use.compiled.looked_at for use in uses.expressions.values() if use.compiled is not None)
        for target in sorted({target for looked in looks for target in looked} - seen):
            seen.add(target)
            for output in outputs:
                if any(reference.root == target for reference in output.references):
                    _tell_unread(sink, output, target, name)


def _tell_unread(sink: Sink, output: Placed, target: str, looker: str) -> None:
    path, offset = output.spot(target)
    message = f"when {quoted(target)} fails, this is made of null: {quoted(looker)} deals with its failure"
    hint = f"write {target}.output ?? …, or look at {target}.failed"
    fault = sink.document.fault_within(message, path, offset, suggestion=hint, warning=True)
    sink.faults.append(fault)
