"""What the wire's tests share: a transport played by hand, bounded waits, and the purpose-made servers."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from luthier.clock import SystemClock
from luthier.wire import Handlers, Outgoing, Receiver, Session, StdioLaunch, StdioTransport, open_session
from luthier.wire.link import Link
from luthier.wire.noise import Noise

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from luthier.clock import Clock

T = TypeVar("T")
SERVERS = Path(__file__).parent / "servers"
BOUND = 20.0
"""Seconds that any single wait of a test may take, however busy the machine is."""

OPENED: list[Session] = []
"""What `connect` has opened during this test."""


async def bounded(awaitable: Awaitable[T], seconds: float = BOUND) -> T:
    async with asyncio.timeout(seconds):
        return await awaitable


class HandTransport:
    """Keeps what is sent and hands in what the test says."""

    stderr_tail = ""

    def __init__(self) -> None:
        self.sent: list[Outgoing] = []
        self.cancelled: list[tuple[int, dict[str, Any]]] = []
        self.receiver: Receiver
        self.closed = False
        self.free = asyncio.Event()
        self.free.set()

    async def start(self, receiver: Receiver) -> None:
        self.receiver = receiver

    def send(self, message: Outgoing) -> None:
        self.sent.append(message)

    def cancel(self, id: int, notice: Outgoing, /) -> None:
        self.cancelled.append((id, msgspec.json.decode(notice.data)))

    @property
    def congested(self) -> bool:
        return not self.free.is_set()

    async def drain(self) -> None:
        await self.free.wait()

    async def close(self) -> None:
        self.closed = True

    def said(self, index: int = -1) -> dict[str, Any]:
        """One of the messages that were sent, decoded."""
        message: dict[str, Any] = msgspec.json.decode(self.sent[index].data)
        return message

    def give(self, frame: bytes | dict[str, Any] | list[Any]) -> None:
        """Hand in one frame."""
        self.receiver.message(frame if isinstance(frame, bytes) else msgspec.json.encode(frame))


async def open_link(
    clock: Clock, transport: HandTransport | None = None
) -> tuple[Link, HandTransport, list[str]]:
    """A link over a hand transport, and what it tells as noise."""
    transport = transport or HandTransport()
    told: list[str] = []
    link = Link("s", transport, clock, Noise(told.append))
    await link.start()
    return link, transport, told


def launch(
    script: str, *args: str, server: str = "s", limit: int = 10 * 1024 * 1024, **env: str
) -> StdioLaunch:
    """One of the purpose-made servers, with coverage's variables so that nothing of ours is lost."""
    return StdioLaunch(
        server=server,
        argv=(sys.executable, str(SERVERS / script), *args),
        env={"PATH": os.environ["PATH"], **env},
        max_message_bytes=limit,
    )


async def connect(
    how: StdioLaunch,
    *,
    timeout: float = BOUND,
    pinned: str | None = None,
    handlers: Handlers | None = None,
) -> Session:
    clock = SystemClock()
    session = await open_session(
        lambda: StdioTransport(how, clock),
        server=how.server,
        clock=clock,
        timeout=timeout,
        pinned=pinned,
        handlers=handlers,
    )
    OPENED.append(session)
    return session


def processes_of(group: int) -> list[int]:
    """The processes of a group that run, by a look at /proc; the dead that nobody collected do not count."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == group and fields[0] not in "ZX":
            found.append(int(entry.name))
    return found


def descriptors() -> set[int]:
    """The open files of this process."""
    return {int(entry.name) for entry in Path("/proc/self/fd").iterdir() if entry.exists()}


async def gone(group: int, seconds: float = BOUND) -> bool:
    """Whether the group is empty within that time."""
    loop = asyncio.get_running_loop()
    limit = loop.time() + seconds
    while processes_of(group):
        if loop.time() > limit:
            return False
        await asyncio.sleep(0.02)
    return True
