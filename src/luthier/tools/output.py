"""Whether a reply keeps the promise of its tool's output schema: a broken one is noted, the reply is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from luthier.errors import SchemaError

if TYPE_CHECKING:
    from luthier.tools.result import Reply
    from luthier.tools.schema import Schema
    from luthier.tools.tool import Tool

_SHOWN = 3


def checked(reply: Reply, tool: Tool, schema: Schema | None) -> Reply:
    """The same reply, with a note where its structured value is missing or does not fit.

    None promises nothing. An error and a request for more input promise nothing either.
    """
    if schema is None or reply.is_error or reply.input_required is not None:
        return reply
    note = _note(reply, tool, schema)
    return msgspec.structs.replace(reply, notes=(*reply.notes, note)) if note else reply


def _note(reply: Reply, tool: Tool, schema: Schema) -> str:
    if reply.structured is msgspec.UNSET:
        return f"{tool.name} declares an output schema, but its result has no structured content."
    try:
        faults = schema.faults(reply.structured)
    except SchemaError as error:
        return f"The output schema of {tool.name} cannot be used. {error}"
    if not faults:
        return ""
    more = f"; and {len(faults) - _SHOWN} more" if len(faults) > _SHOWN else ""
    shown = "; ".join(str(fault) for fault in faults[:_SHOWN])
    return f"The structured content of {tool.name} does not fit its output schema: {shown}{more}."
