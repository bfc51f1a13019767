"""The official SDK's server as a peer, in both eras."""

from __future__ import annotations

import asyncio

import pytest

from luthier.errors import CallTimeoutError
from tests.wire.support import bounded, connect, launch


@pytest.mark.parametrize("pin", [None, "2024-11-05", "2025-06-18", "2025-11-25"])
async def test_the_official_server_is_played_in_both_eras(pin: str | None) -> None:
    session = await bounded(connect(launch("official.py"), pinned=pin), 40.0)
    assert session.version == (pin or "2026-07-28")
    assert session.server_info["name"] == "official"
    assert session.instructions == "Play softly."
    manifest = await bounded(session.list_tools(timeout=10.0))
    assert [tool.name for tool in manifest.tools] == ["add", "echo", "fail", "count", "hang"]
    assert manifest.dropped == ()
    assert manifest.tools[0].input_schema["properties"]["b"]["description"] == "the second"

    replies = await bounded(
        asyncio.gather(
            session.call_tool("add", {"a": 1, "b": 2}, timeout=10.0),
            session.call_tool("echo", {"text": "ä\u2028"}, timeout=10.0),
            session.call_tool("fail", {}, timeout=10.0),
        )
    )
    assert [reply.is_error for reply in replies] == [False, False, True]
    assert replies[0].content == {"total": 3}
    assert replies[1].blocks == [{"type": "text", "text": "ä\u2028"}]
    assert "fail" in replies[2].content
    assert all(reply.notes == () for reply in replies)

    seen: list[tuple[float, float | None, str]] = []

    def listen(progress: float, total: float | None, message: str) -> None:
        seen.append((progress, total, message))

    counting = session.call_tool("count", {"steps": 3}, timeout=5.0, timeout_max=10.0, on_progress=listen)
    reply = await bounded(counting)
    assert reply.content in ("counted", {"result": "counted"})
    assert seen == [(1, 3, "step 1"), (2, 3, "step 2"), (3, 3, "step 3")]

    with pytest.raises(CallTimeoutError):
        await bounded(session.call_tool("hang", {}, timeout=0.2))
    assert (await bounded(session.call_tool("no such tool", {}, timeout=10.0))).is_error
    await bounded(session.ping(timeout=10.0))
    await bounded(session.close())
