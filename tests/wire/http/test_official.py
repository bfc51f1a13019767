"""The official SDK's servers: both eras by streamable HTTP, in both forms of answers, and the older SSE."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from luthier.wire import HANDSHAKE_VERSIONS, Handlers
from tests.wire.http.support import bounded, session_at, until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

SERVER = Path(__file__).parent / "official.py"


@contextlib.asynccontextmanager
async def official(way: str) -> AsyncIterator[str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(SERVER), way, stdout=asyncio.subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        port = int(await bounded(process.stdout.readline(), 40))
        yield f"http://127.0.0.1:{port}/{'sse' if way == 'sse' else 'mcp'}"
    finally:
        process.kill()
        await process.wait()


async def use(session: Any) -> None:
    manifest = await bounded(session.list_tools(timeout=20))
    assert [tool.uri.name for tool in manifest.tools] == ["echo", "count", "grow"]
    replies = await bounded(
        asyncio.gather(*(session.call_tool("echo", {"text": f"t{i}"}, timeout=20) for i in range(20)))
    )
    assert [reply.blocks[0]["text"] for reply in replies] == [f"t{i}" for i in range(20)]
    await bounded(session.ping(timeout=20))


@pytest.mark.parametrize("way", ["json", "stream"])
async def test_streamable_http_in_every_revision(way: str) -> None:
    async with official(way) as url:
        for pinned in (None, *HANDSHAKE_VERSIONS[1:], "2026-07-28"):
            async with session_at(url, "auto", pinned=pinned) as session:
                assert session.version == (pinned or "2026-07-28")
                await use(session)


@pytest.mark.parametrize("pinned", ["2025-11-25", "2026-07-28"])
async def test_progress_and_changes_come_in_both_eras(pinned: str) -> None:
    changes: list[int] = []
    told: list[float] = []
    handlers = Handlers(on_tools_changed=lambda: changes.append(1))
    async with official("stream") as url, session_at(url, pinned=pinned, handlers=handlers) as session:
        counting = session.call_tool(
            "count", {"steps": 2}, timeout=20, on_progress=lambda progress, *_: told.append(progress)
        )
        assert (await bounded(counting)).blocks[0]["text"] == "counted"
        assert told == [1, 2]
        await bounded(session.call_tool("grow", {}, timeout=20))
        await until(lambda: changes)


async def test_the_older_sse_is_found_and_used() -> None:
    async with official("sse") as url:
        for kind in ("sse", "auto"):
            async with session_at(url, kind) as session:
                assert session.version in HANDSHAKE_VERSIONS
                await use(session)
