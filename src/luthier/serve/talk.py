"""One call of a client while it lasts: what it is told, and what it is asked, in either era of the protocol.

Before 2026-07-28 a server sends its questions while the request is open. Since then it answers the request
with them, `input_required`, and the client sends the request again with the answers: meanwhile the call goes
on waiting here, under a name that only the client knows.
"""

from __future__ import annotations

import asyncio
import itertools
import secrets
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from luthier.clock import Clock, SystemClock
from luthier.errors import CallerError
from luthier.redaction import redact
from luthier.serve.answer import sayable
from luthier.serve.asking import answer_of, question, result_type_of, unaskable
from luthier.serve.levels import is_old, wants

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp.server import ServerRequestContext
    from mcp_types import InputResponses

    from luthier.caller import Ability, Level
    from luthier.clock import Timer
    from luthier.serve.steps import Told

    Context = ServerRequestContext[Any, Any]

PATIENCE = 600.0
"""Seconds that a client has for an answer."""

MOST = 64
"""Calls of one client that may wait for its answers at once."""


class Question:
    """What a client was asked and has not answered; `request` is how the protocol says it."""

    __slots__ = ("answer", "params", "request", "what")

    def __init__(self, what: Ability, params: Mapping[str, Any], request: Any) -> None:
        self.what = what
        self.params = params
        self.request = request
        self.answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()


class Talk:
    """A line to the client of one call. `needs`: what it was to be asked and cannot."""

    def __init__(self) -> None:
        self.needs: set[Ability] = set()
        self.task: asyncio.Task[Any] | None = None
        self._context: Context | None = None
        self._asked: dict[str, Question] = {}
        self._given: dict[str, Any] = {}
        self._numbers = itertools.count(1)
        self._events: asyncio.Queue[Told | None] = asyncio.Queue()

    # The side of the request

    def attach(self, context: Context, answers: InputResponses | None) -> None:
        """Take up a request of the client, with the answers that it brings; others of them are kept."""
        self._context = context
        self._given.update(answers or {})
        for key, asked in list(self._asked.items()):
            if (found := self._brought(key, asked.what, asked.params)) is not None:
                del self._asked[key]
                asked.answer.set_result(found)
            elif not self.can(asked.what):  # each request says anew what its client can
                del self._asked[key]
                asked.answer.set_exception(self._incapable(asked.what))
        if self._asked:
            self._events.put_nowait(None)

    def detach(self) -> None:
        """The request is over; until the next one nobody hears what is told."""
        self._context = None

    def follow(self, task: asyncio.Task[Any]) -> None:
        """Take the work that this is about."""
        self.task = task
        task.add_done_callback(lambda _: self._events.put_nowait(None))

    def tell(self, told: Told) -> None:
        """Have a step told as progress."""
        self._events.put_nowait(told)

    async def turn(self) -> bool:
        """Tell of progress until the task is done (True), or until questions wait to be sent (False)."""
        while True:
            told = await self._events.get()
            if told is not None:
                await self.progress(told.done, told.total, told.message)
            elif self.task is not None and self.task.done():
                return True
            elif self._asked:
                return False

    def questions(self) -> dict[str, Any]:
        """What is not answered yet, as the protocol's `inputRequests`."""
        return {key: asked.request for key, asked in self._asked.items()}

    # The side of what is being done

    def can(self, what: Ability) -> bool:
        declared = self._context and self._context.session.client_capabilities
        return declared is not None and getattr(declared, what) is not None

    async def log(self, level: Level, text: str) -> None:
        if self._context is None or not wants(self._context, level):
            return
        from mcp_types import LoggingMessageNotification, LoggingMessageNotificationParams

        params = LoggingMessageNotificationParams(level=level, data=sayable(redact(text)), logger="luthier")
        note = LoggingMessageNotification(params=params)
        await self._context.session.send_notification(note, self._context.request_id)

    async def progress(self, done: float, total: float | None, message: str) -> None:
        if self._context is not None:
            said = sayable(redact(message)) or None
            await self._context.session.report_progress(done, total, said)

    async def ask(self, what: Ability, params: Mapping[str, Any], key: str) -> dict[str, Any]:
        if self._context is not None and not self.can(what):
            raise self._incapable(what)
        from pydantic import ValidationError

        asked = cast("dict[str, Any]", sayable(dict(params)))
        if fault := unaskable(what, asked):
            raise CallerError(f"This cannot be asked: {fault}.")
        try:
            request = question(what, asked)
        except ValidationError as error:
            raise CallerError(f"This cannot be asked: {error}") from error
        if self._context is not None and is_old(self._context):
            return await self._ask_now(self._context, what, asked, request)
        return await self._ask_later(what, asked, request, key)

    def _incapable(self, what: Ability) -> CallerError:
        self.needs.add(what)
        return CallerError(f"The client cannot be asked: it did not declare {what}.", needs=what)

    async def _ask_now(
        self, context: Context, what: Ability, params: dict[str, Any], request: Any
    ) -> dict[str, Any]:
        from mcp.shared.exceptions import MCPError
        from mcp.shared.message import ServerMessageMetadata
        from pydantic import ValidationError

        try:
            answer = await context.session.send_request(
                request,
                result_type_of(what),
                request_read_timeout_seconds=PATIENCE,
                metadata=ServerMessageMetadata(related_request_id=context.request_id),
            )
        except (MCPError, ValidationError) as error:
            raise CallerError(f"The client gave no answer: {error}") from error
        found = answer_of(what, params, answer)
        if found is None:
            raise CallerError("The client's answer does not fit what it was asked.")
        return found

    async def _ask_later(
        self, what: Ability, params: dict[str, Any], request: Any, key: str
    ) -> dict[str, Any]:
        name = self._free(key or what)
        if (found := self._brought(name, what, params)) is not None:
            return found
        asked = Question(what, params, request)
        self._asked[name] = asked
        self._events.put_nowait(None)
        try:
            return await asked.answer
        finally:
            self._asked.pop(name, None)

    def _free(self, key: str) -> str:
        return key if key not in self._asked else f"{key}-{next(self._numbers)}"

    def _brought(self, key: str, what: Ability, params: Mapping[str, Any]) -> dict[str, Any] | None:
        """The answer under that name, if it is one to this; each is used once."""
        given = self._given.pop(key, None)
        return None if given is None else answer_of(what, params, given)


class _Parked(NamedTuple):
    client: str
    talk: Talk
    timer: Timer


class Talks:
    """The calls that wait for answers of their clients: so many, for so long; others are called off."""

    def __init__(self, clock: Clock | None = None, most: int = MOST) -> None:
        self._clock = clock or SystemClock()
        self._most = most
        self._parked: dict[str, _Parked] = {}

    def park(self, client: str, talk: Talk) -> str | None:
        """Keep a call until its client comes back; the name to ask for it. None: too many wait already."""
        if sum(parked.client == client for parked in self._parked.values()) >= self._most:
            return None
        name = secrets.token_urlsafe(16)
        timer = self._clock.call_later(PATIENCE, lambda: self._give_up(name))
        self._parked[name] = _Parked(client, talk, timer)
        return name

    def take(self, client: str, name: str) -> Talk | None:
        """The call of that name, once, and for nobody but its own client."""
        parked = self._parked.get(name)
        if parked is None or parked.client != client:
            return None
        del self._parked[name]
        parked.timer.cancel()
        return parked.talk

    def _give_up(self, name: str) -> None:
        task = self._parked.pop(name).talk.task
        if task is not None:
            task.cancel()
