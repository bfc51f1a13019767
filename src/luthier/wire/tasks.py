"""The tasks extension: a call that was answered with a handle is asked for until it has come to its end.

The server decides which calls become tasks. To whoever made the call nothing is different: it waits as long
as a call may, gets the result that the task ends with, and when it stops waiting the task is called off.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from luthier.clock import Deadline, sleep
from luthier.errors import ConnectionLostError, ProtocolError, WireError
from luthier.text import one_line
from luthier.tools import Reply
from luthier.wire import faults
from luthier.wire.codec import value
from luthier.wire.pending import Request
from luthier.wire.repair import UnreadableError
from luthier.wire.results import TaskStarted, read_reply
from luthier.wire.transport import Routing

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from luthier.clock import Clock
    from luthier.secrets import Secret
    from luthier.wire.link import Link

    Answer = Callable[[dict[str, Any]], Awaitable[dict[str, Any] | None]]

TASKS = "io.modelcontextprotocol/tasks"
"""The name of the extension, as both sides declare it."""

POLL = 1.0
"""Seconds between two questions where the server says nothing of them."""

SHORTEST_POLL = 0.05
"""Seconds that are left between two questions, whatever the server says."""

CANCELLING = 10.0
"""Seconds after which a server that does not say whether it called a task off is no longer waited for."""

_RUNNING = ("working", "input_required")
_ENDED = ("completed", "failed", "cancelled")
_any = msgspec.json.Decoder()


class _Task(msgspec.Struct, rename="camel"):
    """Nothing is promised about the types."""

    status: Any = UNSET
    status_message: Any = UNSET
    poll_interval_ms: Any = UNSET
    result: Raw | UnsetType = UNSET
    error: Any = UNSET


_task = msgspec.json.Decoder(_Task)


class Following:
    """One task from its handle to its end. `meta` is what each request carries.

    `silence` is how many seconds the server may say nothing of the task, None for as long as there is time;
    `deadline` is the monotonic second at which there is none left, None for never. `answer` gives what the
    task asks for on its way, None where it cannot. `headers` are those that the caller gave.
    """

    def __init__(  # noqa: PLR0913  (what the call was made with)
        self,
        link: Link,
        clock: Clock,
        handle: TaskStarted,
        *,
        tool: str,
        meta: dict[str, Any],
        silence: float | None,
        deadline: float | None,
        answer: Answer | None = None,
        headers: dict[str, Secret] | None = None,
    ) -> None:
        self._link = link
        self._clock = clock
        self._handle = handle
        self._tool = tool
        self._params = {"taskId": handle.id, "_meta": meta}
        self._silence = silence
        self._deadline = deadline
        self._answer = answer
        self._routing = Routing(name=handle.id, headers=headers)
        self._answered: set[str] = set()
        self._began = self._heard = clock.monotonic()

    async def end(self) -> Reply:
        """The reply that the task ends with, or what it asks for. Raises WireErrors."""
        left = None if self._deadline is None else self._deadline - self._began
        try:
            async with Deadline(self._clock, left):
                return await self._followed()
        except TimeoutError:
            self._call_off()
            raise self._timed_out() from None
        except asyncio.CancelledError:
            self._call_off()
            raise

    async def _followed(self) -> Reply:
        task, raw = self._read(self._handle.raw)
        while True:
            if task.status not in _ENDED:
                await sleep(self._clock, _interval(task.poll_interval_ms))
            answer = await self._asked()
            if answer is None:
                continue
            task, raw = self._read(answer)
            if task.status == "working" or (task.status == "input_required" and await self._given(raw)):
                continue
            return self._outcome(task, raw)

    async def _given(self, raw: Raw) -> bool:
        """Give the task what it asks for, where that is new; False where it cannot be given."""
        whole, _ = value(raw, _any)
        requests = whole.get("inputRequests")
        if self._answer is None or not isinstance(requests, dict) or not requests:
            return False
        new = {key: request for key, request in requests.items() if key not in self._answered}
        if not new:
            return True  # it was given all of that, and has not noticed yet
        answers = await self._answer(new)
        if answers is None:
            return False
        self._answered |= answers.keys()
        await self._link.request(
            "tasks/update",
            self._params | {"inputResponses": answers},
            phase="call",
            tool=self._tool,
            routing=self._routing,
            timeout=self._silence,
        )
        self._heard = self._clock.monotonic()
        return True

    async def _asked(self) -> Raw | None:
        """The task as it is now; None when that cannot be learned, and may be the next time."""
        left = None if self._silence is None else self._heard + self._silence - self._clock.monotonic()
        try:
            raw, _ = await self._link.request(
                "tasks/get",
                dict(self._params),
                phase="call",
                tool=self._tool,
                routing=self._routing,
                timeout=left,
            )
        except WireError as error:
            self._give_up_on(error)
            return None
        self._heard = self._clock.monotonic()
        return raw

    def _give_up_on(self, error: WireError) -> None:
        """Raise where asking again is of no use; the work goes on though a question was not answered."""
        refused = isinstance(error, ProtocolError) and error.code is not None
        if refused or isinstance(error, ConnectionLostError) or self._link.closed:
            raise error
        if self._silence is not None and self._clock.monotonic() - self._heard >= self._silence:
            self._call_off()
            raise self._timed_out() from error
        self._link.noise.tell(f"a task could not be asked for: {error.message}")

    def _read(self, raw: Raw) -> tuple[_Task, Raw]:
        try:
            task, _ = value(raw, _task)
        except UnreadableError as error:
            raise self._broken(f"whose state cannot be read: {error}") from None
        if task.status not in (*_RUNNING, *_ENDED):
            raise self._broken(f"in the unknown state {one_line(repr(task.status), 80)}")
        return task, raw

    def _outcome(self, task: _Task, raw: Raw) -> Reply:
        """What a task that no longer works comes to."""
        if task.status == "input_required":
            whole, notes = value(raw, _any)
            return Reply(input_required=whole, notes=notes)
        if task.status == "failed":
            raise faults.answered_error(self._link.server, self._request(), task.error)
        if task.status == "cancelled":
            said = f": {one_line(task.status_message)}" if isinstance(task.status_message, str) else ""
            raise self._broken(f"and then called it off itself{said}")
        if task.result is UNSET:
            raise self._broken("that ended without a result")
        try:
            return read_reply(task.result, (), server=self._link.server, tool=self._tool, modern=True)
        except TaskStarted:
            raise self._broken("that ended in another task") from None

    def _call_off(self) -> None:
        """Tell the server that nobody waits any more. What it answers is of no interest."""
        try:
            asking = self._link.begin(
                "tasks/cancel",
                dict(self._params),
                phase="call",
                tool=self._tool,
                routing=self._routing,
                timeout=CANCELLING,
            )
        except WireError:
            return  # the connection has ended, and with it all that can be said
        asking.standing = True

    def _timed_out(self) -> WireError:
        request = self._request()
        request.waited = self._clock.monotonic() - self._began
        return faults.timed_out(self._link.server, request, sent=True)

    def _request(self) -> Request:
        return Request(0, "tools/call", self._tool, "call")

    def _broken(self, how: str) -> ProtocolError:
        return ProtocolError(
            f"Server {self._link.server!r} made a task of tools/call {self._tool!r} {how}.",
            server=self._link.server,
            tool=self._tool,
        )


def _interval(milliseconds: Any) -> float:
    if isinstance(milliseconds, bool) or not isinstance(milliseconds, int | float):
        return POLL
    return max(milliseconds / 1000, SHORTEST_POLL)
