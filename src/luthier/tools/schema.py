"""JSON Schema as a judge of values: compiled on first use, once, with nothing fetched and everything bounded."""

from __future__ import annotations

from typing import Any

import msgspec

from luthier.tools.tool import JsonObject


class SchemaFault(msgspec.Struct, frozen=True):
    """One thing wrong with a value: where (JSON Pointer, empty for the whole), by which keyword, in plain words."""

    path: str
    rule: str
    message: str

    def __str__(self) -> str:
        return f"{self.path or '(the whole value)'}: {self.message}"


class Schema:
    """A schema (2020-12 unless `$schema` names another draft). The definition is not checked before first use."""

    def __init__(self, definition: JsonObject | bool) -> None:
        self.definition = definition

    def compile(self) -> None:
        """Compile now. Raises SchemaError when the definition cannot be used."""
        raise NotImplementedError

    @property
    def notes(self) -> tuple[str, ...]:
        """What had to be left out of the schema to make it usable, in plain words. Raises SchemaError."""
        raise NotImplementedError

    def ok(self, value: Any) -> bool:
        """Whether the value fits. Raises SchemaError when the schema cannot be used."""
        raise NotImplementedError

    def faults(self, value: Any) -> tuple[SchemaFault, ...]:
        """Everything wrong with the value, at most 20 faults; empty when it fits. Raises SchemaError."""
        raise NotImplementedError
