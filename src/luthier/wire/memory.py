"""A server in memory that speaks the real protocol in bytes, and the transport to it. A double, and product.

It keeps to its era as strictly as a good server does, and misbehaves as it is told to.
"""

from __future__ import annotations

import asyncio
import copy
import inspect
import itertools
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from luthier.clock import SystemClock, sleep
from luthier.errors import ConnectError, ConnectionLostError, WireError
from luthier.wire.behaviour import Bytes, Delay, Drop, Fail, Hang, Listen, Progress, Result, result_of
from luthier.wire.era import HANDSHAKE_VERSIONS, KNOWN_VERSIONS, LATEST_MODERN
from luthier.wire.frame import LineSplitter
from luthier.wire.session import META

if TYPE_CHECKING:
    from collections.abc import Mapping

    from luthier.clock import Clock
    from luthier.wire.transport import Outgoing, Receiver

_METHOD_NOT_FOUND = Fail("Method not found", -32601)
_ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
_LIMIT = 64 * 1024 * 1024
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


class MemoryServer:
    """`tools` maps a name to what a call gives: a value, an exception, one of the behaviours, or a callable.

    A callable takes the arguments and gives any of these, or something to await; what it raises is `isError`.
    A WireError is the fault of a way that breaks.
    `era` is a revision, or `modern` for the latest. `definitions` holds further keys of single definitions.

    To be set at any time: `tools`, `page_size` (0: all on one page), `refusal` (why it cannot be reached) and
    `probe` (what a server of the handshake era does when asked for its revision). To be read: `received`
    (messages), `calls` (names and arguments), `cancelled` (ids), `connections` (how often it was reached).
    """

    def __init__(
        self,
        server_id: str,
        tools: Mapping[str, Any] | None = None,
        *,
        era: str = LATEST_MODERN,
        descriptions: Mapping[str, str] | None = None,
        schemas: Mapping[str, dict[str, Any]] | None = None,
        definitions: Mapping[str, dict[str, Any]] | None = None,
        instructions: str = "",
        clock: Clock | None = None,
    ) -> None:
        self.server_id = server_id
        self.tools = dict(tools or {})
        self.version = LATEST_MODERN if era == "modern" else era
        if self.version not in KNOWN_VERSIONS:
            message = f"{era!r} is no known revision: {', '.join(KNOWN_VERSIONS)}"
            raise ValueError(message)
        self.descriptions = dict(descriptions or {})
        self.schemas = dict(schemas or {})
        self.definitions = dict(definitions or {})
        self.instructions = instructions
        self.clock = clock or SystemClock()
        self.probe: Literal["refuse", "ignore", "exit"] = "refuse"
        self.refusal = ""
        self.page_size = 0
        self.received: list[dict[str, Any]] = []
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.cancelled: list[Any] = []
        self.connections = 0
        self.open: list[MemoryTransport] = []
        self._ids = itertools.count(1)
        self._asked: dict[str, asyncio.Future[dict[str, Any]]] = {}

    def transport(self) -> MemoryTransport:
        """A fresh way to this server: what `open_session` takes as `start`."""
        return MemoryTransport(self)

    def say(self, data: bytes) -> None:
        """Send these bytes on every connection."""
        for connection in self.open:
            connection.deliver(data)

    def notify(self, method: str, params: dict[str, Any] | None = None) -> None:
        self.say(_encode({"jsonrpc": "2.0", "method": method, "params": params or {}}) + b"\n")

    async def ask(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """Ask the client something; its whole answer. Ends only with an answer or by cancellation."""
        id = f"server-{next(self._ids)}"
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._asked[id] = answer
        self.say(_encode({"jsonrpc": "2.0", "id": id, "method": method, "params": params or {}}) + b"\n")
        return await answer

    def drop(self) -> None:
        """End every connection, as a crash would."""
        for connection in list(self.open):
            connection.lose()

    def definition(self, name: str) -> dict[str, Any]:
        """A tool as it is listed."""
        definition: dict[str, Any] = {"name": name}
        definition["inputSchema"] = self.schemas.get(name, {"type": "object"})
        if name in self.descriptions:
            definition["description"] = self.descriptions[name]
        definition.update(self.definitions.get(name, {}))
        return definition

    @property
    def modern(self) -> bool:
        return self.version not in HANDSHAKE_VERSIONS

    def take(self, connection: MemoryTransport, message: dict[str, Any]) -> None:
        """One message has come in on that connection."""
        self.received.append(message)
        id, method, params = message.get("id"), message.get("method"), message.get("params", {})
        if method is None:
            waiting = self._asked.pop(str(id), None)
            if waiting is not None and not waiting.done():
                waiting.set_result(message)
        elif id is None:
            if method == "notifications/cancelled":
                self.cancelled.append(params["requestId"])
                connection.stop(params["requestId"])
        elif method == "server/discover" and not self.modern and self.probe != "refuse":
            if self.probe == "exit":
                connection.lose()
        else:
            behaviour = self._fault(params) if self.modern else None
            connection.perform(id, behaviour or self._behaviour(method, params), params)

    def _fault(self, params: dict[str, Any]) -> Fail | None:
        version = params.get("_meta", {}).get(f"{META}protocolVersion")
        if version is None:
            return Fail(f"{META}protocolVersion is missing", -32602)
        if version != self.version:
            return Fail(
                "Unsupported protocol version", -32022, {"supported": [self.version], "requested": version}
            )
        return None

    def _behaviour(self, method: str, params: dict[str, Any]) -> Any:
        match method, self.modern:
            case "tools/list", _:
                return Result(self._listed(params.get("cursor")))
            case "tools/call", _:
                return self._called(params["name"], params.get("arguments", {}))
            case "subscriptions/listen", True:
                return Listen()
            case "server/discover", True:
                return Result(self._described({"supportedVersions": [self.version]}))
            case "initialize", False:
                info = {"serverInfo": {"name": self.server_id, "version": "1"}}
                return Result(self._described({"protocolVersion": self.version} | info))
            case "ping", False:
                return Result({})
        return _METHOD_NOT_FOUND

    def _described(self, result: dict[str, Any]) -> dict[str, Any]:
        described = result | {"capabilities": {"tools": {"listChanged": True}}}
        return described | ({"instructions": self.instructions} if self.instructions else {})

    def _listed(self, cursor: Any) -> dict[str, Any]:
        names = list(self.tools)
        start = int(cursor or 0)
        stop = start + self.page_size if self.page_size else len(names)
        page: dict[str, Any] = {"tools": [self.definition(name) for name in names[start:stop]]}
        return page | ({"nextCursor": str(stop)} if stop < len(names) else {})

    def _called(self, name: str, arguments: dict[str, Any]) -> Any:
        self.calls.append((name, arguments))
        if name not in self.tools:
            return Fail(f"Unknown tool: {name}", -32602)
        behaviour = self.tools[name]
        if not callable(behaviour):
            return behaviour
        try:
            return behaviour(arguments)
        except Exception as error:  # noqa: BLE001  (what a tool raises is its answer)
            return error


class MemoryTransport:
    """The way to a MemoryServer. Every message crosses it as bytes, in a later turn of the loop."""

    stderr_tail = ""

    def __init__(self, server: MemoryServer) -> None:
        self._server = server
        self._splitter = LineSplitter(_LIMIT)
        self._receiver: Receiver | None = None
        self._working: dict[Any, asyncio.Task[None]] = {}
        self._uncongested = asyncio.Event()
        self._uncongested.set()

    async def start(self, receiver: Receiver) -> None:
        if self._server.refusal:
            raise ConnectError(self._server.refusal, server=self._server.server_id, phase="spawn")
        self._receiver = receiver
        self._server.connections += 1
        self._server.open.append(self)

    def send(self, message: Outgoing) -> None:
        if self._receiver is not None:
            asyncio.get_running_loop().call_soon(self._arrive, message.data)

    def cancel(self, _id: int, notice: Outgoing, /) -> None:
        self.send(notice)

    @property
    def congested(self) -> bool:
        """Whether the server has been told not to read (`congest`)."""
        return self._receiver is not None and not self._uncongested.is_set()

    def congest(self, *, on: bool) -> None:
        """Stop reading, or go on."""
        if on:
            self._uncongested.clear()
        else:
            self._uncongested.set()

    async def drain(self) -> None:
        await self._uncongested.wait()

    async def close(self) -> None:
        self._end(None)
        working = list(self._working.values())
        for task in working:
            task.cancel()
        await asyncio.gather(*working, return_exceptions=True)

    # The server's side.

    def deliver(self, data: bytes) -> None:
        """Bytes for the client, in any cuts."""
        asyncio.get_running_loop().call_soon(self._come_in, data)

    def lose(self) -> None:
        """The connection breaks."""
        self._end(
            ConnectionLostError(
                f"Server {self._server.server_id!r} ended the connection.", server=self._server.server_id
            )
        )

    def stop(self, id: Any) -> None:
        """The client no longer waits for that request."""
        if id in self._working:
            self._working[id].cancel()

    def perform(self, id: Any, behaviour: Any, params: dict[str, Any]) -> None:
        """Answer a request as the behaviour says."""
        if inspect.isawaitable(behaviour) or isinstance(behaviour, Delay | Progress):
            task = asyncio.get_running_loop().create_task(self._perform_later(id, behaviour, params))
            self._working[id] = task
            task.add_done_callback(lambda _: self._working.pop(id, None))
        else:
            self._answer(id, behaviour)

    async def _perform_later(self, id: Any, behaviour: Any, params: dict[str, Any]) -> None:
        try:
            self._answer(id, await self._outcome(behaviour, params))
        except Exception as error:  # noqa: BLE001  (likewise)
            self._answer(id, Fail(f"the tool cannot do that: {error!r}"))

    async def _outcome(self, behaviour: Any, params: dict[str, Any]) -> Any:
        """What is left to answer once all waiting is over."""
        while inspect.isawaitable(behaviour) or isinstance(behaviour, Delay | Progress):
            if isinstance(behaviour, Delay):
                await sleep(self._server.clock, behaviour.seconds)
                behaviour = behaviour.then
            elif isinstance(behaviour, Progress):
                await self._report(behaviour, params.get("_meta", {}).get("progressToken"))
                behaviour = behaviour.then
            else:
                try:
                    behaviour = await behaviour
                except Exception as error:  # noqa: BLE001  (what a tool raises is its answer)
                    behaviour = error
        return behaviour

    async def _report(self, behaviour: Progress, token: Any) -> None:
        for step in range(1, behaviour.steps + 1):
            await sleep(self._server.clock, behaviour.every)
            if token is not None:
                report = {
                    "progressToken": token,
                    "progress": step,
                    "total": behaviour.steps,
                    "message": f"step {step}",
                }
                self.deliver(
                    _encode({"jsonrpc": "2.0", "method": "notifications/progress", "params": report}) + b"\n"
                )

    def _answer(self, id: Any, behaviour: Any) -> None:
        try:
            self._say(id, behaviour)
        except Exception as error:  # noqa: BLE001  (whatever it was, its caller waits for an answer)
            self._say(id, Fail(f"the tool gave what has no form in JSON: {error!r}"))

    def _say(self, id: Any, behaviour: Any) -> None:
        match behaviour:
            case Hang():
                return
            case Listen():
                tag = {f"{META}subscriptionId": id}
                params = {"_meta": tag, "notifications": {"toolsListChanged": True}}
                self.deliver(_encode({"jsonrpc": "2.0", "method": _ACKNOWLEDGED, "params": params}) + b"\n")
            case Drop():
                self.lose()
            case WireError() if self._receiver is not None:
                self._receiver.failed(id, copy.copy(behaviour))
            case Bytes():
                self.deliver(behaviour.data.replace(b"$ID", _encode(id)))
            case Fail():
                error = {"code": behaviour.code, "message": behaviour.message}
                error |= {} if behaviour.data is None else {"data": behaviour.data}
                self.deliver(_encode({"jsonrpc": "2.0", "id": id, "error": error}) + b"\n")
            case _:
                result = behaviour.value if isinstance(behaviour, Result) else result_of(behaviour)
                if self._server.modern and isinstance(result, dict):
                    result = {"resultType": "complete", **result}
                self.deliver(_encode({"jsonrpc": "2.0", "id": id, "result": result}) + b"\n")

    def _arrive(self, data: bytes) -> None:
        if self._receiver is not None:
            self._server.take(self, _decode(data))

    def _come_in(self, data: bytes) -> None:
        for frame in self._splitter.feed(data):
            if self._receiver is None:
                return
            if isinstance(frame, bytes):
                self._receiver.message(frame)
            else:
                self._receiver.oversized(frame.head, frame.tail, frame.size)

    def _end(self, error: WireError | None) -> None:
        receiver, self._receiver = self._receiver, None
        if receiver is None:
            return
        self._uncongested.set()
        self._server.open.remove(self)
        receiver.ended(error)
