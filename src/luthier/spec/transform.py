"""The `config` of a `transform` step: one source, and the pipeline that reshapes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast, get_args

from luthier.spec.ensemble import CoerceType, Sort, TableFormat, TransformConfig
from luthier.spec.expressions import placed
from luthier.spec.words import listed, meant, quoted

if TYPE_CHECKING:
    from luthier.expr import Compiled
    from luthier.spec.draft import Draft
    from luthier.spec.reader import Reader

_MODES = ("value", "merge", "input")
_FORMATS: tuple[str, ...] = get_args(TableFormat)
_COERCIONS: tuple[str, ...] = get_args(CoerceType)
_NO_XLSX = "spreadsheets are not read; write them as csv"


def read_transform(reader: Reader, draft: Draft) -> TransformConfig | None:
    """Read it all, noting expressions in the draft; None, and faults, where the source is not clear."""
    mode = _mode(reader)
    before = len(reader.sink.faults)
    sources: dict[str, Any] = {name: _compiled(reader, draft, name) for name in (*_MODES, "defaults")}
    pipeline: dict[str, Any] = {
        "parse": reader.choice(_FORMATS, "parse"),
        "filter": reader.text("filter"),
        "trim": reader.flag("trim"),
        "compact": reader.flag("compact"),
        "coerce": _coerce(reader),
        "rename": reader.text_map("rename"),
        "pick": reader.texts("pick") or (),
        "omit": reader.texts("omit") or (),
        "dedupe": _dedupe(reader),
        "sort": _sort(reader),
        "offset": reader.whole("offset") or 0,
        "limit": reader.whole("limit", low=1),
        "format": reader.choice(_FORMATS, "format"),
        "columns": reader.texts("columns") or (),
    }
    reader.done({"xlsx": _NO_XLSX, "sheet": _NO_XLSX})
    if mode is None or len(reader.sink.faults) > before:
        return None
    _check_pipeline(reader, mode)
    return TransformConfig(**sources, **pipeline)


def _mode(reader: Reader) -> str | None:
    there = [found.path for name in _MODES if (found := reader.raw(name))]
    if not there:
        reader.sink.add(f"one of {listed(map(quoted, _MODES))} is missing", reader.path)
        return None
    if len(there) > 1:
        message = f"only one of {listed(map(quoted, _MODES))} can be the source"
        reader.sink.add(message, there[1], key=True)
        return None
    mode = str(there[0][-1])
    value = reader.data[mode]
    if mode == "merge" and not (value and isinstance(value, (list, str))):
        reader.sink.add("`merge` must be a list of at least one value", there[0])
        return None
    return mode


def _check_pipeline(reader: Reader, mode: str) -> None:
    """What follows `input` does nothing to the other sources, so writing it there is a mistake."""
    for key in reader.data:
        if mode not in ("input", key):
            message = f"{quoted(key)} works on `input` only, not on {quoted(mode)}"
            reader.sink.add(message, (*reader.path, key), key=True)


def _compiled(reader: Reader, draft: Draft, name: str) -> Compiled | None:
    found = placed(reader.sink, reader.raw(name))
    if found is None:
        return None
    draft.uses.expressions[f"config.{name}"] = found
    if name == "defaults" and not isinstance(found.value, dict):
        reader.sink.wrong("a mapping", found.path, found.value)
        return None
    return found.compiled


def _coerce(reader: Reader) -> dict[str, CoerceType]:
    wanted = reader.text_map("coerce")
    for field, type_ in wanted.items():
        if type_ not in _COERCIONS:
            message = f"{quoted(field)} must be one of {listed(_COERCIONS)}, not {quoted(type_)}"
            reader.sink.add(message, (*reader.path, "coerce", field), suggestion=meant(type_, _COERCIONS))
    return cast("dict[str, CoerceType]", wanted)


def _dedupe(reader: Reader) -> bool | str:
    found = reader.take("dedupe")
    if found is None:
        return False
    if not isinstance(found.value, (bool, str)):
        reader.sink.wrong("true, false or the name of a field", *found)
        return False
    return found.value


def _sort(reader: Reader) -> Sort | None:
    found = reader.take("sort")
    if found is None:
        return None
    if isinstance(found.value, str):
        return Sort(by=found.value)
    inner = reader.inner("sort")
    if inner is None:
        return None
    by, order = inner.text("by", required=True), inner.choice(("asc", "desc"), "order")
    inner.done()
    return Sort(by=by, descending=order == "desc") if by is not None else None
