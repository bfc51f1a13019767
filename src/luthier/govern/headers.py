"""The guard of headers that a caller gives with a call: they go to servers by URL only, and only some."""

from __future__ import annotations

from typing import TYPE_CHECKING

from luthier.govern.guard import said
from luthier.tools.headers import call_fault

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from luthier.govern.guard import GateCall, Guard, Next, Up
    from luthier.uri import ToolUri


def headers_guard(takes: Callable[[ToolUri], bool]) -> Guard:
    """`takes` says whether what is at an address is reached by HTTP; it connects to nothing."""

    def guard(call: GateCall, inner: Next) -> Awaitable[Up]:
        given = call.call.headers
        if given is None:
            return inner(call)
        fault = call_fault(given)
        if fault is not None:
            reason = f"The headers of the call are refused: {fault}."
            return said(_refusal(call, reason, "Leave it out; what the server's entry says is sent anyway."))
        if not takes(call.call.uri):
            reason = f"{call.call.uri} is not reached by HTTP, so no headers can go along with the call."
            return said(_refusal(call, reason, "Give them only with calls to servers that have a `url`."))
        return inner(call)

    return guard


def _refusal(call: GateCall, reason: str, hint: str) -> Up:
    return call.refuse("arguments", reason, rule="headers", place="the headers of the call", hint=hint)
