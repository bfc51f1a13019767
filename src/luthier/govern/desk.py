"""The desk: where requests are put before people, and where one waits for what they decide.

The request is kept where every process of the project can decide about it. A decision is taken from there and
nowhere else, so it does not matter who has waited and who has decided. Whatever goes wrong is a no.
"""

from __future__ import annotations

import asyncio
import inspect
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

from luthier.clock import sleep
from luthier.errors import LuthierError
from luthier.govern.audit import written_down
from luthier.govern.records import Asked
from luthier.govern.requests import Answer, asked_of
from luthier.redaction import redact as redact_known
from luthier.tools.threads import in_thread

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from luthier.clock import Clock
    from luthier.context import CallContext
    from luthier.govern.approvals import Approvals
    from luthier.govern.audit import AuditLog
    from luthier.govern.requests import Question, Request

    Callback = Callable[[Request], Any]

POLL = 0.25
"""Seconds between two looks at what another process may have decided."""

CALLBACK_TIME = 300.0
"""Seconds that a callback has, where nothing else is said."""


class Desk:
    """`callback` gets each request that is waited for, and answers it: True, False, a value, or an `Answer`.

    `timeout` is seconds that one waits; None: as long as a callback may take, and without one not at all.
    """

    def __init__(
        self,
        approvals: Approvals,
        audit: AuditLog,
        clock: Clock,
        *,
        timeout: float | None = None,
        callback: Callback | None = None,
        redact: Callable[[str], str] = redact_known,
    ) -> None:
        self.approvals = approvals
        self.clock = clock
        self.redact = redact
        self._audit = audit
        self._timeout = timeout if timeout is not None else CALLBACK_TIME if callback else 0.0
        self._callback = callback
        self._known: dict[str, set[str]] = {}  # the requests of each run that this process knows of

    @property
    def asks(self) -> bool:
        """Whether one waits here for anybody at all."""
        return self._timeout > 0

    async def put(self, request: Request) -> None:
        """Let people know of it, from now on. Raises AuditError."""
        await written_down(
            self._audit,
            Asked(
                call=request.call,
                approval=request.id,
                request=request.binding,
                uri=request.uri,
                rule=request.rule,
                place=request.place,
                run=request.run,
                step=request.step,
            ),
        )
        self.know(request)
        putting = asyncio.ensure_future(self.approvals.put(request))
        try:
            await asyncio.shield(putting)
        except asyncio.CancelledError:
            await asyncio.wait({putting})  # else it may lie there after it was taken away
            raise

    async def ask(self, question: Question, context: CallContext) -> Request:
        """Put a question of a step, or find it where its run, which can be suspended, has put it before."""
        id = self.approvals.new_id()
        request = asked_of(question, context, id=id, now=self.clock.now(), redact=self.redact)
        before = await self.approvals.find(request.binding) if context.durable else None
        if before is None:
            await self.put(request)
        return before or request

    async def used(self, request: Request) -> bool:
        """Take away what was decided, because it is being used: once, however many try."""
        return await self.approvals.swap(request, None)

    async def waited(self, request: Request, *, keep: bool = False) -> Request | None:
        """The request when it has been decided; None when the time is up, or nobody can decide any more.

        What nobody waits for any more is taken away, unless it is to be kept.
        """
        asking = None
        if self._callback is not None:
            asking = asyncio.create_task(self._asked_back(request, self._callback))
        decided = None
        try:
            decided = await self._decision(request, self.clock.monotonic() + self._timeout)
        finally:
            if asking is not None:
                asking.cancel()
            if decided is None and not keep:
                with suppress(LuthierError):
                    await self.approvals.swap(request, None)
        return decided

    def know(self, request: Request) -> None:
        """Remember whose it is, for `withdraw`: the run's, and that of the outermost around it."""
        for run in {request.run, request.root} - {""} if request.run else ():
            self._known.setdefault(run, set()).add(request.id)

    def forget(self, run: str) -> None:
        """Leave what a run has asked as it is: another process may go on with it."""
        self._known.pop(run, None)

    async def withdraw(self, run: str, *, keep: Collection[str] = ()) -> None:
        """Take away what a run and those inside it have asked, apart from these requests. Raises StoreError.

        Only what this process knows of: another one may have gone on with the run, and ask anew.
        """
        for id in self._known.pop(run, set()).difference(keep):
            with suppress(ValueError):
                request = await self.approvals.read(id)
                if request is not None:
                    await self.approvals.swap(request, None)

    async def drop(self, roots: Collection[str]) -> None:
        """Take away what these runs and those inside them have asked, in any process. Raises StoreError."""
        for request in await self.approvals.list():
            if request.root in roots:
                await self.approvals.swap(request, None)

    async def _decision(self, request: Request, until: float) -> Request | None:
        while True:
            changed = asyncio.ensure_future(self.approvals.changed())
            try:
                found = await self.approvals.read(request.id)
                if found is None or found.binding != request.binding:
                    return None
                if found.state != "waiting":
                    return found
                left = min(until - self.clock.monotonic(), found.expires - self.clock.now())
                if left <= 0:
                    return None
                pause = asyncio.ensure_future(sleep(self.clock, min(left, POLL)))
                try:
                    await asyncio.wait({changed, pause}, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    pause.cancel()
            finally:
                changed.cancel()

    async def _asked_back(self, request: Request, callback: Callback) -> None:
        """Have the callback decide; whatever is no answer is a no, and so is a callback that fails."""
        via = getattr(callback, "via", "callback")
        try:
            if inspect.iscoroutinefunction(callback):
                said = await callback(request)
            else:
                said = await in_thread(lambda: callback(request), name="luthier-approve")
                if inspect.isawaitable(said):
                    said = await said
        except (Exception, SystemExit) as error:  # noqa: BLE001  (a callback that fails has said no)
            said, via = Answer(approved=False), f"callback failed: {type(error).__name__}"
        answer = _answer_of(request, said)
        if answer is None:
            answer, via = Answer(approved=False), f"callback answered with a {type(said).__name__}"
        with suppress(LuthierError):  # another was faster, or nothing can be decided: then it is a no
            await self._decide(request, answer, via)

    async def _decide(self, request: Request, answer: Answer, via: str) -> None:
        if answer.approved:
            try:
                await self.approvals.approve(request.id, answer=answer.value, why=answer.why, via=via)
            except LuthierError as error:
                await self.approvals.deny(request.id, why=error.message, via=f"{via}, with no good answer")
        else:
            await self.approvals.deny(request.id, why=answer.why, via=via)


def _answer_of(request: Request, said: Any) -> Answer | None:
    """What a callback meant; None where it means nothing."""
    if isinstance(said, Answer):
        return said
    if request.schema is not None:
        return Answer(approved=True, value=said)
    if said is True or said is False:
        return Answer(approved=said, value=msgspec.UNSET)
    return None
