"""How a session with a server is opened: over pipes, by URL, or as was given in place of both.

What a server answered to is remembered under the fingerprint of its entry and believed once: a server that no
longer answers to it is asked afresh, and what was remembered is dropped.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Protocol

import msgspec

from luthier.connect.launch import prepare
from luthier.connect.learned import Lesson
from luthier.connect.references import off_loop
from luthier.errors import ApprovalNeededError, WireError
from luthier.wire import Session, StdioTransport, open_session

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from luthier.clock import Clock
    from luthier.connect.learned import Learned
    from luthier.connect.registry import ServerRegistry
    from luthier.spec import ServerEntry
    from luthier.wire import Handlers, Leave, Transport

    Noise = Callable[[str, str], None]


class Opened(msgspec.Struct, frozen=True):
    """A session, the kind of transport that it runs over, and what its process is kept to."""

    session: Session
    transport: str
    isolation: tuple[str, ...] = ()


class Remotes(Protocol):
    """Sessions with servers by URL."""

    async def open(
        self, entry: ServerEntry, registry: ServerRegistry, lesson: Lesson | None, handlers: Handlers
    ) -> Opened:
        """A session, or one WireError. `lesson` is what the server answered to before."""

    async def close(self) -> None:
        """End what the sessions shared. Always ends, within a bound."""


class Openings:
    """`transports` gives ways to servers by id that replace what their entries say.

    `noise` is told what was odd about which server.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        learned: Learned,
        environ: Mapping[str, str],
        transports: Mapping[str, Callable[[], Transport]],
        noise: Noise,
        remotes: Callable[[], Remotes],
    ) -> None:
        self._clock = clock
        self._learned = learned
        self._environ = environ
        self._transports = dict(transports)
        self._noise = noise
        self._make_remotes = remotes
        self._remotes: Remotes | None = None
        self._lessons: dict[str, Lesson] = {}  # remembered last, so that no file is written without need

    async def open(
        self,
        entry: ServerEntry,
        registry: ServerRegistry,
        key: str,
        attempt: int,
        handlers: Handlers,
        leave: Leave | None = None,
    ) -> Opened:
        """A session with the server of an entry. Raises WireErrors. `attempt` is the number of the try.

        `leave` takes the ending of a process that was started in vain; without it, that is waited for.
        An entry that waits for approval is opened for nobody: no reference of it is even looked at.
        """
        if not entry.approved:
            raise ApprovalNeededError(server=entry.id, place=entry.origin.place("approved"))
        lesson = self._lesson(key) if attempt == 1 and _learns(entry) else None
        if not self.by_url(entry):
            opened = await self._over_pipes(entry, registry, lesson, handlers, leave)
        else:
            opened = await self._by_url(entry, registry, key, lesson, handlers)
        self.learn(entry, key, opened)
        return opened

    def by_url(self, entry: ServerEntry) -> bool:
        """Whether sessions with the server of an entry are opened over HTTP."""
        return entry.transport != "stdio" and entry.id not in self._transports

    def learn(self, entry: ServerEntry, key: str, opened: Opened) -> None:
        """Remember what the server answers to: what was found out, not what the entry says."""
        if not _learns(entry):
            return
        kind = opened.transport if self.by_url(entry) else ""
        lesson = Lesson(opened.session.version, kind)
        if self._lessons.get(key) != lesson:
            self._lessons[key] = lesson
            self._learned.remember(key, lesson)

    def forget(self, key: str) -> None:
        """What was remembered no longer holds."""
        self._lessons.pop(key, None)
        self._learned.forget(key)

    async def close(self) -> None:
        """End what sessions by URL share. Always ends, within a bound."""
        if self._remotes is not None:
            await self._remotes.close()

    async def _by_url(
        self,
        entry: ServerEntry,
        registry: ServerRegistry,
        key: str,
        lesson: Lesson | None,
        handlers: Handlers,
    ) -> Opened:
        if self._remotes is None:
            self._remotes = self._make_remotes()
        try:
            return await self._remotes.open(entry, registry, lesson, handlers)
        except WireError:
            if lesson is not None:
                self.forget(key)
            raise

    def _lesson(self, key: str) -> Lesson | None:
        lesson = self._learned.lesson(key)
        if lesson is not None:
            self._lessons[key] = lesson
        return lesson

    async def _over_pipes(
        self,
        entry: ServerEntry,
        registry: ServerRegistry,
        lesson: Lesson | None,
        handlers: Handlers,
        leave: Leave | None,
    ) -> Opened:
        """To a process, or to what was given in its place."""
        start: Callable[[], Transport] | None = self._transports.get(entry.id)
        kind, isolation = "memory", tuple[str, ...]()
        if start is None:
            launch = await off_loop(entry, self._clock, partial(prepare, entry, registry, self._environ))
            start = partial(StdioTransport, launch, self._clock, partial(self._noise, entry.id))
            kind, isolation = "stdio", launch.isolation
        session = await open_session(
            start,
            server=entry.id,
            clock=self._clock,
            timeout=entry.timeout,
            pinned=entry.protocol,
            remembered=None if lesson is None else lesson.era,
            handlers=handlers,
            leave=leave,
        )
        return Opened(session, kind, isolation)


def _learns(entry: ServerEntry) -> bool:
    """Whether the entry leaves anything open that could be learned."""
    return entry.protocol is None or entry.transport == "auto"
