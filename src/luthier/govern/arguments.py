"""Arguments are made fit and judged before they are sent: what breaks the tool's schema never leaves us."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from luthier.errors import SchemaError
from luthier.govern.digests import arguments_digest
from luthier.govern.guard import said
from luthier.text import one_line
from luthier.tools import Refusal
from luthier.tools.arguments import prepare_labelled

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from luthier.connect.schemas import Schemas
    from luthier.govern.guard import GateCall, Next, Up
    from luthier.tools import Tool, ToolCall
    from luthier.tools.schema import SchemaFault

_SHOWN = 5  # faults in a reason


class Arguments:
    """The guard that judges arguments by the schema of their tool."""

    def __init__(self, schemas: Schemas) -> None:
        self._schemas = schemas

    def guard(self, call: GateCall, inner: Next) -> Awaitable[Up]:
        """Hand on the arguments as the tool wants them, or refuse them with the path and the rule."""
        judged = self._judged(call)
        return said(judged) if isinstance(judged, Refusal) else inner(judged)

    def _judged(self, call: GateCall) -> GateCall | Refusal:
        tool = call.tool
        if tool is None:
            raise RuntimeError("the tool must be looked up before its arguments are judged")
        wanted = call.call
        value: Any = wanted.arguments.value
        if not isinstance(value, dict):  # Python callers may hand us anything
            return _refusal(call, tool, "are not named", "type at /", "Give a mapping from names to values.")
        schema = self._schemas.input(tool)
        try:
            # Nearly all arguments fit as they are, and what fits is never touched.
            if not schema.ok(value):
                wanted = _prepared(wanted, tool)
                if faults := schema.faults(wanted.arguments.value):
                    return _misfit(call, tool, faults)
        except SchemaError as error:
            why = f"cannot be judged: {error.message}"
            return _refusal(call, tool, why, "schema", "Tell the server's author.")
        digest = arguments_digest(wanted.arguments.value)
        if not digest:
            return _refusal(call, tool, "cannot be written as JSON", "json", "Give values that JSON has.")
        call.ledger.digest = digest
        return call if wanted is call.call else msgspec.structs.replace(call, call=wanted)


def _prepared(call: ToolCall, tool: Tool) -> ToolCall:
    arguments = prepare_labelled(tool.own_input_schema, call.arguments)
    return call if arguments is call.arguments else msgspec.structs.replace(call, arguments=arguments)


def _misfit(call: GateCall, tool: Tool, faults: tuple[SchemaFault, ...]) -> Refusal:
    shown = "; ".join(one_line(str(fault)) for fault in faults[:_SHOWN])
    more = f"; and {len(faults) - _SHOWN} more" if len(faults) > _SHOWN else ""
    first = faults[0]
    hint = f"See `luthier tools show {tool.uri}`." if tool.uri.scheme == "mcp" else "See what the tool takes."
    return call.refuse(
        "arguments",
        f"The arguments do not fit {tool.uri}: {shown}{more}.",
        rule=f"{first.rule} at {first.path or '/'}",
        place=_place(tool),
        hint=hint,
    )


def _refusal(call: GateCall, tool: Tool, why: str, rule: str, hint: str) -> Refusal:
    reason = f"The arguments of {tool.uri} {why.rstrip('.')}."
    return call.refuse("arguments", reason, rule=rule, place=_place(tool), hint=hint)


def _place(tool: Tool) -> str:
    return f"input schema of {tool.uri}"
