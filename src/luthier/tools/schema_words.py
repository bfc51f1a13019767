"""A validator's error in plain words: what was expected and what kind of thing was found, never the value.

Values stay out because the words go to models, logs and the audit, and a value may be secret or huge.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from jsonschema_rs import ValidationErrorKind as Kind

from luthier.text import near, one_line
from luthier.tools.pointers import follow, pointer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from jsonschema_rs import ValidationError

    from luthier.tools.tool import JsonObject

SHOWN_OPTIONS = 10
SHOWN_FORMS = 4
_SHOWN_LENGTH = 80


class SchemaFault(msgspec.Struct, frozen=True):
    """One thing wrong with a value: where (JSON Pointer, empty for the whole), by which keyword, in words."""

    path: str
    rule: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


def faults_of(error: ValidationError, value: Any, schema: JsonObject) -> Iterator[SchemaFault]:
    """One error as one fault, as one for each unknown property, or as those of the likeliest form."""
    path = [*error.instance_path]
    match error.kind:
        case Kind.AdditionalProperties(unexpected) | Kind.UnevaluatedProperties(unexpected):
            yield from _unknown(error, path, unexpected, _at(value, path), schema)
        case Kind.AnyOf(context) | Kind.OneOfNotValid(context):
            yield from _forms(error, path, context, value, schema)
        case _:
            yield SchemaFault(pointer(path), error.kind.name, _words(error.kind, _at(value, path)))


def type_name(value: Any) -> str:
    """What JSON calls a value of this kind, with its article."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case str():
            return "a string"
        case int():
            return "an integer"
        case float():
            return "a number"
        case list() | tuple():
            return "an array"
        case _:
            return "an object"


def _unknown(
    error: ValidationError, path: list[Any], names: list[str], given: Any, schema: JsonObject
) -> Iterator[SchemaFault]:
    parent = follow(schema, pointer(error.schema_path[:-1]))
    named = parent.get("properties") if isinstance(parent, dict) else None
    known = list(named) if isinstance(named, dict) else []
    for name in names:
        message = "is not a known property"
        if close := near(name, (other for other in known if other not in given)):
            message += f"; did you mean {_listed(map(_quoted, close), 'or')}?"
        elif known and len(known) <= SHOWN_OPTIONS:
            message += f"; known are {_listed(map(_quoted, known), 'and')}"
        yield SchemaFault(pointer([*path, name]), error.kind.name, message)


def _forms(
    error: ValidationError,
    path: list[Any],
    context: list[list[ValidationError]],
    value: Any,
    schema: JsonObject,
) -> Iterator[SchemaFault]:
    """Forms that want another type altogether are passed over; what is left explains itself."""
    context = [errors for errors in context if errors]
    likely = [errors for errors in context if not any(_is_type_error(inner, path) for inner in errors)]
    likely = [
        errors for errors in likely if not any(_is_tag_error(inner, path) for inner in errors)
    ] or likely
    if len(likely) == 1:
        for inner in likely[0]:
            yield from faults_of(inner, value, schema)
        return
    if not likely and (wanted := _wanted_types(context)):
        message = f"must be {_types(wanted)}, not {type_name(_at(value, path))}"
    else:
        shown = [_first(errors, len(path), value) for errors in (likely or context)[:SHOWN_FORMS]]
        more = len(likely or context) - len(shown)
        tail = f"; and {more} more" if more else ""
        message = f"fits none of the {len(context)} forms allowed here ({'; '.join(shown)}{tail})"
    yield SchemaFault(pointer(path), error.kind.name, message)


def _is_type_error(error: ValidationError, path: list[Any]) -> bool:
    return isinstance(error.kind, Kind.Type) and [*error.instance_path] == path


def _is_tag_error(error: ValidationError, path: list[Any]) -> bool:
    """Whether a direct member has not the one value by which this form is told from the others."""
    return isinstance(error.kind, Kind.Constant) and [*error.instance_path[:-1]] == path != [
        *error.instance_path
    ]


def _wanted_types(context: list[list[ValidationError]]) -> set[str]:
    kinds = [inner.kind for errors in context for inner in errors]
    return {name for kind in kinds if isinstance(kind, Kind.Type) for name in kind.types}


def _first(errors: list[ValidationError], depth: int, value: Any) -> str:
    error = errors[0]
    inner = pointer(error.instance_path[depth:])
    words = _words(error.kind, _at(value, error.instance_path))
    return f"{inner} {words}" if inner else words


def _words(kind: Kind, value: Any) -> str:  # noqa: C901, PLR0911, PLR0912  (one table, a line a keyword)
    match kind:
        case Kind.Type(types):
            return f"must be {_types(types)}, not {type_name(value)}"
        case Kind.Required(name):
            return f"lacks the required property {_quoted(name)}"
        case Kind.Enum(options):
            return _one_of(options, value)
        case Kind.Constant(expected):
            return f"must be {_json(expected)}"
        case Kind.Minimum(limit):
            return f"must be at least {limit}"
        case Kind.Maximum(limit):
            return f"must be at most {limit}"
        case Kind.ExclusiveMinimum(limit):
            return f"must be more than {limit}"
        case Kind.ExclusiveMaximum(limit):
            return f"must be less than {limit}"
        case Kind.MultipleOf(step):
            return f"must be a multiple of {step}"
        case Kind.MinLength(limit):
            return f"must have at least {_counted(limit, 'character')}"
        case Kind.MaxLength(limit):
            return f"must have at most {_counted(limit, 'character')}"
        case Kind.MinItems(limit):
            return f"must have at least {_counted(limit, 'item')}"
        case Kind.MaxItems(limit) | Kind.AdditionalItems(limit):
            return f"must have at most {_counted(limit, 'item')}"
        case Kind.MinProperties(limit):
            return f"must have at least {_counted(limit, 'property')}"
        case Kind.MaxProperties(limit):
            return f"must have at most {_counted(limit, 'property')}"
        case Kind.UniqueItems():
            return "must not hold the same item twice"
        case Kind.Pattern(pattern):
            return f"must match the pattern {_quoted(pattern)}"
        case Kind.PropertyNames(error):
            return f"has a property whose name {_words(error.kind, '')}"
        case Kind.Contains():
            return "does not hold the items that it must contain"
        case Kind.UnevaluatedItems():
            return "has items that are not allowed"
        case Kind.FalseSchema():
            return "is not allowed"
        case Kind.Not():
            return "has the very form that is forbidden here"
        case Kind.OneOfMultipleValid(context):
            return f"fits {sum(not errors for errors in context)} forms where it must fit exactly one"
        case Kind.ContentEncoding(encoding):
            return f"must be encoded as {_quoted(encoding)}"
        case Kind.Format(name):
            return f"must be a usable {_quoted(name)}"
        case _:
            return f"breaks the rule {_quoted(kind.name)}"


_TYPES = {
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "a boolean",
    "array": "an array",
    "object": "an object",
}


def _types(names: Iterable[str]) -> str:
    ordered = sorted(names, key=lambda name: (name == "null", name))
    return _listed([_TYPES.get(name, name) for name in ordered], "or")


def _one_of(options: list[Any], value: Any) -> str:
    shown = [_json(option) for option in options[:SHOWN_OPTIONS]]
    if len(options) > len(shown):
        shown.append(f"{len(options) - len(shown)} more")
    words = (
        f"must be one of {_listed(shown, 'or')}" if len(options) > 1 else f"must be {_listed(shown, 'or')}"
    )
    names = [option for option in options if isinstance(option, str)]
    close = near(value, names, 1) if isinstance(value, str) else ()
    return f"{words}; did you mean {_quoted(close[0])}?" if close else words


def _at(value: Any, path: Iterable[str | int]) -> Any:
    return follow(value, pointer(path))


def _quoted(text: str) -> str:
    return f'"{one_line(text, _SHOWN_LENGTH)}"'


def _json(value: Any) -> str:
    return one_line(msgspec.json.encode(value).decode(), _SHOWN_LENGTH)


def _counted(limit: int, noun: str) -> str:
    plural = noun[:-1] + "ies" if noun.endswith("y") else noun + "s"
    return f"{limit} {noun if limit == 1 else plural}"


def _listed(words: Iterable[str], last: str) -> str:
    *rest, final = words
    return f"{', '.join(rest)} {last} {final}" if rest else final
