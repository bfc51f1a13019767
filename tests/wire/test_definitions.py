"""Tool definitions: a bad one costs only itself."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from luthier.tools import DroppedTool, Tool
from luthier.wire.definitions import Listing, page_decoder

GOOD = {"name": "good", "inputSchema": {"type": "object"}}


def listed(*definitions: Any, **page: Any) -> Listing:
    listing = Listing("s")
    listing.add(page_decoder.decode(msgspec.json.encode({"tools": list(definitions), **page})))
    return listing


def test_a_tool_keeps_what_its_server_said() -> None:
    definition = {
        "name": "a/b.c",
        "title": "A",
        "description": "does",
        "inputSchema": {"type": "object", "properties": {"x": {"type": "string"}}},
        "outputSchema": {"$ref": "#/$defs/Out", "$defs": {"Out": {"type": "object"}}},
        "annotations": {"readOnlyHint": True},
        "execution": {"taskSupport": "optional"},
    }
    (tool,) = listed(definition).tools
    assert isinstance(tool, Tool)
    assert str(tool.uri) == "mcp://s/a/b.c"
    assert (tool.title, tool.description, tool.annotations) == ("A", "does", {"readOnlyHint": True})
    assert tool.raw == definition
    assert tool.input_schema is tool.raw["inputSchema"]
    assert tool.output_schema is tool.raw["outputSchema"]


@pytest.mark.parametrize(
    ("definition", "name", "reason"),
    [
        ({"name": "t", "inputSchema": None}, "t", "inputSchema is null"),
        ({"name": "t", "inputSchema": True}, "t", "inputSchema is true"),
        ({"name": "t", "inputSchema": False}, "t", "inputSchema is false"),
        ({"name": "t", "inputSchema": "x"}, "t", "inputSchema is text"),
        ({"name": "t", "inputSchema": []}, "t", "inputSchema is a list"),
        ({"name": "t", "inputSchema": 5}, "t", "inputSchema is a number"),
        ({"name": "t"}, "t", "no inputSchema"),
        ({"name": "t", "inputSchema": {"type": "string"}}, "t", "describes string"),
        ({"name": "t", "inputSchema": {"type": ["string", "null"]}}, "t", "describes ['string', 'null']"),
        ({"name": "t", "inputSchema": {"type": 5}}, "t", "describes 5"),
        ({"inputSchema": {}}, "", "no name"),
        ({"name": "", "inputSchema": {}}, "", "no name"),
        ({"name": 5, "inputSchema": {}}, "", "no name"),
        ("t", "", "not an object"),
        (None, "", "not an object"),
        (GOOD, "good", "another tool of this name"),
    ],
    ids=repr,
)
def test_a_bad_definition_is_dropped_with_a_reason_and_the_rest_is_kept(
    definition: Any, name: str, reason: str
) -> None:
    listing = listed(GOOD, definition, {"name": "last", "inputSchema": {}})
    assert [tool.name for tool in listing.tools] == ["good", "last"]
    (dropped,) = listing.dropped
    assert isinstance(dropped, DroppedTool)
    assert dropped.name == name
    assert reason in dropped.reason


@pytest.mark.parametrize(
    "schema",
    [{}, {"type": ["object", "null"]}, {"$ref": "#/$defs/In", "$defs": {"In": {}}}, {"properties": {}}],
    ids=repr,
)
def test_a_schema_whose_root_may_be_an_object_is_kept(schema: dict[str, Any]) -> None:
    assert [tool.input_schema for tool in listed({"name": "t", "inputSchema": schema}).tools] == [schema]


def test_odd_details_cost_only_themselves() -> None:
    definition = {**GOOD, "description": 5, "title": [], "annotations": "x", "outputSchema": True}
    listing = listed(definition)
    (tool,) = listing.tools
    assert (tool.description, tool.title, tool.annotations, tool.output_schema) == ("", "", {}, None)
    assert listing.oddities == ["the outputSchema of good is not an object: not used"]


def test_an_output_schema_of_null_is_none() -> None:
    listing = listed({**GOOD, "outputSchema": None})
    assert (listing.tools[0].output_schema, listing.oddities) == (None, [])


@pytest.mark.parametrize("page", [{}, {"tools": None}, {"tools": {"a": GOOD}}], ids=repr)
def test_a_page_without_a_list_is_told(page: dict[str, Any]) -> None:
    listing = Listing("s")
    listing.add(page_decoder.decode(msgspec.json.encode(page)))
    assert (listing.tools, listing.oddities) == ([], ["a page of the tool list has no list of tools"])


@pytest.mark.parametrize(
    ("said", "kept"),
    [([5000, 300], 300), ([300, 5000], 300), ([None, 7], 7), ([-1], None), ([True], None), (["5"], None)],
)
def test_the_shortest_time_that_a_page_holds_is_kept(said: list[Any], kept: int | None) -> None:
    listing = Listing("s")
    for ttl in said:
        listing.add(page_decoder.decode(msgspec.json.encode({"tools": [], "ttlMs": ttl})))
    assert listing.ttl_ms == kept


json_like = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)
definitions = st.fixed_dictionaries(
    {},
    optional={
        "name": json_like,
        "inputSchema": json_like,
        "outputSchema": json_like,
        "description": json_like,
    },
)


@given(st.lists(definitions | json_like, max_size=6))
def test_every_definition_is_either_a_tool_or_dropped(given_definitions: list[Any]) -> None:
    listing = listed(*given_definitions)
    assert len(listing.tools) + len(listing.dropped) == len(given_definitions)
    assert len({tool.name for tool in listing.tools}) == len(listing.tools)


def test_what_hides_in_a_definition_is_not_shown_and_the_definition_is_kept_as_sent() -> None:
    schema = {"type": "object", "properties": {"x": {"description": "b\u200b", "enum": ["one", "tw\u200bo"]}}}
    definition = {**GOOD, "description": "a\u202eb", "title": "t\x1b[1m", "inputSchema": schema}
    (tool,) = listed(definition).tools
    assert (tool.description, tool.title) == ("ab", "t")
    assert tool.input_schema["properties"]["x"] == {"description": "b", "enum": ["one"]}
    assert tool.raw == definition
    assert tool.own_input_schema == schema


@pytest.mark.parametrize(
    ("definition", "reason"),
    [
        ({**GOOD, "name": "s\u0435nd"}, "only looks like"),
        ({**GOOD, "name": "se\u200bnd"}, "hidden characters"),
        ({**GOOD, "name": "n" * 129}, "longer than 128"),
        ({**GOOD, "inputSchema": {"properties": {"a\u200b": {}}}}, "hidden characters"),
    ],
)
def test_a_name_that_deceives_costs_its_tool(definition: Any, reason: str) -> None:
    listing = listed(definition, {**GOOD, "name": "other"})
    assert [tool.name for tool in listing.tools] == ["other"]
    assert reason in listing.dropped[0].reason
    assert listing.dropped[0].reason.isprintable()


def test_the_digest_is_of_the_bytes_that_were_sent() -> None:
    text = b'{ "name":"a", "inputSchema" : {} }'
    listing = Listing("s")
    listing.add(page_decoder.decode(b'{"tools": [' + text + b"]}"))
    assert listing.tools[0].digest == sha256(text).hexdigest()


def test_a_definition_that_is_no_utf_8_costs_no_other() -> None:
    listing = Listing("s")
    listing.add(
        page_decoder.decode(
            b'{"tools":[{"name":"a","title":"\xff","inputSchema":{}},{"name":"b","inputSchema":{}}]}'
        )
    )
    assert [(tool.name, tool.title) for tool in listing.tools] == [("a", "\ufffd"), ("b", "")]


def test_a_definition_that_takes_too_long_to_mend_costs_only_itself() -> None:
    huge = b'{"name":"a","x":1e999,"description":"' + b"x" * 2**20 + b'","inputSchema":{}}'
    listing = Listing("s")
    listing.add(page_decoder.decode(b'{"tools":[' + huge + b',{"name":"b","inputSchema":{}}]}'))
    assert [tool.name for tool in listing.tools] == ["b"]
    assert "cannot be read" in listing.dropped[0].reason
