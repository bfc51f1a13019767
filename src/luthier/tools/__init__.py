"""Tools, calls and results: the values that every room above the wire passes on."""

from luthier.tools.call import ToolCall
from luthier.tools.result import Envelope, Refusal, Reply, ToolResult, delivered
from luthier.tools.tool import DroppedTool, JsonObject, Manifest, Tool

__all__ = [
    "DroppedTool",
    "Envelope",
    "JsonObject",
    "Manifest",
    "Refusal",
    "Reply",
    "Tool",
    "ToolCall",
    "ToolResult",
    "delivered",
]
