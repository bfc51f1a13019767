"""The compiled schemas of tools: each definition is compiled once, however often its tool is called."""

from __future__ import annotations

from typing import TYPE_CHECKING

from luthier.tools.schema import Schema

if TYPE_CHECKING:
    from luthier.tools import JsonObject, Tool

_MOST = 4096  # tools; a list that is read again brings new ones, and the old ones are let go


class Schemas:
    """Schemas by the identity of their tool. A tool that is listed anew has new ones."""

    def __init__(self) -> None:
        self._inputs: dict[int, tuple[Tool, Schema]] = {}
        self._outputs: dict[int, tuple[Tool, Schema]] = {}

    def input(self, tool: Tool) -> Schema:
        """The schema of the tool's arguments."""
        return _kept(self._inputs, tool, tool.own_input_schema)

    def output(self, tool: Tool) -> Schema | None:
        """The schema of the tool's structured result, if it promises any."""
        schema = tool.own_output_schema
        return None if schema is None else _kept(self._outputs, tool, schema)


def _kept(kept: dict[int, tuple[Tool, Schema]], tool: Tool, definition: JsonObject) -> Schema:
    found = kept.get(id(tool))
    if found is not None:
        return found[1]
    if len(kept) >= _MOST:
        kept.clear()
    schema = Schema(definition)
    kept[id(tool)] = (tool, schema)  # with the tool in it, so that its id stays its own
    return schema
