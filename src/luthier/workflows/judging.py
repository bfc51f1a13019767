"""What a step goes by, read and made into an entry: conditions, the value of a switch, the list of a loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from luthier.errors import StepError
from luthier.taint import Labelled
from luthier.tools import delivered
from luthier.workflows.operations.texts import a_kind, spelled
from luthier.workflows.record import BranchTaken, ItemsRead

if TYPE_CHECKING:
    from collections.abc import Container

    from luthier.expr import Compiled
    from luthier.workflows.commands import What
    from luthier.workflows.nodes import Node


def asked(node: Node, what: What) -> Compiled:
    """The expression that a question is about."""
    if node.step is not None:
        return cast("Compiled", node.step.condition)
    return cast("Compiled", node.breaks if what == "break" else node.reads)


def answer(what: What, read: Labelled[Any], cases: Container[str]) -> BranchTaken | ItemsRead:
    """The entry for what was read. Raises StepError where it is of the wrong kind."""
    value = delivered(read.value)
    match what:
        case "items":
            if not isinstance(value, list):
                message = f"Foreach items must be an array, got: {a_kind(value)}"
                raise StepError("code", message, hint="Give `items` a list.")
            return ItemsRead(items=Labelled(value, read.label, read.parts))
        case "value":
            case = spelled(value)
            known = case in cases
            return BranchTaken(taken=known, case=case if known else None, label=read.whole)
    if value is not None and not isinstance(value, bool):
        message = f"the condition must give true or false, not {a_kind(value)}"
        raise StepError("condition", message, hint="Compare it with something, or write !! before it.")
    return BranchTaken(taken=value is True, label=read.whole)
