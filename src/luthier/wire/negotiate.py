"""Opening a session: the server's era is found out, or was pinned or remembered.

`server/discover` is asked first. A server that knows it is modern; one that answers with an error is asked to
`initialize`; one that exits is started again and asked to `initialize` only. After two seconds of silence
`initialize` is sent behind the question, and nothing is concluded until one of the two is answered: a slow
modern server must not be taken for an old one. A discover result wins however late it comes, even into a
standing session.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, NoReturn

import msgspec

from luthier.clock import Deadline
from luthier.errors import ConnectError, ConnectionLostError, HttpError, ProtocolError, WireError
from luthier.text import one_line
from luthier.wire.codec import value
from luthier.wire.era import (
    HANDSHAKE_VERSIONS,
    KNOWN_VERSIONS,
    LATEST_HANDSHAKE,
    LATEST_MODERN,
    MODERN_VERSIONS,
)
from luthier.wire.faults import (
    HEADER_MISMATCH,
    MISSING_CAPABILITY,
    PASSING,
    UNSUPPORTED_VERSION,
    last_words,
)
from luthier.wire.link import Link
from luthier.wire.noise import Noise
from luthier.wire.peer import Handlers
from luthier.wire.repair import UnreadableError
from luthier.wire.session import CLIENT_INFO, Session, request_meta

if TYPE_CHECKING:
    from luthier.clock import Clock
    from luthier.wire.pending import Request
    from luthier.wire.transport import Transport

SILENCE = 2.0
"""Seconds without an answer to the question after which `initialize` is sent behind it."""

Leave = Callable[[Coroutine[Any, Any, None]], None]
"""Takes what remains to be done, and sees to it that it is done."""

_NO_SERVER = (
    "Check `command` and `args` of that server: on stdout it may write nothing but JSON-RPC. If it is only "
    "slow to start, raise its `timeout_ms`."
)
_SLOW_TO_START = "It may still be downloading or starting up: raise `timeout_ms` of that server."
_FINAL = frozenset({401, 403, 407, 429})
_BAD_REQUEST = 400
_MODERN_CODES = frozenset({HEADER_MISMATCH, MISSING_CAPABILITY})
_DISCOVER = "server/discover"
_any = msgspec.json.Decoder()


async def open_session(  # noqa: PLR0913  (what each kind of server needs besides has a default)
    start: Callable[[], Transport],
    *,
    server: str,
    clock: Clock,
    timeout: float,
    pinned: str | None = None,
    remembered: str | None = None,
    handlers: Handlers | None = None,
    leave: Leave | None = None,
    place: str = "",
) -> Session:
    """A session within `timeout` seconds, or one ConnectError.

    `start` makes a fresh transport; it is called twice where a server exits when asked. `pinned` is a
    revision that the operator insists on, `remembered` one that the server answered in before. A server
    that was started in vain has ended when the error is raised; or `leave` is given the ending of it,
    which is bounded, so that nobody waits for it to hear of the error. `place` is where a server stands
    that is not started by `start`.
    """
    if pinned is not None and pinned not in KNOWN_VERSIONS:
        raise ConnectError(
            f"Server {server!r} is pinned to protocol {pinned!r}, which is not known.",
            server=server,
            retryable=False,
            hint=f"Known are {', '.join(KNOWN_VERSIONS)}.",
        )
    opening = _Opening(start, server, clock, handlers or Handlers(), place)
    try:
        async with Deadline(clock, timeout):
            return await opening.run(pinned, remembered)
    except TimeoutError:
        error = opening.silence(timeout)
        await opening.abandon(leave)
        raise error from None
    except WireError:
        await opening.abandon(leave)
        raise
    except BaseException:
        await opening.abandon()
        raise


class _Exited(Exception):
    """The way closed before anything was answered."""


class _Opening:
    """One attempt at a session, on one transport after another."""

    def __init__(
        self, start: Callable[[], Transport], server: str, clock: Clock, handlers: Handlers, place: str
    ) -> None:
        self._start = start
        self._server = server
        self._place = place
        self._clock = clock
        self._handlers = handlers
        self._noise = Noise(handlers.on_noise)
        self._transport: Transport | None = None
        self._lost: WireError | None = None  # what a request was told when the way closed
        self._link: Link
        self._session: Session

    @property
    def stderr_tail(self) -> str:
        return self._transport.stderr_tail if self._transport is not None else ""

    async def abandon(self, leave: Leave | None = None) -> None:
        if self._transport is None:
            return
        if leave is None:
            await self._session.close()
        else:
            self._link.ended(None)
            leave(self._session.close())

    def silence(self, seconds: float) -> ConnectError:
        """The error of a server that has answered nothing in that time. No more is read of it."""
        if self._transport is not None:
            self._link.ended(None)  # what it had begun to print counts as printed
        tail, printed = self.stderr_tail, self._noise.printed
        since, hint = " of being started", _NO_SERVER if printed else _SLOW_TO_START
        if self._place:
            since, hint = f" at {self._place}", "Check its `url`, or raise `timeout_ms` of that server."
        return ConnectError(
            f"Server {self._server!r} did not answer within {round(seconds, 2):g} s{since}"
            f"{last_words(tail)}.{printed and f' {printed}'}",
            server=self._server,
            stderr_tail=tail,
            hint=hint,
        )

    async def run(self, pinned: str | None, remembered: str | None) -> Session:
        await self._connect()
        try:
            if pinned in HANDSHAKE_VERSIONS:
                await self._initialize(pinned or LATEST_HANDSHAKE)
            elif pinned is not None:
                await self._discover_only(pinned)
            elif remembered not in HANDSHAKE_VERSIONS or not await self._as_remembered():
                await self._find_out()
        except _Exited:
            raise self._exit_error() from None
        return self._session

    async def _connect(self) -> None:
        self._transport = self._start()
        self._link = Link(self._server, self._transport, self._clock, self._noise)
        self._session = Session(self._link, self._clock, self._handlers)
        await self._link.start()

    async def _as_remembered(self) -> bool:
        """Whether a server that was an old one still is."""
        try:
            await self._initialize(LATEST_HANDSHAKE)
        except ConnectError:
            self._noise.tell("it no longer speaks the revision it was known for: it is asked again")
            return False
        return True

    async def _find_out(self) -> None:
        try:
            await self._ask()
        except _Exited:
            self._noise.tell(
                "it exited when asked for its revision: it is started again and spoken to in the old way"
            )
            await self._session.close()
            await self._connect()
            await self._initialize(LATEST_HANDSHAKE)

    async def _ask(self) -> None:
        """Discover, and behind it, after a silence or an error, initialize."""
        question = self._send_discover(LATEST_MODERN)
        await self._first(question, seconds=SILENCE)
        if question.answer.done():
            await self._conclude(question)
            return
        handshake = self._send_initialize(LATEST_HANDSHAKE)
        await self._first(question, handshake)
        if not question.answer.done() and not self._accepts(handshake):
            # It understands initialize and refuses it: its answer to the question may be on its way.
            await self._first(question, seconds=SILENCE)
        if question.answer.done():
            await self._conclude(question, handshake)
        elif modern := self._modern(handshake):
            await self._discover_only(modern)
        else:
            self._settle_handshake(handshake, LATEST_HANDSHAKE)
            question.standing = True
            question.answer.add_done_callback(lambda _: self._late(question))

    async def _conclude(self, question: Request, handshake: Request | None = None) -> None:
        """The question was answered: what now? `handshake` is what was sent behind it."""
        self._raise_final(question)
        versions, modern, result = self._advertised(question), self._modern(question), self._result(question)
        if result is not None and modern:
            self._session.settle(modern, result)
        elif modern:
            await self._discover_only(modern)
        elif versions and result is None and not any(version in HANDSHAKE_VERSIONS for version in versions):
            raise self._refusal(f"it speaks only {one_line(', '.join(versions))}", retryable=False)
        elif handshake is None:
            await self._initialize(
                next((v for v in reversed(HANDSHAKE_VERSIONS) if v in versions), LATEST_HANDSHAKE)
            )
        else:
            await self._first(handshake)
            self._settle_handshake(handshake, LATEST_HANDSHAKE)
        if handshake is not None:
            self._link.forget(handshake)

    async def _discover_only(self, version: str) -> None:
        question = self._send_discover(version)
        await self._first(question)
        if self._result(question) is None and version in self._advertised(question):
            question = self._send_discover(version)  # it was refused, and named among what is spoken
            await self._first(question)
        result = self._result(question)
        if result is None or version not in self._advertised(question):
            self._raise_final(question)
            said = self._error(question)
            if isinstance(said, HttpError) and said.status != _BAD_REQUEST:
                raise self._http_refusal(said)
            if said is not None and not isinstance(said, HttpError) and getattr(said, "code", None) is None:
                raise self._refusal(said.message, hint=said.hint)
            reason = said.message if said else "it advertises other revisions"
            raise self._refusal(
                f"it does not speak {version}: {reason}",
                retryable=False,
                hint="Remove `protocol` from its entry, or pin the revision that it speaks.",
            )
        self._session.settle(version, result)

    async def _initialize(self, version: str) -> None:
        handshake = self._send_initialize(version)
        await self._first(handshake)
        self._settle_handshake(handshake, version)

    def _settle_handshake(self, handshake: Request, asked: str) -> None:
        result = self._result(handshake)
        if result is None:
            self._refuse_handshake(handshake)
        version = result.get("protocolVersion")
        if version not in HANDSHAKE_VERSIONS:
            self._noise.tell(
                f"it names the unknown revision {one_line(repr(version), 60)}: {asked} is assumed"
            )
            version = asked
        self._session.settle(version, result)
        self._link.notify("notifications/initialized")

    def _refuse_handshake(self, handshake: Request) -> NoReturn:
        self._raise_final(handshake)
        error, versions = self._error(handshake), self._advertised(handshake)
        if isinstance(error, HttpError):
            raise self._http_refusal(error)
        if versions:
            raise self._refusal(
                f"it speaks only {one_line(', '.join(versions))}",
                retryable=False,
                hint="If `protocol` of its entry pins another, remove that.",
            )
        if error is None:
            raise self._refusal("its answer to initialize is not an object")
        raise self._refusal(error.message, hint=error.hint)

    def _late(self, question: Request) -> None:
        """A discover result into a standing session that took the server for an old one."""
        result = self._result(question)
        modern = self._modern(question)
        if result is not None and modern and not self._session.closed:
            self._noise.tell(f"its answer came late: from here on {modern} is spoken")
            self._session.settle(modern, result)

    # Single messages.

    def _send_discover(self, version: str) -> Request:
        return self._send(_DISCOVER, {"_meta": request_meta(version, self._handlers)})

    def _send_initialize(self, version: str) -> Request:
        params = {
            "protocolVersion": version,
            "capabilities": self._handlers.capabilities,
            "clientInfo": CLIENT_INFO,
        }
        return self._send("initialize", params)

    def _send(self, method: str, params: dict[str, Any]) -> Request:
        try:
            return self._link.begin(method, params, phase="handshake")
        except ConnectionLostError:
            raise _Exited from None

    async def _first(self, *requests: Request, seconds: float | None = None) -> None:
        """Return when one of them is answered, or after that time. Raises _Exited when the way closes."""
        waiting = [request.answer for request in requests]
        woken = asyncio.get_running_loop().create_future()

        def wake(_: object = None) -> None:
            if not woken.done():
                woken.set_result(None)

        timer = None if seconds is None else self._clock.call_later(seconds, wake)
        for answer in waiting:
            answer.add_done_callback(wake)
        try:
            await woken
        finally:
            if timer is not None:
                timer.cancel()
            for answer in waiting:
                answer.remove_done_callback(wake)
        for answer in waiting:
            if answer.done() and isinstance(error := answer.result(), ConnectionLostError):
                self._lost = error
                raise _Exited

    def _result(self, request: Request) -> dict[str, Any] | None:
        """Its result if it is an object."""
        try:
            raw, _ = self._link.result(request, request.answer.result())
            result, _ = value(raw, _any)
        except (WireError, UnreadableError):
            return None
        return result if isinstance(result, dict) else None

    def _error(self, request: Request) -> WireError | None:
        try:
            self._link.result(request, request.answer.result())
        except WireError as error:
            return error
        return None

    def _accepts(self, handshake: Request) -> bool:
        return self._result(handshake) is not None

    def _advertised(self, question: Request) -> list[str]:
        """The revisions that an answer to the question names: a result, or the error that exists for it."""
        result, error = self._result(question), self._error(question)
        named: Any = None
        if result is not None:
            named = result.get("supportedVersions")
        elif (
            isinstance(error, ProtocolError)
            and error.code == UNSUPPORTED_VERSION
            and isinstance(error.data, dict)
        ):
            named = error.data.get("supported")
        return [version for version in named if isinstance(version, str)] if isinstance(named, list) else []

    def _modern(self, question: Request) -> str:
        """The latest revision of the modern era that an answer names and we speak."""
        named = self._advertised(question)
        error = self._error(question)
        if isinstance(error, ProtocolError) and error.code in _MODERN_CODES:
            return LATEST_MODERN
        return next((version for version in reversed(MODERN_VERSIONS) if version in named), "")

    def _raise_final(self, request: Request) -> None:
        """Raise where the answer leaves no use in asking in another way: no connection, no credentials."""
        error = self._error(request)
        if isinstance(error, ConnectError):
            raise error
        if isinstance(error, HttpError) and (error.status in _FINAL or error.retry_after is not None):
            raise self._http_refusal(error)

    def _http_refusal(self, error: HttpError) -> ConnectError:
        return ConnectError(
            f"No session with server {self._server!r}: {error.message}",
            server=self._server,
            http=error,
            retryable=error.status in PASSING,
            hint=error.hint,
        )

    def _refusal(self, reason: str, *, retryable: bool = True, hint: str = "") -> ConnectError:
        return ConnectError(
            f"No session with server {self._server!r}: {reason.rstrip('.')}.",
            server=self._server,
            stderr_tail=self.stderr_tail,
            retryable=retryable,
            hint=hint,
        )

    def _exit_error(self) -> ConnectError:
        why, printed = self._link.why or self._lost, self._noise.printed
        return ConnectError(
            f"{why.message if why else 'The connection was closed.'} It had answered nothing."
            f"{printed and f' {printed}'}",
            server=self._server,
            exit_status=getattr(why, "exit_status", None),
            stderr_tail=self.stderr_tail,
            hint=(why.hint if why else "") or (_NO_SERVER if printed else ""),
        )
