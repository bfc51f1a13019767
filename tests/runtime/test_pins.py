"""The two environments as a runtime keeps them: pinned at first use, or waiting for a person."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from luthier import Refused, Runtime
from luthier.testing import MemoryServer, MemoryState

if TYPE_CHECKING:
    from pathlib import Path


def opened(root: Path, server: MemoryServer, state: MemoryState, **project: Any) -> Runtime:
    entry = {"url": "https://lute.example/mcp", "allowed_agents": ["operator"], "cache_ttl_ms": 0}
    return Runtime.open(
        {"mcpServers": {"lute": entry}, **project},
        root=root,
        state=state,
        transports={"lute": server.transport},
    )


async def test_in_production_a_server_waits_unasked_until_a_person_approved_its_tools(tmp_path: Path) -> None:
    server, state = MemoryServer("lute", {"play": "a note"}), MemoryState()
    async with opened(tmp_path, server, state, environment="production") as rt:
        listing = await rt.tools.load()
        assert [tool for tool in listing.tools if tool.uri.scheme == "mcp"] == []
        assert "wait for approval" in str(listing.failed["lute"])
        with pytest.raises(Refused) as caught:
            await rt.call("mcp://lute/play")
        assert (caught.value.refusal_kind, caught.value.rule) == ("approval", "pins")
        assert server.connections == 0
        review = await rt.review_tools("lute")
        assert await rt.pins.approve(review, by="ada") == ("play",)
        assert (await rt.call("mcp://lute/play")).content == "a note"
        assert [str(tool.uri) for tool in (await rt.tools.load("lute")).tools] == ["mcp://lute/play"]


async def test_in_development_the_first_use_pins_and_another_process_keeps_to_it(tmp_path: Path) -> None:
    server, state = MemoryServer("lute", {"play": "a note"}), MemoryState()
    async with opened(tmp_path, server, state) as rt:
        assert (await rt.call("mcp://lute/play")).content == "a note"
    server.descriptions["play"] = "Plays, and more."
    async with opened(tmp_path, server, state) as rt:
        with pytest.raises(Refused, match="its definition changed"):
            await rt.call("mcp://lute/play")
        assert (await rt.tools.load("lute")).tools == ()
    assert len(server.calls) == 1
