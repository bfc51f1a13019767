"""What functions, filters and methods have in common: how they are called and read their arguments.

Given null for what it works on, it gives null, unless it says that it takes null. Given a kind that it does
not work on, it raises. The tests (`includes`, `startsWith`, `endsWith`) are false for everything that they do
not know.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from luthier.errors import ExpressionError
from luthier.expr.numbers import number_text
from luthier.expr.values import bare, is_number, kind

if TYPE_CHECKING:
    from luthier.expr.budget import Frame

TEXT = frozenset({"string"})
LIST = frozenset({"array"})
OBJECT = frozenset({"object"})
NUMBER = frozenset({"number"})
ANY: frozenset[str] = frozenset()

_WORDS = {
    "null": "null",
    "boolean": "true or false",
    "number": "a number",
    "string": "text",
    "array": "a list",
    "object": "an object",
}


class Function(msgspec.Struct, frozen=True):
    """`run(frame, *values)` gets bare values; `takes` are the kinds of the first, and ANY takes null too."""

    name: str
    run: Callable[..., Any]
    takes: frozenset[str]
    least: int = 1
    most: int | None = 1

    def call(self, frame: Frame, values: list[Any]) -> Any:
        """The result. Raises ExpressionError."""
        given = [bare(value) for value in values]
        if self.takes:
            found = kind(given[0])
            if found == "null":
                return None
            if found not in self.takes:
                works_on = " or ".join(_WORDS[name] for name in sorted(self.takes, reverse=True))
                raise ExpressionError(f"`{self.name}` works on {works_on}, not on {_WORDS[found]}.")
        return self.run(frame, *given)

    def arity(self, given: int, implied: int = 0) -> str:
        """What is wrong with that number of arguments, `implied` ones not counted; empty when nothing is."""
        least, most = self.least - implied, None if self.most is None else self.most - implied
        if given >= least and (most is None or given <= most):
            return ""
        if most is None:
            wanted = f"at least {least}"
        else:
            wanted = str(least) if most == least else f"{least} to {most}"
        return f"`{self.name}` takes {wanted} argument{'' if wanted == '1' else 's'}, not {given}."


def whole_number(value: Any, what: str, default: int) -> int:
    """An argument that counts: cut to a whole number, null is the default."""
    if value is None:
        return default
    if is_number(value):
        return int(value)
    raise ExpressionError(f"{what} must be a number, not {_WORDS[kind(value)]}.")


def short_text(value: Any, what: str, default: str) -> str:
    """An argument that is text; a number is taken as its text, null is the default."""
    if value is None:
        return default
    if isinstance(value, str):
        return value
    if is_number(value):
        return number_text(value)
    raise ExpressionError(f"{what} must be text, not {_WORDS[kind(value)]}.")
