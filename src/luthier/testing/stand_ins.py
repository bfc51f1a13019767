"""Steps that stand in for others: a mocked step calls a mocked tool of its own name, whatever it did."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from luthier.errors import MockError
from luthier.spec import ToolsConfig
from luthier.text import near

if TYPE_CHECKING:
    from collections.abc import Collection

    from luthier.spec import Ensemble

STEPS = "mocked-steps"
"""The server that mocked steps call."""


def with_stand_ins(ensemble: Ensemble, names: Collection[str]) -> Ensemble:
    """The ensemble with these steps mocked. Raises MockError for a step that it does not have."""
    there = [step.name for step in ensemble.steps]
    for name in names:
        if name not in there:
            found = near(name, there)
            hint = f"Did you mean {' or '.join(found)}?" if found else f"There are {', '.join(there)}."
            raise MockError(f"There is no step {name!r} in {ensemble.name!r} to be mocked.", hint=hint)
    steps = tuple(
        msgspec.structs.replace(step, operation="tools", config=ToolsConfig(server=STEPS, tool=step.name))
        if step.name in names
        else step
        for step in ensemble.steps
    )
    return msgspec.structs.replace(ensemble, steps=steps)
