"""One connection to one server: a single owner task opens the session and closes it; all others only await.

An owner lives one life: from the wish for a session until that session, or the last try at it, has ended.
It folds `lifecycle.step` over what happens and performs the commands. The next wish starts the next owner,
which does nothing before the one before has put everything away.
"""

from __future__ import annotations

import asyncio
import copy
from typing import TYPE_CHECKING, Any

from luthier.clock import Deadline, sleep
from luthier.connect import lifecycle
from luthier.errors import ConnectError, HttpError, LoginNeededError, WireError
from luthier.events import ServerFailed, ServerReady, ServerStarting, ServerStopped
from luthier.redaction import logger

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterable

    from luthier.clock import Clock
    from luthier.events import Observers
    from luthier.wire import Leave, Session

    Opener = Callable[[int, Leave], Awaitable[Session]]

_log = logger("luthier.connect")
_UNAUTHORIZED = 401


class Connection:
    """`opener(attempt, leave)` makes a session or raises a WireError; `draw` gives random numbers in [0, 1).

    What the opener leaves to be put away is done in the background: before the next try, and before the end.
    `on_failed` is told of the last error of a row of tries, when nobody tries any more.
    """

    def __init__(
        self,
        server: str,
        opener: Opener,
        *,
        policy: lifecycle.Policy,
        clock: Clock,
        observers: Observers,
        draw: Callable[[], float],
        on_failed: Callable[[WireError], None] | None = None,
    ) -> None:
        self.server = server
        self.sessions = 0  # so far: who kept something of an earlier one can tell
        self._opener = opener
        self._policy = policy
        self._clock = clock
        self._observers = observers
        self._draw = draw
        self._on_failed = on_failed
        self._state = lifecycle.State()
        self._session: Session | None = None
        self._error: WireError | None = None
        self._waiting: asyncio.Future[Session] | None = None
        self._owner: asyncio.Task[None] | None = None
        self._owners: set[asyncio.Task[None]] = set()
        self._closing: set[asyncio.Task[None]] = set()
        self._left: set[asyncio.Task[None]] = set()  # what tries that failed have left to be put away

    @property
    def phase(self) -> lifecycle.Phase:
        return self._state.phase

    @property
    def live(self) -> Session | None:
        """The session, if one stands right now."""
        session = self._session
        return None if session is None or session.closed else session

    @property
    def last_error(self) -> WireError | None:
        """What the last try of the present life failed with, if it failed."""
        return self._error

    async def session(self) -> Session:
        """The session, opened if there is none; all who wait share one opening. Raises WireError."""
        live = self.live
        if live is not None:
            return live
        if self._state.phase == "closed":
            raise self._ended("was closed")
        try:
            return await asyncio.shield(self._waiting or self._wish())
        except WireError as error:
            raise copy.copy(error) from error.__cause__  # each waiter gets a traceback of its own

    async def reset(self, seconds: float) -> None:
        """End what there is; the next wish starts afresh. Returns when it has ended, or after so long."""
        await self._stop(lifecycle.Reset(), "was reset", seconds)

    async def close(self, seconds: float) -> None:
        """End for good. Returns when it has ended, or after so long."""
        await self._stop(lifecycle.Close(), "was closed", seconds)

    def _wish(self) -> asyncio.Future[Session]:
        loop = asyncio.get_running_loop()
        self._error = None
        self._waiting = waiting = loop.create_future()
        waiting.add_done_callback(_retrieve)
        if self._state.phase == "ready":
            self._fold(lifecycle.Lost())  # the owner has not been told yet that its session is gone
        commands = self._fold(lifecycle.Wanted())
        work = self._own(commands, set(self._owners))
        self._owner = loop.create_task(work, name=f"luthier connection to {self.server}")
        self._owners.add(self._owner)
        self._owner.add_done_callback(self._owners.discard)
        return waiting

    async def _stop(self, event: lifecycle.Event, how: str, seconds: float) -> None:
        self._fold(event)
        self._answer(self._ended(how))
        owners = set(self._owners)
        for owner in owners - self._closing:  # who is putting things away must not be disturbed in it
            owner.cancel()
        if not await ended_within(owners, self._clock, seconds):
            _log.error("server %s did not stop within %g s and is left to itself", self.server, seconds)

    # What follows runs in owners, and after a fold only in the one of the present life.

    async def _own(self, commands: tuple[lifecycle.Command, ...], before: set[asyncio.Task[None]]) -> None:
        session: Session | None = None
        try:
            await _all_ended(before)
            while commands:
                session, event = await self._perform(commands[0], session)
                if event is None or self._owner is not asyncio.current_task():
                    break
                commands = self._fold(event)
                if isinstance(event, lifecycle.OpenFailed):
                    self._tell_failure(commands)
        except BaseException as error:
            if not isinstance(error, asyncio.CancelledError):
                _log.exception("the owner of the connection to %s failed", self.server)
            if self._owner is asyncio.current_task():
                self._fold(lifecycle.Reset())
                self._answer(self._ended("was broken off"))
            if not isinstance(error, Exception):
                raise
        finally:
            if session is not None:
                await self._put_away(session)

    async def _put_away(self, session: Session) -> None:
        owners = {owner for owner in self._owners if owner is asyncio.current_task()}
        self._closing |= owners
        try:
            await session.close()
        finally:
            self._closing -= owners

    def _leave(self, remains: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(remains, name=f"luthier closing of {self.server}")
        for tasks in (self._left, self._owners, self._closing):
            tasks.add(task)
            task.add_done_callback(tasks.discard)

    async def _perform(
        self, command: lifecycle.Command, session: Session | None
    ) -> tuple[Session | None, lifecycle.Event | None]:
        match command:
            case lifecycle.Open(attempt):
                return await self._try(attempt)
            case lifecycle.Wait(seconds):
                await sleep(self._clock, seconds)
                return None, lifecycle.Elapsed()
            case lifecycle.Serve() if session is not None:
                await self._serve(session)
                return session, lifecycle.Lost()
            case lifecycle.Fail() if self._error is not None:
                self._answer(self._error)
                if self._on_failed is not None:
                    self._on_failed(self._error)
        return session, None

    async def _try(self, attempt: int) -> tuple[Session | None, lifecycle.Event]:
        await _all_ended(self._left)
        began = self._clock.monotonic()
        self._observers.notify(ServerStarting(at=self._clock.now(), server=self.server, attempt=attempt))
        try:
            session = await self._opener(attempt, self._leave)
        except WireError as error:
            self._error = error
            return None, lifecycle.OpenFailed(
                retryable(error), self._draw(), retry_after(error), login_needed(error)
            )
        seconds = self._clock.monotonic() - began
        self._observers.notify(
            ServerReady(at=self._clock.now(), server=self.server, protocol=session.version, seconds=seconds)
        )
        return session, lifecycle.Opened()

    async def _serve(self, session: Session) -> None:
        self.sessions += 1
        self._session = session
        if self._waiting is not None:
            self._waiting.set_result(session)
            self._waiting = None
        reason = ""
        try:
            error = await session.wait_closed()
            reason = "" if error is None else error.message
        finally:
            if self._session is session:
                self._session = None
            self._observers.notify(ServerStopped(at=self._clock.now(), server=self.server, reason=reason))

    def _tell_failure(self, commands: tuple[lifecycle.Command, ...]) -> None:
        waits = [command.seconds for command in commands if isinstance(command, lifecycle.Wait)]
        self._observers.notify(
            ServerFailed(
                at=self._clock.now(),
                server=self.server,
                message=str(self._error),
                retry_in=waits[0] if waits else None,
            )
        )

    # Small steps

    def _fold(self, event: lifecycle.Event) -> tuple[lifecycle.Command, ...]:
        self._state, commands = lifecycle.step(self._state, event, self._policy)
        return commands

    def _answer(self, error: WireError) -> None:
        if self._waiting is not None:
            self._waiting.set_exception(error)
            self._waiting = None

    def _ended(self, how: str) -> ConnectError:
        return ConnectError(
            f"The connection to server {self.server!r} {how}.",
            server=self.server,
            phase="close",
            retryable=self._state.phase != "closed",
        )


def retryable(error: WireError) -> bool:
    """Whether a second try may go better: never for a fault of configuration, a rule, or a refusal."""
    return error.retryable if isinstance(error, ConnectError) else True


def retry_after(error: WireError) -> float | None:
    """Seconds that the server asked us to wait, if it did."""
    answer = error if isinstance(error, HttpError) else getattr(error, "http", None)
    return answer.retry_after if isinstance(answer, HttpError) else None


def login_needed(error: WireError) -> bool:
    """Whether nothing but a login, or other credentials, gets any further."""
    if isinstance(error, LoginNeededError):
        return True
    return isinstance(error, ConnectError) and error.http is not None and error.http.status == _UNAUTHORIZED


async def ended_within(tasks: Iterable[asyncio.Task[Any]], clock: Clock, seconds: float) -> bool:
    """Wait until all have ended, however they end; False when they have not after so long. Cancels none."""
    try:
        async with Deadline(clock, seconds):
            await _all_ended(set(tasks))
    except TimeoutError:
        return False
    return True


async def _all_ended(tasks: Iterable[asyncio.Task[Any]]) -> None:
    if tasks := set(tasks):
        await asyncio.wait(tasks)


def _retrieve(waiting: asyncio.Future[Session]) -> None:
    if not waiting.cancelled():
        waiting.exception()  # all who waited may have gone; the error was told as an event
