"""Schemas are compiled once for each definition, however many tools come and go."""

from __future__ import annotations

from luthier.connect.schemas import Schemas
from luthier.tools import Tool
from luthier.uri import ToolUri


def tool(name: str = "play", **fields: object) -> Tool:
    return Tool(uri=ToolUri.mcp("lute", name), input_schema={"type": "object", **fields})


def test_the_same_tool_has_the_same_schema_and_a_tool_listed_anew_has_its_own() -> None:
    schemas, one, other = Schemas(), tool(), tool(required=["a"])
    assert schemas.input(one) is schemas.input(one)
    assert schemas.input(one) is not schemas.input(other)
    assert not schemas.input(other).ok({})


def test_a_tool_that_promises_nothing_has_no_schema_of_results() -> None:
    promising = Tool(uri=ToolUri.mcp("lute", "play"), input_schema={}, output_schema={"type": "object"})
    schemas = Schemas()
    assert schemas.output(tool()) is None
    assert schemas.output(promising) is schemas.output(promising)


def test_very_many_tools_are_let_go_and_their_ids_are_never_taken_for_those_of_others() -> None:
    schemas = Schemas()
    for number in range(10_000):
        required = [str(number)]
        schema = schemas.input(tool(required=required))
        assert schema.definition == {"type": "object", "required": required}
