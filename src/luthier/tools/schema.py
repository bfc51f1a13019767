"""JSON Schema as a judge of values: compiled on first use, once, with nothing fetched and everything bounded.

Servers write these schemas, so they are read leniently and trusted with nothing. Leniently: where no known
dialect is declared and 2020-12 does not fit, draft 7 and draft 4 are tried; a pattern that the linear engine
cannot run is left out. Both are told in `notes`. With nothing: no reference leaves the document; size, depth
and work are bounded. `format` is an annotation.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn

import jsonschema_rs as engine

from luthier.errors import SchemaError
from luthier.text import one_line
from luthier.tools.schema_bounds import MAX_MATCHED_TEXT, MAX_STEPS, Work, check_size
from luthier.tools.schema_patterns import patterns_in, without
from luthier.tools.schema_words import SchemaFault, faults_of

if TYPE_CHECKING:
    from luthier.tools.tool import JsonObject

    Definition = JsonObject | bool

__all__ = ["MAX_FAULTS", "Schema", "SchemaFault"]

MAX_FAULTS = 20

_DETAILED_STEPS = 3_000
"""Above this work the validator is asked only whether a value fits: telling why costs it 30 µs a step."""

# Unicode classes are large; with more than this a "linear" pattern takes over 10 µs a character.
_PATTERN_BYTES = 128 * 1024

_DIALECTS: dict[str, type[engine.Validator]] = {
    "json-schema.org/draft/2020-12/schema": engine.Draft202012Validator,
    "json-schema.org/schema": engine.Draft202012Validator,
    "json-schema.org/draft/2019-09/schema": engine.Draft201909Validator,
    "json-schema.org/draft-07/schema": engine.Draft7Validator,
    "json-schema.org/draft-06/schema": engine.Draft6Validator,
    "json-schema.org/draft-04/schema": engine.Draft4Validator,
}
_DEFAULT = engine.Draft202012Validator
_OLDER = (("draft 7", engine.Draft7Validator), ("draft 4", engine.Draft4Validator))


class Schema:
    """A schema in 2020-12 unless `$schema` names another dialect. Nothing is checked before the first use."""

    def __init__(self, definition: Definition) -> None:
        self.definition = definition
        self._ready: _Compiled | None = None
        self._fault: str = ""

    def compile(self) -> None:
        """Compile now. Raises SchemaError when the definition cannot be used."""
        self._compiled()

    @property
    def notes(self) -> tuple[str, ...]:
        """How the definition had to be read to be of use, in plain words. Raises SchemaError."""
        return self._compiled().notes

    def ok(self, value: Any) -> bool:
        """Whether the value fits. Raises SchemaError when the schema cannot be used."""
        return self._compiled().ok(value)

    def faults(self, value: Any) -> tuple[SchemaFault, ...]:
        """What is wrong with the value, at most 20 faults; none when it fits. Raises SchemaError."""
        return self._compiled().faults(value)

    def _compiled(self) -> _Compiled:
        if self._ready is None:
            if self._fault:
                raise SchemaError(self._fault)
            try:
                self._ready = _Compiled(self.definition)
            except SchemaError as error:
                self._fault = error.message
                raise
        return self._ready


class _NotOfDialectError(SchemaError):
    """A keyword is not used as the dialect says; another dialect may say otherwise."""


class _Compiled:
    def __init__(self, definition: Definition) -> None:
        check_size(definition)
        self._schema: JsonObject = (
            definition if isinstance(definition, dict) else ({} if definition else {"not": {}})
        )
        self._work = Work(self._schema)
        self._validator, self.notes = _validator(self._schema)
        self._without_patterns: engine.Validator | None = None

    def ok(self, value: Any) -> bool:
        judge = self._judge(value)
        try:
            return judge is not None and judge.is_valid(value)
        except ValueError:  # not JSON
            return False

    def faults(self, value: Any) -> tuple[SchemaFault, ...]:
        judge = self._judge(value)
        if judge is None:
            return (
                SchemaFault("", "size", "is too large or too deep for this schema to be checked in time"),
            )
        try:
            if judge.is_valid(value):
                return ()
            if self._work.weigh(value, _DETAILED_STEPS).steps > _DETAILED_STEPS:
                return (SchemaFault("", "size", "does not fit the schema; it is too large to say where"),)
            errors = list(judge.iter_errors(value))
        except ValueError as error:
            return (SchemaFault("", "json", f"is not JSON: {one_line(str(error), 100)}"),)
        found = (fault for error in errors for fault in faults_of(error, value, self._schema))
        return tuple(dict.fromkeys(found))[:MAX_FAULTS]

    def _judge(self, value: Any) -> engine.Validator | None:
        """The validator for this value; None where none would end in time."""
        if self._work.light:
            return self._validator
        steps, text = self._work.weigh(value)
        if steps > MAX_STEPS:
            return None
        if text <= MAX_MATCHED_TEXT:
            return self._validator
        # Even a linear match of megabytes would block for seconds.
        if self._without_patterns is None:
            self._without_patterns, _ = _validator(without(self._schema, set(patterns_in(self._schema))))
        return self._without_patterns


def _validator(schema: JsonObject) -> tuple[engine.Validator, tuple[str, ...]]:
    """A validator, and how the schema had to be read for it. Raises SchemaError."""
    notes: list[str] = []
    body = {key: value for key, value in schema.items() if key != "$schema"}
    declared = schema.get("$schema")
    dialect = _DIALECTS.get(str(declared).partition("://")[2].rstrip("#"))
    if declared is not None and dialect is None:
        notes.append(f"the dialect {_shown(declared)} is not known")
    try:
        validator, dialect_note = _read(body, dialect)
    except SchemaError:
        unusable = {pattern for pattern in patterns_in(body) if not _linear(pattern)}
        if not unusable:
            raise
        notes += [f"the pattern {_shown(pattern)} is not checked" for pattern in sorted(unusable)]
        validator, dialect_note = _read(without(body, unusable), dialect)
    return validator, (*notes, *dialect_note)


def _read(
    body: JsonObject, dialect: type[engine.Validator] | None
) -> tuple[engine.Validator, tuple[str, ...]]:
    try:
        return _built(dialect or _DEFAULT, body), ()
    except _NotOfDialectError:
        for name, older in () if dialect else _OLDER:
            with suppress(SchemaError):
                return _built(older, body), (f"it is read as {name}",)
        raise


def _built(dialect: type[engine.Validator], body: JsonObject) -> engine.Validator:
    refused: list[str] = []

    def refuse(uri: str) -> NoReturn:
        refused.append(uri.removeprefix("json-schema:///"))
        raise LookupError(uri)

    try:
        return dialect(
            body,
            retriever=refuse,
            pattern_options=engine.RegexOptions(size_limit=_PATTERN_BYTES),
            validate_formats=False,
            mask="",
        )
    except engine.ValidationError as error:
        raise _fault(error, body, refused) from None
    except ValueError as error:
        raise SchemaError(f"The schema cannot be used: {one_line(str(error))}") from None


def _fault(error: engine.ValidationError, body: JsonObject, refused: list[str]) -> SchemaError:
    if refused:
        return SchemaError(
            f"The schema refers to {_shown(refused[-1])}, and nothing outside a schema is fetched."
        )
    if isinstance(error.kind, engine.ValidationErrorKind.Referencing):
        return SchemaError(
            f"The schema has a reference that leads nowhere: {one_line(str(error.kind.error))}"
        )
    fault = next(faults_of(error, body, {}))
    return _NotOfDialectError(f"The schema is not a valid one; {fault.path or 'it'} {fault.message}.")


def _linear(pattern: str) -> bool:
    try:
        _built(_DEFAULT, {"pattern": pattern})
    except SchemaError:
        return False
    return True


def _shown(value: Any) -> str:
    return repr(one_line(str(value), 100))
