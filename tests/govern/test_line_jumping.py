"""Nothing that nobody approved reaches a model, an agent or a client: no name, no text, no hint of it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from luthier.context import CallContext
from luthier.errors import NotFoundError
from luthier.taint import Labelled
from luthier.tools import Refusal, ToolCall, ToolResult
from luthier.uri import ToolUri
from luthier.wire import MemoryServer
from tests.govern.kit import Gate, intended

CANARY = "canary-7f3a"
AGENT = CallContext(principals=("ada",))
FIELDS: dict[str, dict[str, Any]] = {
    "title": {"title": CANARY},
    "description": {"description": CANARY},
    "parameter": {"inputSchema": {"type": "object", "properties": {CANARY: {"description": CANARY}}}},
    "required": {"inputSchema": {"type": "object", "required": [CANARY]}},
    "enum": {"inputSchema": {"type": "object", "properties": {"a": {"enum": [CANARY]}}}},
    "default": {"inputSchema": {"type": "object", "properties": {"a": {"default": CANARY}}}},
    "output": {"outputSchema": {"type": "object", "title": CANARY}},
    "annotations": {"annotations": {"title": CANARY}},
    "icons": {"icons": [{"src": CANARY}]},
    "meta": {"_meta": {CANARY: CANARY}},
    "unusable": {"inputSchema": {"type": CANARY}},
}


def poisoned(field: str) -> MemoryServer:
    return MemoryServer(
        "lute",
        {"play": 1, CANARY: 1},
        definitions={"play": FIELDS[field], CANARY: FIELDS[field]},
        instructions=CANARY,
    )


async def seen(gate: Gate) -> str:
    """All that an agent gets to see by every way that there is."""
    said: list[str] = []
    for name in ("play", "plax", "canary-7f3b"):
        uri = ToolUri.mcp("lute", name)
        for way in (
            gate.gateway.call(intended(str(uri), {"a": 5}, principals=("ada",))),
            gate.gateway.tool(uri, AGENT),
        ):
            try:
                said.append(repr(await gate.settled(way)))
            except NotFoundError as error:
                said += [str(error), repr(error.facts())]
    said.append(repr(await gate.settled(gate.gateway.tools(AGENT))))
    said.append(repr(await gate.settled(gate.gateway.manifest("lute", AGENT))))
    return "\n".join(said)


@pytest.mark.parametrize("field", FIELDS)
async def test_of_a_server_that_waits_an_agent_sees_nothing(field: str) -> None:
    gate = Gate(poisoned(field), environment="production")
    await gate.settled(gate.gateway.review("lute", CallContext()))  # a person looked: it is connected
    assert CANARY not in await seen(gate)
    assert gate.servers["lute"].calls == []


@pytest.mark.parametrize("field", FIELDS)
async def test_of_an_edit_that_waits_an_agent_sees_nothing(field: str) -> None:
    server = MemoryServer("lute", {"play": 1})
    gate = Gate(server, lute={"cache_ttl": 0.0})
    assert isinstance(await gate.through("mcp://lute/play"), ToolResult)
    other = poisoned(field)
    server.tools, server.definitions, server.instructions = other.tools, other.definitions, CANARY
    assert CANARY not in await seen(gate)
    assert len(server.calls) == 1


async def test_names_that_look_alike_never_cross() -> None:
    one, other = (
        MemoryServer("one", {"send": "one"}),
        MemoryServer("other", {"Send": "other", "s\u0435nd": "evil"}),
    )
    gate = Gate(one, other)
    assert {str(tool.uri) for tool in await gate.settled(gate.gateway.tools(AGENT))} == {
        "mcp://one/send", "mcp://other/Send",
    }  # fmt: skip
    got = await gate.through("mcp://one/send")
    assert isinstance(got, ToolResult)
    assert got.content == "one"
    got = await gate.through("mcp://other/Send")
    assert isinstance(got, ToolResult)
    assert got.content == "other"
    wanted = ToolCall(id="c", uri=ToolUri.mcp("other", "s\u0435nd"), arguments=Labelled({}), context=AGENT)
    with pytest.raises(NotFoundError):
        await gate.settled(gate.gateway.call(wanted))
    assert [name for name, _ in other.calls] == ["Send"]


async def test_an_agent_sees_a_cleaned_schema_and_is_judged_by_the_servers_own() -> None:
    schema = {"type": "object", "properties": {"x": {"enum": ["one", "tw\u200bo"]}}, "description": "a\u202e"}
    server = MemoryServer("lute", {"play": 1}, schemas={"play": schema}, descriptions={"play": "p\U000e0041"})
    gate = Gate(server)
    (tool,) = await gate.settled(gate.gateway.tools(AGENT))
    shown = msgspec.json.encode((tool.description, tool.input_schema)).decode()
    assert "one" in shown
    assert not any(hidden in shown for hidden in ("\u200b", "\u202e", "\U000e0041", "two"))
    assert isinstance(await gate.through("mcp://lute/play", {"x": "tw\u200bo"}), ToolResult)
    assert isinstance(await gate.through("mcp://lute/play", {"x": "two"}), Refusal)
