"""A log that waits for others: its calls wait with it, nobody else does, and nothing is carried unwritten."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest

from luthier import Runtime
from luthier.govern import Intent, Outcome, Verdict
from luthier.testing import MemoryAudit, MemoryServer

if TYPE_CHECKING:
    from pathlib import Path

    from luthier.govern import Record

PATIENCE = 20


class HeldAudit(MemoryAudit):
    """Waits before each record of a kind until it may go on."""

    waits = True

    def __init__(self, kind: type[Record], **more: Any) -> None:
        super().__init__(**more)
        self.waiting = threading.Event()
        self.free = threading.Event()
        self._kind = kind

    def write(self, *records: Record) -> None:
        if any(isinstance(record, self._kind) for record in records):
            self.waiting.set()
            assert self.free.wait(PATIENCE)
        super().write(*records)

    @property
    def kept(self) -> list[str]:
        return [
            getattr(record, "verdict", "") or getattr(record, "outcome", "") or "intent"
            for record in self.records
            if isinstance(record, Verdict | Intent | Outcome)
        ]


def opened(root: Path, server: MemoryServer, audit: MemoryAudit) -> Runtime:
    return Runtime.open(
        {"mcpServers": {"lute": {"command": "python", "args": ["none.py"]}}},
        root=root,
        transports={"lute": server.transport},
        audit=audit,
    )


@pytest.mark.parametrize("kind", [Intent, Outcome])
async def test_others_go_on_while_a_call_waits_for_the_log(tmp_path: Path, kind: type[Record]) -> None:
    server, audit = MemoryServer("lute", {"play": "a note"}), HeldAudit(kind)
    async with opened(tmp_path, server, audit) as rt:
        waiting = asyncio.create_task(rt.call("mcp://lute/play"))
        assert await asyncio.to_thread(audit.waiting.wait, PATIENCE)
        await rt.tools.load("lute")
        assert (waiting.done(), len(server.calls)) == (False, kind is Outcome)
        audit.free.set()
        assert (await waiting).content == "a note"
    assert audit.kept == ["allowed", "intent", "ok"]


@pytest.mark.parametrize(
    ("kind", "fails", "kept"),
    [
        (Intent, (), ["allowed", "intent", "cancelled"]),
        (Intent, ("intent",), []),
        (Outcome, (), ["allowed", "intent", "ok"]),
    ],
)
async def test_a_call_that_is_called_off_meanwhile_is_written_and_not_carried(
    tmp_path: Path, kind: type[Record], fails: tuple[str, ...], kept: list[str]
) -> None:
    server, audit = MemoryServer("lute", {"play": "a note"}), HeldAudit(kind, fails=fails)
    async with opened(tmp_path, server, audit) as rt:
        calling = asyncio.create_task(rt.call("mcp://lute/play"))
        assert await asyncio.to_thread(audit.waiting.wait, PATIENCE)
        calling.cancel()
        audit.free.set()
        with pytest.raises(asyncio.CancelledError):
            await calling
    assert (audit.kept, len(server.calls)) == (kept, kind is Outcome)
