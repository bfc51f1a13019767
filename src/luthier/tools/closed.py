"""Closed types: sets of values so small that none of them can carry instructions.

One of a few words or numbers, true or false, a number between two bounds, a short text of a fixed form, one
of some ids. They are what a value that is not trusted may be endorsed through.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import msgspec

from luthier.errors import SchemaError
from luthier.tools.schema import Schema

if TYPE_CHECKING:
    from collections.abc import Iterable

LONGEST = 64
"""Characters of a text, and of the pattern that describes it."""

MOST = 1_000
"""Words that one may be chosen from."""

MOST_IDS = 10_000
"""Ids that one may be chosen from."""


class ClosedType(msgspec.Struct, frozen=True):
    """A closed type in words, and as the schema that judges."""

    words: str
    schema: Schema

    def fits(self, value: Any) -> bool:
        """Whether the value is of the type. What cannot be judged is not."""
        try:
            return self.schema.ok(value)
        except SchemaError:
            return False


def read_closed(written: Any) -> ClosedType:
    """`boolean`, or `{enum: […]}`, `{integer: [low, high]}`, `{number: [low, high]}`, `{pattern: …}`.

    Raises ValueError that says what is wrong.
    """
    if written == "boolean":
        return boolean()
    if not isinstance(written, dict) or len(written) != 1:
        raise ValueError("a closed type is boolean, or one of enum, integer, number and pattern")
    ((kind, bounds),) = written.items()
    match kind:
        case "enum" if isinstance(bounds, (list, tuple)):
            return enum(bounds)
        case "integer" | "number" if isinstance(bounds, (list, tuple)) and len(bounds) == 2:  # noqa: PLR2004
            return number(*bounds, whole=kind == "integer")
        case "pattern" if isinstance(bounds, str):
            return pattern(bounds)
        case "enum":
            raise ValueError("`enum` must be a list of words or numbers")
        case "integer" | "number":
            raise ValueError(f"`{kind}` must be its bounds: [low, high]")
        case "pattern":
            raise ValueError("`pattern` must be text")
    raise ValueError(f"there is no closed type {kind!r}: write boolean, enum, integer, number or pattern")


def boolean() -> ClosedType:
    return ClosedType("true or false", Schema({"type": "boolean"}))


def enum(options: Iterable[Any]) -> ClosedType:
    """One of a few short texts, numbers, true, false and null."""
    options = list(options)
    if not options or len(options) > MOST:
        raise ValueError(f"`enum` must have from 1 to {MOST} members")
    for option in options:
        if not isinstance(option, (str, int, float, bool, type(None))) or (
            isinstance(option, str) and len(option) > LONGEST
        ):
            raise ValueError(f"`enum` is for texts of at most {LONGEST} characters, numbers, true and false")
    shown = ", ".join(map(str, options[:10])) + (", …" if len(options) > 10 else "")  # noqa: PLR2004
    return ClosedType(f"one of {shown}", Schema({"enum": options}))


def number(low: Any, high: Any, *, whole: bool = False) -> ClosedType:
    """A number between two bounds, which belong to it."""
    for bound in (low, high):
        if not isinstance(bound, (int, float)) or isinstance(bound, bool) or not math.isfinite(bound):
            raise ValueError("the bounds must be numbers")
    if low > high:
        raise ValueError("the lower bound must come first")
    kind = "integer" if whole else "number"
    word = "a whole number" if whole else "a number"
    return ClosedType(f"{word} from {low} to {high}", Schema({"type": kind, "minimum": low, "maximum": high}))


def pattern(text: str) -> ClosedType:
    """A text of at most 64 characters that fits the regular expression from end to end."""
    if len(text) > LONGEST:
        raise ValueError(f"`pattern` may have at most {LONGEST} characters")
    for alone in (text, f"^(?:{text})$"):  # alone too, so that it cannot close the group around it
        schema = Schema({"type": "string", "maxLength": LONGEST, "pattern": alone})
        try:
            unchecked = schema.notes
        except SchemaError as error:
            raise ValueError(f"`pattern` is not a regular expression: {error.message}") from None
        if unchecked:
            raise ValueError("`pattern` must do without looking around and back")
    return ClosedType(f"a text of at most {LONGEST} characters that fits {text}", schema)


def id_of(ids: Any) -> ClosedType:
    """One of some ids, which are texts or whole numbers."""
    if not isinstance(ids, (list, tuple)) or not all(type(id) in (str, int) for id in ids):
        raise ValueError("`id_of` must be a list of texts or whole numbers")
    if len(ids) > MOST_IDS:
        raise ValueError(f"`id_of` may have at most {MOST_IDS} members")
    # JSON Schema takes 1.0 for 1, and an empty `enum` for no schema at all.
    schema: dict[str, Any] = {"type": ["string", "integer"], "enum": list(ids)}
    return ClosedType(f"one of {len(ids)} ids", Schema(schema if ids else {"not": {}}))
