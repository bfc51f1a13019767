"""Tool sources in all their spellings, and what is wrong with what is none."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from luthier.tools import Tool
from luthier.tools.source import BuiltinSource, CustomSource, McpSource, ToolSource, read_source
from luthier.uri import ToolUri


class Decorated:
    def __init__(self, uri: ToolUri) -> None:
        self.tool = Tool(uri=uri, input_schema={})


@pytest.mark.parametrize(
    ("written", "source"),
    [
        ({"type": "builtin", "name": "save_to_memory"}, BuiltinSource("save_to_memory")),
        ({"type": "builtin", "name": "storage/kv"}, BuiltinSource("storage/kv")),
        ({"type": "custom", "name": "add-Up_2"}, CustomSource("add-Up_2")),
        ({"type": "mcp", "server_id": "git"}, McpSource("git")),
        ({"type": "mcp", "server_id": "git", "tool_names": None}, McpSource("git")),
        ({"type": "mcp", "server_id": "git", "tool_names": []}, McpSource("git", ())),
        ({"type": "mcp", "server_id": "git", "tool_names": ["a", "b", "a"]}, McpSource("git", ("a", "b"))),
        ({"type": "mcp", "serverId": "git", "toolNames": ["a"]}, McpSource("git", ("a",))),
        ({"mcp": "git"}, McpSource("git")),
        ({"mcp": "git", "tools": ["a"]}, McpSource("git", ("a",))),
        ({"mcp": "git", "tool_names": ["a.b/c"]}, McpSource("git", ("a.b/c",))),
        ({"mcp": "git", "toolNames": ("a",)}, McpSource("git", ("a",))),
        ("save_to_memory", BuiltinSource("save_to_memory")),
        ("add", CustomSource("add")),
        ("mcp://git/git_log", McpSource("git", ("git_log",))),
        ("mcp://git/a%20b", McpSource("git", ("a b",))),
        ("mcp://git/*", McpSource("git")),
        ("builtin://http", BuiltinSource("http")),
        ("custom://add", CustomSource("add")),
        (BuiltinSource("http"), BuiltinSource("http")),
        (McpSource("git"), McpSource("git")),
        (CustomSource("add"), CustomSource("add")),
        pytest.param(Decorated(ToolUri.custom("add")), CustomSource("add"), id="Decorated-custom"),
        pytest.param(
            Decorated(ToolUri.builtin("save_to_memory")),
            BuiltinSource("save_to_memory"),
            id="Decorated-builtin",
        ),
    ],
    ids=repr,
)
def test_each_spelling_is_read(written: object, source: ToolSource) -> None:
    assert read_source(written) == source


@pytest.mark.parametrize(
    ("written", "said"),
    [
        (7, "is not a tool source: write a name, an address"),
        (None, "is not a tool source"),
        ([], "is not a tool source"),
        ({}, "is not a tool source"),
        ({"name": "x"}, "is not a tool source"),
        ("not a name", "is not the name of a custom tool"),
        ("", "is not the name of a custom tool"),
        ("http://x/y", "is not a tool address"),
        ("mcp://git", "names no tool"),
        ("custom://a/b", "is not the name of a custom tool"),
        ({"type": "rest"}, "'rest' is not a type of tool source"),
        ({"type": ["mcp"]}, "is not a type of tool source"),
        ({"type": "mcp"}, "lacks server_id"),
        ({"type": "mcp", "server_id": "a b"}, "'a b' is not a server id"),
        ({"type": "mcp", "server_id": 5}, "'5' is not a server id"),
        ({"mcp": ["git"]}, "is not a server id"),
        ({"type": "builtin"}, "a source of type builtin lacks a name"),
        ({"type": "custom", "name": ""}, "lacks a name"),
        ({"type": "custom", "name": 3}, "lacks a name"),
        (
            {"type": "mcp", "server_id": "git", "tool_name": ["a"]},
            "'tool_name' is not a key .* did you mean tool_names",
        ),
        ({"type": "builtin", "name": "x", "zzz": 1}, "'zzz' is not a key of this tool source$"),
        ({"mcp": "git", 3: 1}, "'3' is not a key"),
        ({"mcp": "git", "tools": "git_log"}, "tools must be a list of tool names"),
        ({"mcp": "git", "tools": [1]}, "tools must be a list of tool names"),
        ({"mcp": "git", "tools": [""]}, "tools must be a list of tool names"),
        ({"mcp": "git", "tools": ["a"], "toolNames": ["b"]}, "toolNames and tools say the same thing"),
        ("x" * 10_000, "is not the name of a custom tool"),
        ("\x1b[2J", "x1b"),
    ],
)
def test_what_is_none_is_refused_with_a_reason(written: object, said: str) -> None:
    with pytest.raises(ValueError, match=said) as caught:
        read_source(written)
    assert len(str(caught.value)) < 400


def test_what_a_bare_name_means_goes_by_the_built_in_tools_there_are() -> None:
    assert read_source("fetch", builtins={"fetch"}) == BuiltinSource("fetch")
    assert read_source("save_to_memory", builtins=()) == CustomSource("save_to_memory")


@pytest.mark.parametrize(
    ("source", "stored"),
    [
        (BuiltinSource("save_to_memory"), {"type": "builtin", "name": "save_to_memory"}),
        (CustomSource("add"), {"type": "custom", "name": "add"}),
        (McpSource("git"), {"type": "mcp", "server_id": "git"}),
        (McpSource("git", ("a",)), {"type": "mcp", "server_id": "git", "tool_names": ["a"]}),
        (McpSource("git", ()), {"type": "mcp", "server_id": "git", "tool_names": []}),
    ],
    ids=repr,
)
def test_sources_are_stored_in_their_long_form(source: ToolSource, stored: dict[str, Any]) -> None:
    assert msgspec.json.decode(msgspec.json.encode(source)) == stored
    assert msgspec.convert(stored, ToolSource) == source
    assert read_source(stored) == source
