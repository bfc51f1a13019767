"""The `config` of an `endorse` step: a value, the closed type that it must be of, and the reason."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from luthier.expr.scan import has_expression
from luthier.spec.ensemble import EndorseConfig
from luthier.spec.expressions import placed
from luthier.tools.closed import read_closed

if TYPE_CHECKING:
    from luthier.expr import Compiled
    from luthier.spec.draft import Draft
    from luthier.spec.reader import Found, Reader


def read_endorse(reader: Reader, draft: Draft) -> EndorseConfig | None:
    """`{value, as, reason}`; None, and faults, for anything else."""
    before = len(reader.sink.faults)
    value = _compiled(reader, draft, reader.take("value", required=True), "value")
    reason = reader.text("reason", required=True)
    found = reader.take("as", required=True)
    closed: Any = None
    ids = None
    if found is not None:
        if isinstance(found.value, dict) and set(found.value) == {"id_of"}:
            inner = reader.inner("as")
            ids = _compiled(reader, draft, inner.take("id_of", required=True) if inner else None, "as.id_of")
        else:
            closed = _closed(reader, found)
    reader.done({"type": "write as", "schema": "write as", "because": "write reason"})
    if len(reader.sink.faults) > before or value is None or reason is None:
        return None
    return EndorseConfig(value=value, closed=closed, ids=ids, reason=reason)


def _closed(reader: Reader, found: Found) -> Any:
    try:
        read_closed(found.value)
    except ValueError as error:
        reader.sink.add(str(error), found.path)
        return None
    if _holds_expression(found.value):
        message = "`as` is decided before anything runs, so it holds no expression"
        reader.sink.add(message, found.path, suggestion="only id_of takes one")
    return found.value


def _holds_expression(value: Any) -> bool:
    if isinstance(value, str):
        return has_expression(value)
    if isinstance(value, dict):
        return any(map(_holds_expression, value.values()))
    return isinstance(value, list) and any(map(_holds_expression, value))


def _compiled(reader: Reader, draft: Draft, found: Found | None, name: str) -> Compiled | None:
    read = placed(reader.sink, found)
    if read is None:
        return None
    draft.uses.expressions[f"config.{name}"] = read
    return read.compiled
