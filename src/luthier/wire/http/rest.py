"""The REST dialect: `GET {url}/tools` lists and `POST {url}/tools/{name}` calls.

What the protocol says besides is answered here and goes nowhere.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw

from luthier.clock import Deadline
from luthier.errors import WireError
from luthier.wire.codec import REFUSED
from luthier.wire.era import HANDSHAKE_VERSIONS
from luthier.wire.faults import METHOD_NOT_FOUND
from luthier.wire.http import facts
from luthier.wire.http.facts import asked_for
from luthier.wire.http.streamable import CLOSING
from luthier.wire.http.target import below
from luthier.wire.repair import UnreadableError, repair

if TYPE_CHECKING:
    from collections.abc import Callable

    from luthier.clock import Clock
    from luthier.wire.http.client import Answer, HttpClient
    from luthier.wire.http.target import HttpTarget
    from luthier.wire.transport import Outgoing, Receiver

_GET = {"Accept": "application/json"}
_POST = {"Accept": "application/json", "Content-Type": "application/json"}


class _Params(msgspec.Struct):
    name: str = ""
    arguments: Raw = Raw(b"{}")


class _Call(msgspec.Struct):
    params: _Params


class _Body(msgspec.Struct):
    name: str
    arguments: Raw


_call = msgspec.json.Decoder(_Call)
_any = msgspec.json.Decoder()
_encode = msgspec.json.Encoder().encode


class RestTransport:
    """A transport that is a URL. Nothing of it is open between calls, so it ends only when it is closed."""

    stderr_tail = ""
    congested = False

    def __init__(
        self,
        client: HttpClient,
        target: HttpTarget,
        clock: Clock,
        on_noise: Callable[[str], None] | None = None,
    ) -> None:
        self._client = client
        self._target = target
        self._clock = clock
        self._on_noise = on_noise
        self._listed: bytes | None = None  # the list that was read to see that there is one
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._receiver: Receiver
        self._closed = False

    async def start(self, receiver: Receiver) -> None:
        self._receiver = receiver

    def send(self, message: Outgoing) -> None:
        if self._closed or message.id is None:
            return
        self._tasks[message.id] = asyncio.get_running_loop().create_task(self._carry(message, message.id))

    def cancel(self, id: int, _notice: Outgoing, /) -> None:
        task = self._tasks.pop(id, None)
        if task is not None:
            task.cancel()

    async def drain(self) -> None:
        """Nothing is ever queued here."""

    async def close(self) -> None:
        self._closed = True
        tasks = set(self._tasks.values())
        for task in tasks:
            task.cancel()
        if not tasks:
            return
        try:
            async with Deadline(self._clock, CLOSING):
                await asyncio.wait(tasks)
        except TimeoutError:
            if self._on_noise is not None:
                self._on_noise("a request was not ended properly")

    async def _carry(self, message: Outgoing, id: int) -> None:
        try:
            await self._ask(message, id)
        except WireError as error:
            self._receiver.failed(id, error)
        except Exception as error:  # noqa: BLE001  (whatever happens, nobody may wait in vain)
            self._receiver.failed(id, facts.cut_off(self._target, asked_for(message), f"failed: {error!r}"))
        finally:
            self._tasks.pop(id, None)

    async def _ask(self, message: Outgoing, id: int) -> None:
        match message.method:
            case "initialize":
                self._listed = await self._list(message)
                self._give(id, {"protocolVersion": _asked_version(message), "capabilities": {"tools": {}}})
            case "tools/list":
                listed, self._listed = self._listed, None
                self._result(id, listed or await self._list(message))
            case "tools/call":
                params = _call.decode(message.data).params
                url = below(self._target.url, "tools", params.name)
                body = _encode(_Body(params.name, params.arguments))
                target = self._target.given(message.headers)
                headers = {**target.headers, **_POST}
                answer = await self._client.open(target, asked_for(message), "POST", url, headers, body)
                self._result(id, await self._json(message, answer))
            case "ping":
                self._give(id, {})
            case _:
                error = {"code": METHOD_NOT_FOUND, "message": f"REST has no {message.method}"}
                self._receiver.response(id, _encode({"jsonrpc": "2.0", "id": id, "error": error}))

    async def _list(self, message: Outgoing) -> bytes:
        """The list of tools. Raises WireErrors where there is none."""
        url = below(self._target.url, "tools")
        headers = {**self._target.headers, **_GET}
        asked = asked_for(message)
        answer = await self._client.open(self._target, asked, "GET", url, headers, b"")
        body = await self._json(message, answer)
        found: Any = _any.decode(body)
        if isinstance(found, list):
            return _encode({"tools": found})
        if not isinstance(found, dict) or not isinstance(found.get("tools"), list):
            raise facts.unreadable(self._target, asked, "it holds no list of tools")
        return body

    async def _json(self, message: Outgoing, answer: Answer) -> bytes:
        asked = asked_for(message)
        if not answer.ok:
            raise await answer.error()
        body = await answer.read()
        if facts.is_html(answer.kind, body):
            raise facts.page_instead(self._target, asked, body)
        try:
            _any.decode(body)
        except REFUSED:
            try:
                return repair(body)[0]
            except UnreadableError as error:
                raise facts.unreadable(self._target, asked, str(error)) from None
        return body

    def _give(self, id: int, result: dict[str, Any]) -> None:
        self._result(id, _encode(result))

    def _result(self, id: int, result: bytes) -> None:
        self._receiver.response(id, b'{"jsonrpc":"2.0","id":%d,"result":%b}' % (id, result))


def _asked_version(message: Outgoing) -> str:
    version = _any.decode(message.data)["params"].get("protocolVersion")
    return version if version in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1]
