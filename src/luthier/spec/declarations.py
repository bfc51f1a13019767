"""Reads `inputs:` of an ensemble: declarations, bare type names and defaults."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast, get_args

from luthier.spec.ensemble import Input, InputType
from luthier.spec.expressions import placed
from luthier.spec.reader import Found, Reader
from luthier.spec.values import enum_fault, type_fault
from luthier.spec.words import quoted

if TYPE_CHECKING:
    from luthier.spec.expressions import Placed
    from luthier.spec.origin import KeyPath
    from luthier.spec.reader import Sink

TYPES: tuple[str, ...] = get_args(InputType)
KEYS = frozenset({"type", "required", "optional", "default", "description", "enum"})


class Declarations:
    """The inputs of an ensemble, and the defaults that hold expressions."""

    def __init__(self) -> None:
        self.inputs: dict[str, Input] = {}
        self.defaults: dict[str, Placed] = {}


def read_declarations(sink: Sink, found: Found | None) -> Declarations:
    """Every input, the faulty ones too: their names are known."""
    read = Declarations()
    if found is None:
        return read
    reader = Reader.of(sink, found.path, found.value, quoted(str(found.path[-1])))
    for name, value in (reader.data if reader else {}).items():
        path = (*found.path, name)
        if isinstance(value, dict) and _is_declaration(value):
            read.inputs[name] = _declared(Reader(sink, path, value), name, read)
        elif isinstance(value, str) and value in TYPES:
            read.inputs[name] = Input(type=cast("InputType", value))
        else:
            default = placed(sink, Found(path, value) if value is not None else None)
            read.inputs[name] = Input(default=default.compiled if default else None, declared=False)
            _note(read, name, default)
    return read


def _is_declaration(value: dict[str, Any]) -> bool:
    """A mapping with a type's name, or one that says nothing but what declarations say, is one."""
    return value.get("type") in TYPES if not value.keys() <= KEYS else bool(value)


def _declared(reader: Reader, name: str, read: Declarations) -> Input:
    type_ = cast("InputType | None", reader.choice(TYPES, "type"))
    required = reader.flag("required")
    if (
        (optional := reader.take("optional"))
        and reader.flag("optional") == required
        and "required" in reader.data
    ):
        reader.sink.add("`required` and `optional` contradict each other", optional.path, key=True)
    description = reader.text("description") or ""
    enum = _enum(reader, type_)
    written = reader.raw("default")
    default = placed(reader.sink, written)
    reader.done(dict.fromkeys(("items", "properties"), "only the outermost type is declared"))
    if (
        default
        and default.compiled
        and default.compiled.is_constant
        and written
        and written.value is not None
    ):
        _check_constant(reader.sink, *written, type_, enum)
    _note(read, name, default)
    return Input(
        type=type_,
        required=required,
        default=default.compiled if default else None,
        description=description,
        enum=enum,
    )


def _enum(reader: Reader, type_: InputType | None) -> tuple[Any, ...] | None:
    found = reader.take("enum")
    if found is None:
        return None
    if found.value == []:
        reader.sink.add("`enum` is empty", found.path)
        return None
    if not isinstance(found.value, list):
        reader.sink.wrong("a list of the values that are allowed", *found)
        return None
    for index, item in enumerate(found.value):
        if type_ and (fault := type_fault(item, type_)):
            reader.sink.add(f"an allowed value {fault}", (*found.path, index))
    return tuple(found.value)


def _check_constant(
    sink: Sink, path: KeyPath, value: Any, type_: InputType | None, enum: tuple[Any, ...] | None
) -> None:
    fault = (type_fault(value, type_) if type_ else "") or (
        enum_fault(value, enum) if enum is not None else ""
    )
    if fault:
        sink.add(f"the default {fault}", path)


def _note(read: Declarations, name: str, default: Placed | None) -> None:
    if default and default.references:
        read.defaults[name] = default
