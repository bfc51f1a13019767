"""A mock that is a real server of the protocol, over pipes or HTTP, for clients of every kind.

It is served by the official SDK, as the project's own ensembles are; it only answers from a file.
"""

from __future__ import annotations

import asyncio
import itertools
import os
from typing import TYPE_CHECKING, Any, NoReturn

import msgspec

from luthier.caller import NO_LINE, Line
from luthier.clock import sleep
from luthier.errors import LuthierError, NotFoundError, WireError
from luthier.serve import Listening
from luthier.serve.answer import Answer
from luthier.serve.listening import address_of, bind
from luthier.serve.protocol import protocol_server
from luthier.testing.answers import behaviour
from luthier.testing.mock_file import Crash
from luthier.tools.schema import Schema
from luthier.wire import Delay, Fail, Hang, Result

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from luthier.clock import Clock
    from luthier.serve.steps import Told
    from luthier.testing.mock_file import MockServer
    from luthier.trace import Trace

CRASHED = 70
"""The exit status of a server that was told to crash."""


class MockOffering:
    """Answers from a mock file. `latency` is seconds before each answer; every `fail_every`th call fails.

    `heard` is told of each call, `crash` ends the server.
    """

    def __init__(
        self,
        mock: MockServer,
        *,
        clock: Clock,
        latency: float = 0.0,
        fail_every: int = 0,
        heard: Callable[[str, dict[str, Any]], None] = lambda name, arguments: None,  # noqa: ARG005
        crash: Callable[[], Any] = lambda: os._exit(CRASHED),
    ) -> None:
        self._mock = mock
        self._clock = clock
        self._latency = latency
        self._fail_every = fail_every
        self._heard = heard
        self._crash = crash
        self._numbers = itertools.count(1)
        self._calls: set[asyncio.Task[Answer]] = set()

    async def tools(self, client: str) -> list[dict[str, Any]]:  # noqa: ARG002  (a mock knows nobody)
        """The definitions, those that the file leaves open filled up."""
        return [
            {"inputSchema": {"type": "object"}, **definition, "name": name}
            for name, definition in self._mock.definitions.items()
        ]

    async def begin(
        self,
        client: str,  # noqa: ARG002
        name: str,
        arguments: Mapping[str, Any],
        tell: Callable[[Told], None],  # noqa: ARG002
        line: Line = NO_LINE,  # noqa: ARG002
        *,
        trace: Trace | None = None,  # noqa: ARG002
    ) -> asyncio.Task[Answer]:
        """Start a call. Raises NotFoundError for no such tool."""
        if name not in self._mock.answers:
            raise NotFoundError("tool", name)
        task = asyncio.create_task(self._call(name, dict(arguments)))
        self._calls.add(task)
        task.add_done_callback(self._calls.discard)
        return task

    async def close(self) -> None:
        """Call off what is waiting."""
        for task in self._calls:
            task.cancel()
        await asyncio.gather(*self._calls, return_exceptions=True)

    async def _call(self, name: str, arguments: dict[str, Any]) -> Answer:
        self._heard(name, arguments)
        number = next(self._numbers)
        if self._latency:
            await sleep(self._clock, self._latency)
        if self._fail_every and number % self._fail_every == 0:
            _fail(f"call {number} fails, as each {self._fail_every}. call does")
        schema = self._mock.definitions[name].get("inputSchema")
        if schema is not None and (faults := Schema(schema).faults(arguments)):
            return _said(f"{name}: {faults[0]}")
        return await self._answered(self._mock.answers[name], arguments)

    async def _answered(self, found: Any, arguments: dict[str, Any]) -> Answer:
        """The answer at the end of all waiting."""
        while True:
            match found:
                case Delay():
                    await sleep(self._clock, found.seconds)
                    found = found.then
                case Hang():
                    await asyncio.get_running_loop().create_future()
                case Crash():
                    self._crash()
                    _fail("the server crashed")
                case Fail() | WireError():
                    _fail(found.message)
                case Result():
                    return _answer(found.value)
                case _ if callable(found):
                    found = self._asked(found, arguments)
                case _:
                    found = behaviour(found, lambda _: None)

    @staticmethod
    def _asked(function: Callable[[dict[str, Any]], Any], arguments: dict[str, Any]) -> Any:
        try:
            return function(arguments)
        except LuthierError as error:  # a recording that has no such call
            return Fail(str(error))


def mock_listening(offering: MockOffering, name: str, address: str) -> Listening:
    """Bound to an address of this machine only: whoever reaches it may call. Raises LuthierError."""
    host, _ = address_of(address)
    if not _is_own(host):
        raise LuthierError(
            f"A mock asks nobody for a token, so it listens on this machine only, not on {host}.",
            hint="Write 127.0.0.1:PORT.",
        )
    server = protocol_server(offering, lambda _: name, name)
    return Listening(offering, server.streamable_http_app(streamable_http_path="/mcp"), bind(address))


def _is_own(host: str) -> bool:
    return host in ("127.0.0.1", "::1")


def _answer(result: Mapping[str, Any]) -> Answer:
    return Answer(
        blocks=list(result.get("content", [])),
        structured=result.get("structuredContent", msgspec.UNSET),
        is_error=bool(result.get("isError", False)),
    )


def _said(text: str) -> Answer:
    return Answer(blocks=[{"type": "text", "text": text}], is_error=True)


def _fail(message: str) -> NoReturn:
    from mcp.shared.exceptions import MCPError
    from mcp_types import INTERNAL_ERROR

    raise MCPError(INTERNAL_ERROR, message)
