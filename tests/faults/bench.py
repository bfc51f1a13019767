"""Puts the faulty server under the real stack, and sees what it wrote down and what is left of it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
import uuid
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from luthier import Runtime
from luthier.clock import SystemClock
from luthier.connect import ConnectionManager, MemoryLearned, ServerRegistry
from luthier.context import CallContext
from luthier.events import Event, Observers, ServerNoise
from luthier.spec import ServerEntry, read_project
from luthier.taint import Labelled
from luthier.tools import Manifest, Reply, ToolCall
from luthier.uri import ToolUri
from tests.faults.peer import JOURNAL

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping

    from luthier.clock import Clock
    from luthier.connect import Learned

ROOT = Path(__file__).parent.parent.parent
MARK = "FAULTY_MARK"
LEGACY, MODERN = "2025-11-25", "2026-07-28"
ERAS: dict[str, str | None] = {"legacy": LEGACY, "modern": MODERN, "auto": None}

CLOSING = 40.0
"""Seconds that closing may take at the very most: two waits of two seconds, and a machine that is shared."""


async def turn() -> None:
    """Let a moment pass between two looks at what has no event to wait for."""
    await asyncio.sleep(0.01)


PATIENCE = 30.0
"""Seconds after which what should come about is not waited for any longer, on however slow a machine."""

LOADED = 5.0
"""How many times as long as a machine of its own needs, a test may take on one that is shared."""


def bound(seconds: float) -> float:
    """The bound of a test that takes so long at most on a machine of its own; under the runner's own."""
    return min(seconds * LOADED, 55.0)


class Drills:
    """How many drills of a table ended in their time, and how near to its end the slowest was."""

    def __init__(self) -> None:
        self._shares: list[float] = []

    @asynccontextmanager
    async def one(self, seconds: float) -> AsyncIterator[None]:
        """One drill, which is ended when its time is up."""
        began = time.monotonic()
        async with asyncio.timeout(seconds):
            yield
        self._shares.append((time.monotonic() - began) / seconds)

    def told(self, what: str) -> str:
        """The figure."""
        count, slowest = len(self._shares), max(self._shares, default=0)
        return f"G10: {count} drills {what} ended in their time, the slowest after {slowest:.0%} of it"


async def until(condition: Callable[[], bool], *, what: str = "") -> None:
    """Look again and again until it holds; fails when patience ends."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, f"it did not come about: {what or condition}"
        await turn()


@dataclass(frozen=True)
class Journal:
    """What the servers wrote down, of all their lives."""

    path: Path

    def lines(self) -> list[dict[str, Any]]:
        text = self.path.read_text(encoding="utf-8") if self.path.exists() else ""
        return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]

    def starts(self) -> list[int]:
        """The process id of each start, in order."""
        return [line["pid"] for line in self.lines() if "started" in line]

    def heard(self, method: str) -> list[dict[str, Any]]:
        """All messages of that method."""
        return [
            line["heard"]
            for line in self.lines()
            if "heard" in line and line["heard"].get("method") == method
        ]

    def methods(self) -> list[str]:
        """The methods of all messages, in order."""
        return [line["heard"]["method"] for line in self.lines() if "method" in line.get("heard", {})]

    def asked(self, method: str = "POST") -> list[dict[str, Any]]:
        """The requests by that HTTP method: path, headers, and the message if there is one."""
        return [line for line in self.lines() if line.get("asked") == method]

    def calls(self, tool: str) -> list[dict[str, Any]]:
        """The arguments of each call that ran."""
        return [line["arguments"] for line in self.lines() if line.get("call") == tool]

    def workers(self) -> list[int]:
        """The process ids of children that servers started."""
        return [line["worker"] for line in self.lines() if "worker" in line]

    async def called(self, tool: str, times: int = 1) -> None:
        """Return once so many calls of it run."""
        await until(lambda: len(self.calls(tool)) >= times, what=f"{times} calls of {tool}")

    async def hears(self, method: str, times: int = 1) -> list[dict[str, Any]]:
        """The messages of that method, once so many have come."""
        await until(lambda: len(self.heard(method)) >= times, what=f"{times} times {method}")
        return self.heard(method)


@dataclass
class Watcher:
    """Keeps every event."""

    events: list[Event] = field(default_factory=list)

    def notify(self, event: Event) -> None:
        self.events.append(event)

    def of(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def noise(self) -> list[str]:
        return [event.message for event in self.of(ServerNoise)]


@dataclass
class House:
    """A connection manager over faulty servers."""

    manager: ConnectionManager
    journal: Journal
    watcher: Watcher
    bench: Bench

    async def call(
        self, tool: str, /, *, server: str = "faulty", timeout: float | None = None, **arguments: Any
    ) -> Reply:
        """One call, carried as the gate carries it."""
        uri, context = ToolUri.mcp(server, tool), CallContext()
        found = self.manager.known(uri, context) or (await self.manager.manifest(server)).find(tool)
        assert found is not None, f"{server} lists no tool {tool}"
        call = ToolCall(
            id=uuid.uuid4().hex, uri=uri, arguments=Labelled(arguments), context=context, timeout=timeout
        )
        return await self.manager.carry(call, found)

    async def manifest(self, server: str = "faulty") -> Manifest:
        return await self.manager.manifest(server)

    async def names(self, server: str = "faulty") -> list[str]:
        return [tool.name for tool in (await self.manifest(server)).tools]

    async def pid(self, server: str = "faulty") -> int:
        """The server's process, which this call shows to be well."""
        return int((await self.call("pid", server=server)).blocks[0]["text"])


@dataclass
class Bench:
    """One test's place: a folder, a mark that every process of it bears, and the journal."""

    root: Path
    mode: str
    arguments: tuple[str, ...] = ()
    protocol: str | None = None
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)

    @property
    def journal(self) -> Journal:
        return Journal(self.root / "journal.jsonl")

    def fields(self, *arguments: str, mode: str | None = None, **fields: Any) -> dict[str, Any]:
        """An entry as a project file would say it."""
        said = [mode or self.mode, *(arguments or self.arguments)]
        env = {JOURNAL: str(self.journal.path), MARK: self.mark, **fields.pop("env", {})}
        entry = {
            "command": "python",
            "args": ["-m", "tests.faults.faulty_stdio", *said],
            "cwd": str(ROOT),
            "max_retries": 0,
            "protocol": self.protocol,
            **fields,
            "env": env,
        }
        return {key: value for key, value in entry.items() if value is not None}

    def entry(self, *arguments: str, id: str = "faulty", **fields: Any) -> ServerEntry:
        """An entry for one mode, this bench's own if no other is named."""
        return self.read(self.fields(*arguments, **fields), id=id)

    def read(self, fields: dict[str, Any], *, id: str = "faulty") -> ServerEntry:
        """An entry out of what a project file would say."""
        return read_project({"mcpServers": {id: fields}}, root=self.root).servers[id]

    @asynccontextmanager
    async def house(
        self,
        *entries: ServerEntry,
        environ: Mapping[str, str] | None = None,
        clock: Clock | None = None,
        learned: Learned | None = None,
        allowed_commands: tuple[str, ...] = ("python", "sh", "uvx"),
    ) -> AsyncIterator[House]:
        """A manager over these entries; afterwards everything is closed, and nothing may be left."""
        watcher = Watcher()
        manager = ConnectionManager(
            ServerRegistry(entries or [self.entry()], allowed_commands=allowed_commands, root=self.root),
            clock=clock or SystemClock(),
            observers=Observers([watcher]),
            learned=learned or MemoryLearned(),
            environ=os.environ if environ is None else environ,
        )
        try:
            yield House(manager, self.journal, watcher, self)
        finally:
            async with asyncio.timeout(CLOSING):
                await manager.close_all()
        await self.nothing_is_left()

    @asynccontextmanager
    async def runtime(
        self,
        servers: Mapping[str, Any] | None = None,
        *,
        project: Mapping[str, Any] | None = None,
        **parts: Any,
    ) -> AsyncIterator[Runtime]:
        """The whole house over these servers or this project, the gate included."""
        said = project or {"mcpServers": servers or {"faulty": self.fields()}}
        try:
            async with Runtime.open(said, root=self.root, **parts) as rt:
                yield rt
        finally:
            await self.nothing_is_left()

    async def nothing_is_left(self) -> None:
        """Every process that ever bore the mark is gone, and none of ours is a zombie."""
        await until(lambda: not list(marked(self.mark)), what="all processes are gone")
        await until(lambda: not list(zombies()), what="no zombie is ours")

    def kill_leftovers(self) -> None:
        """For a test that failed: leave the machine as it was."""
        for pid in marked(self.mark):
            os.kill(pid, signal.SIGKILL)


def marked(mark: str) -> Iterator[int]:
    """The processes that bear the mark in their environment."""
    wanted = f"{MARK}={mark}".encode()
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit() or int(folder.name) == os.getpid():
            continue
        try:
            if wanted in (folder / "environ").read_bytes().split(b"\0"):
                yield int(folder.name)
        except OSError:
            continue  # it ended while we looked, or is not ours


def zombies() -> Iterator[int]:
    """Ended children of this process that nobody has waited for."""
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and stat(int(folder.name)) == ("Z", os.getpid()):
            yield int(folder.name)


def stat(pid: int) -> tuple[str, int] | None:
    """State letter and parent of a process; None where there is none."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    state, parent = text.rpartition(")")[2].split()[:2]
    return state, int(parent)


def lives(pid: int) -> bool:
    found = stat(pid)
    return found is not None and found[0] != "Z"
