"""Reads `state`: that of an ensemble, and what a step uses and sets of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast, get_args

from luthier.spec.control import StepState
from luthier.spec.ensemble import InputType, RunState
from luthier.spec.expressions import placed
from luthier.spec.values import type_fault
from luthier.spec.words import meant, quoted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from luthier.spec.draft import Uses
    from luthier.spec.expressions import Placed
    from luthier.spec.origin import KeyPath
    from luthier.spec.reader import Reader, Sink

_TYPES: tuple[str, ...] = get_args(InputType)


def read_run_state(reader: Reader) -> tuple[RunState | None, Placed | None]:
    """`{schema: {field: type}, initial: {field: value}}`, and the place of what it begins with."""
    inner = reader.inner("state")
    if inner is None:
        return None, None
    types = _types(inner)
    found = inner.take("initial")
    inner.done()
    initial: Any = {} if found is None else found.value
    if not isinstance(initial, dict):
        reader.sink.wrong("a mapping", *cast("Any", found))
        initial, found = {}, None
    use = placed(reader.sink, found)
    for field, value in initial.items():
        path = (*inner.places["initial"], field)
        fixed = use is not None and use.compiled is not None and use.compiled.is_constant
        type_ = types.get(field)
        if fixed and type_ is not None and (fault := type_fault(value, type_)):
            reader.sink.add(f"{quoted(field)} {fault}", path)
    fields = {**dict.fromkeys(initial, None), **types}
    return RunState(types=fields, initial=use.compiled if use else None), use


def _types(reader: Reader) -> dict[str, InputType | None]:
    inner = reader.inner("schema")
    types: dict[str, InputType | None] = {}
    for field, written in (inner.data if inner else {}).items():
        word = written.get("type") if isinstance(written, dict) else written
        types[field] = None
        if word in _TYPES:
            types[field] = cast("InputType", word)
        elif inner is not None:
            message = f"{quoted(field)} must be one of {', '.join(_TYPES)}"
            reader.sink.add(message, (*inner.path, field), suggestion=meant(str(word), _TYPES))
    return types


def read_step_state(reader: Reader, uses: Uses) -> StepState | None:
    """`{use: [fields], set: [fields]}` of a script, or `set: {field: value}` of any step."""
    inner = reader.inner("state")
    if inner is None:
        return None
    use = inner.texts("use") or ()
    found = inner.take("set")
    inner.done()
    for index, field in enumerate(use):
        uses.fields.append(((*inner.places["use"], index), field))
    writes: tuple[str, ...] = ()
    values = None
    if found is not None and isinstance(found.value, dict):
        values = placed(reader.sink, found)
        uses.fields += [((*found.path, field), field) for field in found.value]
    elif found is not None:
        writes = reader.sink.texts(*found, "a mapping, or a list of fields") or ()
        uses.fields += [((*found.path, index), field) for index, field in enumerate(writes)]
    if values is None:
        return StepState(use=tuple(use), writes=writes)
    uses.expressions["state.set"] = values
    return StepState(use=tuple(use), values=values.compiled)


def check_fields(sink: Sink, state: RunState | None, fields: Iterable[tuple[KeyPath, str]]) -> None:
    """What steps use and set of the state is there."""
    for path, field in fields:
        if state is None:
            sink.add("the ensemble has no `state`", path, suggestion="declare it beside `agents`")
        elif field not in state.types:
            sink.add(f"the state has no field {quoted(field)}", path, suggestion=meant(field, state.types))
