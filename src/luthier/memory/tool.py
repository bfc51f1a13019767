"""`builtin://save_to_memory`: a model keeps a value under a key, labelled as what it was made from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from luthier.taint import TRUSTED, Labelled
from luthier.tools.builtin import Builtin
from luthier.tools.result import Reply
from luthier.tools.tool import Tool
from luthier.uri import ToolUri

if TYPE_CHECKING:
    from luthier.context import CallContext
    from luthier.memory.memory import Memory

_TOOL = Tool(
    uri=ToolUri.builtin("save_to_memory"),
    description="Keep a value under a key, for later steps and other agents to read.",
    input_schema={
        "type": "object",
        "properties": {
            "key": {"type": "string", "minLength": 1, "description": "The name to keep it under."},
            "value": {"description": "Any JSON value."},
        },
        "required": ["key", "value"],
        "additionalProperties": False,
    },
    annotations={
        "readOnlyHint": False,
        "destructiveHint": True,
        "idempotentHint": True,
        "openWorldHint": False,
    },
)


def save_to_memory_tool(memory: Memory) -> Builtin:
    """The tool that writes to this memory; what it stores is nowhere better than the branch it stands in."""

    async def save(arguments: Labelled[dict[str, Any]], context: CallContext) -> Reply:
        key, value = arguments.value["key"], arguments.value["value"]
        stored = arguments.member("value", value).joined(arguments.at("/key")).joined(context.control)
        memory.write(key, stored, by=context.principals[-1] if context.principals else "")
        return Reply(
            structured={"key": key, "saved": True}, blocks=[{"type": "text", "text": f"Saved as {key}."}]
        )

    return Builtin(_TOOL, save, label=TRUSTED)
