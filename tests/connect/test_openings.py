"""How sessions are opened, and what is remembered of it: believed once, dropped when it no longer holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from luthier.clock import FakeClock
from luthier.connect import Lesson, MemoryLearned, ServerRegistry
from luthier.connect.openings import Opened, Openings
from luthier.errors import ApprovalNeededError, ConnectError
from luthier.spec import ServerEntry
from luthier.wire import Handlers, MemoryServer, open_session

if TYPE_CHECKING:
    from luthier.spec.project import Transport

KEY = "lute:1"


class PlayedRemotes:
    """Opens sessions by URL as the test says: with a server in memory, or with an error."""

    def __init__(self) -> None:
        self.server = MemoryServer("lute", {"play": "a note"}, era="2025-06-18")
        self.kind = "sse"
        self.error: ConnectError | None = None
        self.lessons: list[Lesson | None] = []
        self.closed = 0

    async def open(
        self, entry: ServerEntry, _registry: ServerRegistry, lesson: Lesson | None, handlers: Handlers
    ) -> Opened:
        self.lessons.append(lesson)
        if self.error is not None:
            raise self.error
        session = await open_session(
            self.server.transport,
            server=entry.id,
            clock=FakeClock(),
            timeout=5.0,
            pinned=self.server.version,
            handlers=handlers,
        )
        return Opened(session, self.kind)

    async def close(self) -> None:
        self.closed += 1


class Stage:
    def __init__(self, transport: Transport = "auto", protocol: str | None = None) -> None:
        self.entry = ServerEntry(
            id="lute", transport=transport, url="https://lute.example.com", protocol=protocol
        )
        self.registry = ServerRegistry([self.entry])
        self.learned = Counted()
        self.remotes = PlayedRemotes()
        self.made = 0
        self.openings = self.again()

    def again(self) -> Openings:
        """As after a new start."""
        self.openings = Openings(
            clock=FakeClock(),
            learned=self.learned,
            environ={},
            transports={},
            noise=lambda _server, _text: None,
            remotes=self._make,
        )
        return self.openings

    def _make(self) -> PlayedRemotes:
        self.made += 1
        return self.remotes

    async def open(self, attempt: int = 1) -> Opened:
        return await self.openings.open(self.entry, self.registry, KEY, attempt, Handlers())


class Counted(MemoryLearned):
    """Counts how often something is written."""

    writes = 0

    def remember(self, key: str, lesson: Lesson) -> None:
        self.writes += 1
        super().remember(key, lesson)


async def test_what_was_found_out_is_remembered_and_believed_at_the_next_start() -> None:
    stage = Stage()
    opened = await stage.open()
    assert (opened.transport, opened.session.version) == ("sse", "2025-06-18")
    assert stage.learned.lesson(KEY) == Lesson("2025-06-18", "sse")
    stage.again()
    await stage.open()
    assert stage.remotes.lessons == [None, Lesson("2025-06-18", "sse")]


async def test_what_is_known_already_is_not_written_again() -> None:
    stage = Stage()
    opened = await stage.open()
    stage.openings.learn(stage.entry, KEY, opened)
    stage.again()
    await stage.open()
    assert stage.learned.writes == 1


async def test_only_the_first_try_of_a_row_believes_what_was_remembered() -> None:
    stage = Stage()
    stage.learned.remember(KEY, Lesson("2025-06-18", "rest"))
    await stage.open(attempt=2)
    assert stage.remotes.lessons == [None]
    assert stage.learned.lesson(KEY) == Lesson("2025-06-18", "sse")


async def test_what_no_longer_works_is_dropped_and_the_next_try_asks_afresh() -> None:
    stage = Stage()
    await stage.open()
    stage.remotes.error = ConnectError("it answers to nothing of that")
    with pytest.raises(ConnectError):
        await stage.open()
    assert stage.learned.lesson(KEY) is None
    stage.remotes.error, stage.remotes.kind = None, "http"
    await stage.open()
    assert stage.remotes.lessons[-1] is None
    assert stage.learned.lesson(KEY) == Lesson("2025-06-18", "http")


async def test_a_first_failure_drops_nothing_because_there_is_nothing() -> None:
    stage = Stage()
    stage.remotes.error = ConnectError("down")
    with pytest.raises(ConnectError):
        await stage.open()
    assert stage.learned.lesson(KEY) is None


async def test_what_an_entry_lays_down_is_not_learned() -> None:
    stage = Stage("http", protocol="2025-06-18")
    await stage.open()
    assert stage.learned.lesson(KEY) is None
    half = Stage("auto", protocol="2025-06-18")
    await half.open()
    assert half.learned.lesson(KEY) == Lesson("2025-06-18", "sse")


async def test_what_sessions_by_url_share_is_made_once_when_it_is_needed_and_closed() -> None:
    stage = Stage()
    await stage.openings.close()
    assert (stage.made, stage.remotes.closed) == (0, 0)
    await stage.open()
    await stage.open()
    await stage.openings.close()
    assert (stage.made, stage.remotes.closed) == (1, 1)


async def test_nothing_is_opened_for_an_entry_that_waits_for_approval() -> None:
    stage = Stage()
    stage.entry = ServerEntry(id="lute", url="https://${HOST}/", approved=False)
    with pytest.raises(ApprovalNeededError, match="luthier servers approve lute") as caught:
        await stage.open()
    assert (caught.value.kind, caught.value.retryable) == ("approval", False)
    stage.entry = ServerEntry(id="lute", command="${COMMAND}", approved=False)
    with pytest.raises(ApprovalNeededError):
        await stage.open()
    assert (stage.made, stage.remotes.lessons) == (0, [])
