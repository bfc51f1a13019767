"""A server whose one tool has a schema with words that not everybody knows; it is to arrive as it is."""

import asyncio

from mcp.server import Server
from mcp.server.stdio import stdio_server
from mcp_types import CallToolResult, ListToolsResult, Tool

ADDRESS = {
    "$anchor": "addressDef",
    "type": "object",
    "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
}
SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {"address": ADDRESS},
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


async def list_tools(_context: object, _params: object) -> ListToolsResult:
    tool = Tool(name="json_schema_2020_12_tool", description="Has a rich schema.", input_schema=SCHEMA)
    return ListToolsResult(tools=[tool])


async def call_tool(_context: object, _params: object) -> CallToolResult:
    return CallToolResult(content=[])


async def main() -> None:
    server = Server("schemas", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


asyncio.run(main())
