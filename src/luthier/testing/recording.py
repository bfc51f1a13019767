"""Record and replay: what tools answered to a real run answers a later one, matched by tool and arguments."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from luthier.errors import (
    CallTimeoutError,
    ConnectError,
    ConnectionLostError,
    MockError,
    WireError,
    kind_of,
)
from luthier.redaction import redact_value
from luthier.tools import Refusal
from luthier.wire import Fail, Result
from luthier.wire.behaviour import result_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from luthier.connect.traffic import Exchange, Traffic, TrafficWriter
    from luthier.govern.guard import GateCall, Next, Up
    from luthier.uri import ToolUri


class TrafficRecorder:
    """A guard that writes down each call of a server's tool, and what came of it."""

    def __init__(self, writer: TrafficWriter) -> None:
        self._writer = writer

    async def guard(self, call: GateCall, inner: Next) -> Up:
        uri, arguments = call.call.uri, dict(call.call.arguments.value)
        if uri.scheme != "mcp" or call.tool is None:
            return await inner(call)
        self._writer.define(call.tool)
        try:
            answer = await inner(call)
        except WireError as error:
            self._writer.failed(uri, arguments, {"kind": kind_of(error), "message": error.message})
            raise
        if not isinstance(answer, Refusal):  # the gate will decide again
            self._writer.answered(uri, arguments, result_of(answer.reply))
        return answer


def replayed(traffic: Traffic, *, again: bool = False) -> dict[str, Any]:
    """Mocks that answer from a recording; a call that is not in it is an error of the test.

    The same call is answered in the order in which it was recorded; `again`: the last answer stands for all
    that come after it.
    """
    return {
        f"{uri.server}:{uri.name}": _Replay(uri, exchanges, again=again)
        for uri, exchanges in traffic.exchanges.items()
    }


class _Replay:
    def __init__(self, uri: ToolUri, exchanges: list[Exchange], *, again: bool) -> None:
        self._uri = uri
        self._left = list(exchanges)
        self._recorded = tuple(exchanges)
        self._again = again

    def __call__(self, arguments: dict[str, Any]) -> Any:
        for place, exchange in enumerate(self._left):
            if exchange.matches(arguments):
                later = (other.matches(arguments) for other in self._left[place + 1 :])
                if not self._again or any(later):
                    del self._left[place]
                return _answer(exchange)
        raise self._miss(arguments)

    def _miss(self, arguments: dict[str, Any]) -> MockError:
        times = sum(exchange.matches(arguments) for exchange in self._recorded)
        shown = redact_value(arguments)
        if times:
            what = f"was called with {shown!r} more often than the {times} times that were recorded"
        else:
            nearest = _differences(shown, [exchange.arguments for exchange in self._recorded])
            what = f"was called with arguments that were not recorded: {shown!r}; {nearest}"
        return MockError(f"{self._uri} {what}.", hint="Record again, or mock the tool.")


def _differences(arguments: Mapping[str, Any], recorded: list[dict[str, Any]]) -> str:
    """In which arguments the recorded call that is nearest is another."""
    differing: list[list[str]] = [
        sorted(key for key in {*arguments, *one} if arguments.get(key, ...) != one.get(key, ...))
        for one in recorded
    ]
    differing.sort(key=len)
    return f"the nearest differs in {', '.join(differing[0])}"


def _answer(exchange: Exchange) -> Any:
    if exchange.error is None:
        return Result(exchange.result or {})
    message = str(exchange.error.get("message", "it failed when it was recorded"))
    makers = {
        "connect": partial(ConnectError, retryable=False),
        "timeout": partial(CallTimeoutError, sent=True),
        "unknown": partial(ConnectionLostError, sent=True),
    }
    maker: Any = makers.get(str(exchange.error.get("kind")), Fail)
    return maker(message)
