"""Tools, manifests and intended calls."""

from __future__ import annotations

import pytest

from luthier.context import CallContext
from luthier.taint import Labelled
from luthier.tools import DroppedTool, Manifest, Tool, ToolCall
from luthier.uri import ToolUri


def tool(name: str, description: str = "") -> Tool:
    return Tool(uri=ToolUri.mcp("git", name), description=description, input_schema={})


def test_a_tool_is_named_as_its_own_server_names_it() -> None:
    assert tool("a/b c").name == "a/b c"


def test_a_manifest_finds_a_tool_by_that_name() -> None:
    log = tool("log")
    manifest = Manifest(server="git", tools=(tool("status"), log), dropped=(DroppedTool("bad", "no schema"),))
    assert manifest.find("log") is log
    assert manifest.find("bad") is None
    assert manifest.find("LOG") is None


def test_of_two_tools_of_one_name_the_first_is_found() -> None:
    manifest = Manifest(server="git", tools=(tool("log", "first"), tool("log", "second")))
    found = manifest.find("log")
    assert found is not None
    assert found.description == "first"


def test_looking_a_tool_up_does_not_change_what_a_manifest_equals() -> None:
    tools = (tool("log"),)
    one, other = Manifest(server="git", tools=tools), Manifest(server="git", tools=tools)
    one.find("log")
    assert one == other


def test_nothing_of_a_tool_or_a_call_can_be_changed() -> None:
    with pytest.raises(AttributeError):
        tool("log").description = "other"  # type: ignore[misc]
    call = ToolCall(id="1", uri=ToolUri.custom("add"), arguments=Labelled({}))
    assert call.context == CallContext()
    with pytest.raises(AttributeError):
        call.id = "2"  # type: ignore[misc]
