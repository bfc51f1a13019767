"""The inputs of a run: defaults filled in, types checked, all faults at once."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import msgspec

from luthier.errors import ExpressionError, Fault, InputError
from luthier.expr import Scope
from luthier.expr.numbers import canonical
from luthier.given import RepeatedNameError, given_json
from luthier.spec.values import enum_fault, json_fault, type_fault
from luthier.spec.words import meant, quoted
from luthier.taint import Labelled, merge
from luthier.tools import delivered

if TYPE_CHECKING:
    from collections.abc import Mapping

    from luthier.spec.ensemble import Ensemble, Input


def check_inputs(ensemble: Ensemble, given: Mapping[str, Any], *, now: float | None = None) -> dict[str, Any]:
    """The given values with defaults filled in; undeclared ones are kept. A declared integer is an int.

    `now` is the run's start in Unix seconds, for defaults that ask. Raises InputError with every fault.
    """
    bound: dict[str, Any] = bind_inputs(ensemble, Labelled(dict(given)), now=now).value
    return bound


def bind_inputs(
    ensemble: Ensemble, given: Labelled[dict[str, Any]], *, now: float | None = None
) -> Labelled[dict[str, Any]]:
    """As `check_inputs`, with labels: a default that names an input has that input's label."""
    faults = [fault for name, value in given.value.items() if (fault := _given_fault(ensemble, name, value))]
    strangers = [name for name in given.value if name not in ensemble.inputs]
    members = {
        name: given.member(name, _whole(ensemble.inputs.get(name), value))
        for name, value in given.value.items()
    }
    for name, declared in ensemble.inputs.items():
        if name in members:
            continue
        if declared.default is None and declared.required:
            said = f": {declared.description}" if declared.description else ""
            faults.append(
                Fault(f"the input {quoted(name)} is missing{said}", suggestion=meant(name, strangers))
            )
    for name, default in _defaults(ensemble, members):
        scope = Scope({"input": merge(members)}, now=time.time() if now is None else now)
        try:
            found = default.evaluate(scope)
        except ExpressionError as error:
            faults.append(
                Fault(f"the default of {quoted(name)} fails: {error.message}", suggestion=error.hint)
            )
            continue
        value = _whole(ensemble.inputs[name], found.value)
        members[name] = msgspec.structs.replace(found, value=value)
        if wrong := _value_fault(ensemble.inputs[name], value):
            faults.append(Fault(f"the default of {quoted(name)} {wrong}"))
    if faults:
        raise InputError(faults)
    return merge(members)


def read_input_text(ensemble: Ensemble, key: str, text: str) -> Any:
    """The value of `-i key=text`: text where the input is declared so, else JSON if it parses, else text.

    Whether it fits is for `check_inputs` to say, about all inputs together. Raises InputError for JSON with
    a key twice.
    """
    declared = ensemble.inputs.get(key)
    if declared and _is_text(declared):
        return text
    try:
        return given_json(text)
    except RepeatedNameError as error:
        raise InputError([Fault(f"the input {quoted(key)} is JSON, and {error}")]) from None
    except (msgspec.DecodeError, RecursionError):
        return text


def _is_text(declared: Input) -> bool:
    only_texts = bool(declared.enum) and all(isinstance(item, str) for item in declared.enum or ())
    return declared.type == "string" or (declared.type is None and only_texts)


def _given_fault(ensemble: Ensemble, name: str, value: Any) -> Fault | None:
    plain = delivered(value)
    declared = ensemble.inputs.get(name)
    fault = json_fault(plain)
    if not fault and declared:
        if plain is not None:
            fault = _value_fault(declared, plain)
        elif declared.required:
            fault = "is required and cannot be null"
    return Fault(f"the input {quoted(name)} {fault}") if fault else None


def _value_fault(declared: Input, value: Any) -> str:
    value = delivered(value)
    fault = type_fault(value, declared.type) if declared.type and value is not None else ""
    if not fault and declared.enum is not None:
        fault = enum_fault(value, declared.enum)
    return fault


def _whole(declared: Input | None, value: Any) -> Any:
    """A number of a declared integer as one: 1.0 is 1. Beyond 2^53 a double stays what it is."""
    if declared is not None and declared.type == "integer" and isinstance(value, float):
        number = canonical(value)
        return value if number is None else number
    return value


def _defaults(ensemble: Ensemble, members: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """The defaults to fill in, each after those that it names."""
    left = {
        name: declared.default
        for name, declared in ensemble.inputs.items()
        if declared.default is not None and name not in members
    }
    ordered = []
    while left:
        ready = [name for name, default in left.items() if not _named(default) & left.keys() - {name}]
        ordered += [(name, left.pop(name)) for name in ready or list(left)]
    return ordered


def _named(default: Any) -> set[str]:
    return {str(ref.path[0]) for ref in default.references if ref.root == "input" and ref.path}
