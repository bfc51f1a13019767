"""The breakers of one server's tools: calls are let through or refused, and how they end is counted.

A tool has a breaker only from its first failure until it is well again, so a healthy one costs a look-up.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from luthier.connect import breaker
from luthier.errors import (
    CallTimeoutError,
    CircuitOpenError,
    ConnectError,
    HttpError,
    ProtocolError,
    WireError,
)

if TYPE_CHECKING:
    from luthier.clock import Clock
    from luthier.spec.project import Breaker
    from luthier.tools import Reply

_CALLERS_FAULT = frozenset({-32600, -32601, -32602})
"""JSON-RPC errors that say of a call that it was wrong, and nothing of the server."""

_CALLERS_STATUS = range(400, 500)
_SERVERS_STATUS = frozenset({408, 425, 429})
_THROUGH = breaker.Admitted()


class Breakers:
    """What `breaker` of an entry says, for each of its server's tools."""

    def __init__(self, server: str, settings: Breaker, clock: Clock) -> None:
        self._enabled = settings.enabled
        self._counts_tool_errors = settings.count_tool_errors
        self._server = server
        self._clock = clock
        self._policy = breaker.Policy(settings.failures, settings.cooldown, settings.successes)
        self._states: dict[str, breaker.State] = {}

    def ask(self, tool: str) -> breaker.Admitted | None:
        """Leave to call the tool; None where nothing is held against it. Raises CircuitOpenError."""
        state = self._states.get(tool)
        if state is None:  # so it is with every tool where breakers are off
            return None
        self._states[tool], answer = breaker.ask(state, self._clock.monotonic())
        if isinstance(answer, breaker.Rejected):
            raise self._refusal(tool, answer)
        return answer

    def answered(self, tool: str, admitted: breaker.Admitted | None, reply: Reply) -> None:
        """A call was answered; an error of the tool's own counts only where the entry says so."""
        if reply.is_error and self._counts_tool_errors:
            self._end(tool, admitted, "failed")
        elif self._states:
            self._end(tool, admitted, "succeeded")

    def raised(self, tool: str, admitted: breaker.Admitted | None, error: BaseException) -> None:
        """A call ended in that error."""
        self._end(tool, admitted, ending_of(error))

    def _end(self, tool: str, admitted: breaker.Admitted | None, ending: breaker.Ending) -> None:
        if not self._enabled:
            return
        state = self._states.get(tool, breaker.CLOSED)
        after = breaker.end(state, admitted or _THROUGH, ending, self._clock.monotonic(), self._policy)
        if after == breaker.CLOSED:
            self._states.pop(tool, None)
        else:
            self._states[tool] = after

    def phase(self, tool: str) -> breaker.Phase:
        """Where the breaker of a tool stands."""
        return self._states.get(tool, breaker.CLOSED).phase

    def reset(self) -> None:
        """Hold nothing against any tool."""
        self._states.clear()

    def _refusal(self, tool: str, rejected: breaker.Rejected) -> CircuitOpenError:
        if rejected.seconds is None:
            when = "One call is trying it out now; others may follow when that has ended."
        else:
            when = f"It may be tried again in {max(rejected.seconds, 0.1):.1f} s."
        return CircuitOpenError(
            f"Tool {tool!r} on server {self._server!r} has failed again and again, so it is left alone. "
            f"Nothing was sent.",
            server=self._server,
            tool=tool,
            retry_after=rejected.seconds or 0.0,
            hint=when,
        )


def ending_of(error: BaseException) -> breaker.Ending:
    """What an error says of the tool: that it failed, or nothing.

    A caller who went away or asked for something wrong, and a call that never left us because its own time
    was up, are no sign of ill health.
    """
    match error:
        case asyncio.CancelledError():
            return "withdrawn"
        case CallTimeoutError(sent=False) | ConnectError(retryable=False) | CircuitOpenError():
            return "withdrawn"
        case ProtocolError(code=code) if code in _CALLERS_FAULT:
            return "withdrawn"
        case HttpError(status=status) if status in _CALLERS_STATUS and status not in _SERVERS_STATUS:
            return "withdrawn"
        case WireError():
            return "failed"
        case _:
            return "withdrawn"
