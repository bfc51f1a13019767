"""What goes down through the gate, and the shape of a guard: takes a call and the next guard inwards."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import msgspec

from luthier.govern.checks import Decision
from luthier.taint import Label
from luthier.tools import Refusal, Tool, ToolCall, ToolResult

Up = ToolResult | Refusal
Next = Callable[["GateCall"], Awaitable[Up]]
Guard = Callable[["GateCall", Next], Awaitable[Up]]


class Ledger(msgspec.Struct, gc=False):
    """What the guards of one call tell each other: the one thing here that is written on the way."""

    digest: str = ""  # SHA-256 of the arguments as they will be sent
    allowed: bool = False  # the verdict has been written
    size: int = 0  # of the result, in bytes
    revoked: bool = False  # it was cut off by the kill switch
    unlabelled: bool = False  # a label of the call was not known
    rule: str = ""  # by which the call was refused, where its caller is only told that nothing is there
    place: str = ""
    kind: str = "denied"
    allowed_by: str = "policies.default"  # the rule that lets the call pass, and where it is written
    allowed_at: str = ""
    ask: Decision | None = None  # what the call needs an approval for
    resolved: float = 0.0  # when the tool was looked up, by the monotonic clock
    approval: str = ""  # that the call has
    approver: str = ""


class GateCall(msgspec.Struct, frozen=True):
    """A call on its way down. `label` joins its arguments and its branch; `tool` is set once it is found."""

    call: ToolCall
    label: Label
    ledger: Ledger
    tool: Tool | None = None

    def refuse(
        self, kind: str, reason: str, *, rule: str, place: str, hint: str, request: str = ""
    ) -> Refusal:
        """The gate's no to this call: by which rule, where that stands, and what would allow it."""
        return Refusal(
            uri=self.call.uri,
            call_id=self.call.id,
            kind=kind,
            reason=reason,
            rule=rule,
            place=place,
            hint=hint,
            request=request,
        )


def announced(call: GateCall, inner: Next) -> Awaitable[Up]:
    """The guard that tells whoever calls that nothing keeps the call back any more."""
    passed = call.call.passed
    return inner(call) if passed is None else _after(passed, call, inner)


async def _after(passed: Callable[[], Awaitable[None]], call: GateCall, inner: Next) -> Up:
    await passed()
    return await inner(call)


async def said(up: Up) -> Up:
    """The answer of a guard that asks nobody further in.

    A guard need not be a coroutine itself: one that hands on what `inner` gives costs a call no frame of
    its own.
    """
    return up


def fold(guards: Sequence[Guard], innermost: Next) -> Next:
    """The guards as one, the first of them outermost."""
    chain = innermost
    for guard in reversed(guards):
        chain = _around(guard, chain)
    return chain


def _around(guard: Guard, inner: Next) -> Next:
    return lambda call: guard(call, inner)
