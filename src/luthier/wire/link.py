"""A JSON-RPC peer over one transport: requests and their answers, both ways, whatever the other side sends.

Of MCP it knows what concerns single requests: progress tokens, and the notifications of progress and of
cancellation.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, Raw

from luthier.clock import Deadline
from luthier.errors import ProtocolError, WireError
from luthier.text import one_line
from luthier.wire import faults
from luthier.wire.codec import REFUSED, Message, decode, encode, read, value
from luthier.wire.inbox import Inbox, find_id
from luthier.wire.pending import OnProgress, Outcome, Pending, Request, as_id
from luthier.wire.repair import UnreadableError
from luthier.wire.transport import PLAIN, Outgoing, Routing

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from luthier.clock import Clock
    from luthier.wire.noise import Noise
    from luthier.wire.transport import Transport

CANCELLED = "notifications/cancelled"
PROGRESS = "notifications/progress"

_any = msgspec.json.Decoder()
_SHOWN = 200  # characters of something unreadable that are told


class Link:
    """The transport's Receiver. `on_request` and `on_notification` get what the server asks and says."""

    def __init__(self, server: str, transport: Transport, clock: Clock, noise: Noise) -> None:
        self.server = server
        self.noise = noise
        self.version = ""  # of the protocol, once settled: goes out with each message
        self.on_request: Callable[[Any, str, dict[str, Any]], None] | None = None
        self.on_notification: Callable[[str, dict[str, Any]], None] | None = None
        self._transport = transport
        self._clock = clock
        self._pending = Pending(clock, self._expired)
        self._inbox = Inbox(self, clock, noise)
        self.closed = False
        self._ended = asyncio.Event()
        self._why: WireError | None = None

    async def start(self) -> None:
        """Open the transport. Raises ConnectError."""
        await self._transport.start(self)

    @property
    def why(self) -> WireError | None:
        """Why it has ended, None while it has not and when it was on purpose."""
        return self._why

    async def wait_closed(self) -> WireError | None:
        await self._ended.wait()
        return self._why

    async def close(self) -> None:
        """End it; whoever still waits gets ConnectionLostError. Always ends, within the transport's bound."""
        self.ended(None)
        await self._transport.close()

    async def request(
        self,
        method: str,
        params: dict[str, Any],
        *,
        phase: str,
        tool: str = "",
        timeout: float | None = None,
        timeout_max: float | None = None,
        on_progress: OnProgress | None = None,
        routing: Routing = PLAIN,
    ) -> tuple[Raw, tuple[str, ...]]:
        """Send and wait for the result, as raw JSON, and what was odd in it. Raises WireErrors only.

        `routing` is what the headers of HTTP need besides. Without an answer in time, or when
        the awaiting task is cancelled, the server is told.
        """
        if self._transport.congested:
            timeout = await self._uncongested(method, phase, tool, timeout)
        request = self.begin(
            method,
            params,
            phase=phase,
            tool=tool,
            timeout=timeout,
            timeout_max=timeout_max,
            progress=on_progress is not None,
            routing=routing,
        )
        request.on_progress = on_progress
        try:
            outcome = await request.answer
        except asyncio.CancelledError:
            self._abandon(request, "the caller no longer waits")
            raise
        return self.result(request, outcome)

    def begin(
        self,
        method: str,
        params: dict[str, Any],
        *,
        phase: str,
        tool: str = "",
        timeout: float | None = None,
        timeout_max: float | None = None,
        progress: bool = False,
        routing: Routing = PLAIN,
    ) -> Request:
        """Send a request; its `answer` will be settled exactly once. Raises WireErrors."""
        request = self._pending.add(method, tool, phase, timeout, timeout_max)
        request.headers = routing.headers
        if self.closed:
            self._pending.take(request.id)
            raise faults.lost(self.server, request, self._why, sent=False)
        if timeout_max is not None or progress:
            params["_meta"] = {**params.get("_meta", {}), "progressToken": request.id}
        try:
            data = encode({"jsonrpc": "2.0", "id": request.id, "method": method, "params": params})
        except (TypeError, ValueError, OverflowError) as error:
            self._pending.take(request.id)
            raise ProtocolError(
                f"{request.what} cannot be sent to server {self.server!r}: {error}.",
                server=self.server,
                tool=tool,
                phase=phase,
                sent=False,
            ) from error
        self._transport.send(
            Outgoing(
                data=data,
                id=request.id,
                method=method,
                name=routing.name or tool,
                version=self.version,
                mirrored=routing.mirrored,
                headers=routing.headers,
            )
        )
        return request

    def result(self, request: Request, outcome: Outcome) -> tuple[Raw, tuple[str, ...]]:
        """The result in an outcome, or its error raised."""
        if isinstance(outcome, WireError):
            raise outcome
        message, notes = outcome
        if message.error is not UNSET and message.error is not None:
            if message.result is not UNSET:
                self.noise.tell(f"{request.what} was answered with a result and an error: taken as an error")
            raise faults.answered_error(self.server, request, message.error)
        if message.result is UNSET:
            raise faults.broken_answer(self.server, request, "it holds neither a result nor an error")
        return message.result, notes

    def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
        if params:
            message["params"] = params
        self._transport.send(Outgoing(data=encode(message), method=method, version=self.version))

    def reply(self, id: Any, *, result: Any = UNSET, error: Mapping[str, Any] | None = None) -> None:
        """Answer a request of the server; dropped when the server does not read."""
        if self._transport.congested:
            self.noise.tell("an answer was dropped because the server does not read what it is sent")
            return
        body = {"error": error} if error is not None else {"result": result}
        self._transport.send(
            Outgoing(data=encode({"jsonrpc": "2.0", "id": id, **body}), version=self.version)
        )

    def forget(self, request: Request) -> None:
        """Nobody waits for this one any more; the server is not told."""
        self._pending.take(request.id)

    # What the transport hands in.

    def message(self, data: bytes) -> None:
        if self._inbox.assembling:
            self._inbox.take(data)
            return
        try:
            message = decode(data)
        except REFUSED:
            self._inbox.take(data)
        else:
            self.deliver(message, (), data)

    def response(self, id: int | None, data: bytes) -> bool:
        try:
            message = decode(data)
        except REFUSED:
            return self._odd_response(id, data)
        return self._respond(id, message, ())

    def _odd_response(self, id: int | None, data: bytes) -> bool:
        try:
            messages, notes = read(data)
        except UnreadableError as error:
            answers, named = find_id(data, data)
            if answers:
                self.broken(named if id is None else str(id).encode(), str(error))
            shown = one_line(data[:_SHOWN].decode(errors="replace"), _SHOWN)
            self.noise.tell(f"something was passed over because {error}: {shown}")
            return id is None or self._pending.find(id) is None
        for note in notes:
            self.noise.tell(f"a message was read although {note}")
        settled = False
        for message in messages:
            settled = self._respond(id, message, notes) or settled
        return settled

    def _respond(self, id: int | None, message: Message, notes: tuple[str, ...]) -> bool:
        if id is None or message.method is not UNSET:
            self.deliver(message, notes)
            return id is None or self._pending.find(id) is None
        named = message.id
        if named is not id and as_id(named) != id and (request := self._pending.take(id)) is not None:
            # It is this one's answer all the same: nothing else comes in its response.
            self.noise.tell(f"{request.what} was answered under the id {one_line(repr(named), 60)}")
            if message.error is UNSET or message.error is None:
                request.settle(faults.broken_answer(self.server, request, "it names another request"))
            else:
                request.settle((message, notes))
            return True
        if message.result is UNSET and message.error is UNSET:
            self.deliver(message, notes)
            return self._pending.find(id) is None
        request = self._pending.take(id)
        if request is not None:
            request.settle((message, notes))
        return True

    def oversized(self, head: bytes, tail: bytes, size: int) -> None:
        self.noise.tell(f"a message of {size:,} bytes was thrown away: more than max_message_bytes")
        answers, id = find_id(head, tail)
        if not answers:
            return
        request = self._claim(id, "an answer that was too large was thrown away")
        if request is not None:
            request.settle(faults.too_large(self.server, request, size))

    def failed(self, id: int, error: WireError) -> None:
        request = self._pending.take(id)
        if request is not None:
            request.settle(error)

    def ended(self, error: WireError | None) -> None:
        """The connection has ended, for that reason or on purpose."""
        if self.closed:
            return
        self._inbox.close()
        self._why = error
        self.closed = True
        self._ended.set()
        self._pending.clear(lambda request: faults.lost(self.server, request, error, sent=True))

    # What the inbox makes of it.

    def deliver(self, message: Message, notes: tuple[str, ...], frame: bytes = b"") -> None:
        if message.method is UNSET:
            if message.result is UNSET and message.error is UNSET and message.jsonrpc is UNSET:
                self.noise.passed_over(frame, "it is no message, but perhaps a log line on stdout")
                return
            request = self._pending.take(message.id)
            if request is not None:
                request.settle((message, notes))
            else:
                self._unclaimed(message, notes)
        elif isinstance(message.method, str):
            self._asked_or_told(message.method, message)
        else:
            self.noise.tell("a message was passed over because its method is not text")

    def broken(self, id: bytes | None, reason: str) -> None:
        request = self._claim(id, "an answer that could not be read was passed over")
        if request is not None:
            request.settle(faults.broken_answer(self.server, request, reason))

    def _claim(self, id: bytes | None, doubt: str) -> Request | None:
        """Whose answer this was; where that cannot be told, the only one in flight, or a doubt for all."""
        if id is not None:
            return self._pending.take(id.decode(errors="replace"))
        sole = self._pending.sole()
        if sole is None:
            self._pending.doubt(doubt)
            return None
        return self._pending.take(sole.id)

    def _unclaimed(self, message: Message, notes: tuple[str, ...]) -> None:
        if message.error is not UNSET and message.error is not None and message.id in (None, UNSET):
            request = self._pending.sole()
            if request is not None:
                self._pending.take(request.id)
                request.settle((message, notes))
                return
            self.noise.tell(
                "an error without an id was passed over: several requests were in flight, or none"
            )
        else:
            self.noise.tell(
                f"an answer was passed over: no request waits under its id {one_line(repr(message.id), 60)}"
            )

    def _asked_or_told(self, method: str, message: Message) -> None:
        params: Any = {}
        if message.params is not UNSET:
            try:
                params, _ = value(message.params, _any)
            except UnreadableError as error:
                self.noise.tell(f"the params of {one_line(method, 80)} could not be read: {error}")
        params = params if isinstance(params, dict) else {}
        if message.id is not UNSET and message.id is not None:
            if self.on_request is not None:
                self.on_request(message.id, method, params)
        elif method == PROGRESS:
            self._progressed(params)
        elif self.on_notification is not None:
            self.on_notification(method, params)

    def _progressed(self, params: dict[str, Any]) -> None:
        request = self._pending.find(params.get("progressToken"))
        if request is None:
            return
        self._pending.extend(request)
        progress, total = _number(params.get("progress")), _number(params.get("total"))
        text = params.get("message")
        if request.on_progress is None or progress is None:
            return
        try:
            request.on_progress(progress, total, text if isinstance(text, str) else "")
        except Exception as error:  # noqa: BLE001  (a listener must not harm the connection)
            self.noise.tell(f"a listener to progress failed: {error!r}")

    def _expired(self, request: Request) -> None:
        request.settle(faults.timed_out(self.server, request, sent=True))
        self._say_cancelled(request, "the time for it is up")

    def _abandon(self, request: Request, reason: str) -> None:
        if self._pending.take(request.id) is not None:
            self._say_cancelled(request, reason)

    def _say_cancelled(self, request: Request, reason: str) -> None:
        params = {"requestId": request.id, "reason": reason}
        data = encode({"jsonrpc": "2.0", "method": CANCELLED, "params": params})
        notice = Outgoing(data=data, method=CANCELLED, version=self.version, headers=request.headers)
        self._transport.cancel(request.id, notice)

    async def _uncongested(self, method: str, phase: str, tool: str, timeout: float | None) -> float | None:
        """Wait until the server reads again; what is left of the timeout."""
        began = self._clock.monotonic()
        try:
            async with Deadline(self._clock, timeout):
                while self._transport.congested:
                    await self._transport.drain()
        except TimeoutError:
            request = Request(0, method, tool, phase)
            request.waited = self._clock.monotonic() - began
            raise faults.timed_out(self.server, request, sent=False) from None
        return None if timeout is None else max(0.0, timeout - (self._clock.monotonic() - began))


def _number(value: Any) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None
