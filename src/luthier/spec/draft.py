"""Steps as far as they could be read: what they are called and use is known even where the rest is faulty."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from luthier.spec.ensemble import Step
    from luthier.spec.expressions import Placed
    from luthier.spec.origin import KeyPath


class Uses:
    """What names other steps: expressions by the field they stand in, and explicit names by their places."""

    __slots__ = ("depends_on", "evaluators", "expressions", "fields")

    def __init__(self, expressions: dict[str, Placed], depends_on: list[tuple[KeyPath, str]]) -> None:
        self.expressions = expressions
        self.depends_on = depends_on
        self.fields: list[tuple[KeyPath, str]] = []  # of the run's state
        self.evaluators: list[tuple[KeyPath, str]] = []  # the step that judges this one


class Draft:
    """One entry of the list of steps. `step` is None where nobody can tell what it does."""

    __slots__ = ("name", "path", "step", "uses")

    def __init__(self, name: str, path: KeyPath) -> None:
        self.name = name
        self.path = path
        self.step: Step | None = None
        self.uses = Uses({}, [])


class Place:
    """One place in a written flow: a step's (`step` names its definition) or a group's (None)."""

    __slots__ = ("path", "step", "uses")

    def __init__(self, path: KeyPath, step: str | None, uses: Uses) -> None:
        self.path = path
        self.step = step
        self.uses = uses
