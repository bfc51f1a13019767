"""Two guards that write the audit log: the outer one the verdict, the inner one the intent and the outcome.

No intent, no call. A call that was allowed has its verdict and its intent written, in this order, before it
is carried. An outcome that cannot be written is withheld: for whoever called, the call ends with kind
`unknown`. A guard in between that fails with anything but a fault of the way to the tool, or back to its
caller, has said no.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from luthier.errors import (
    AuditError,
    CallerError,
    ConnectionLostError,
    LuthierError,
    NotFoundError,
    ResultWithheldError,
    SpecError,
    StoreError,
    WireError,
    kind_of,
)
from luthier.govern.access import is_told
from luthier.govern.audit import written_down
from luthier.govern.digests import arguments_digest, kept_text, names_of, reply_digest, tag_of
from luthier.govern.pins import Hashes
from luthier.govern.records import Intent, Outcome, Record, Verdict
from luthier.redaction import logger
from luthier.tools import Refusal, ToolResult

if TYPE_CHECKING:
    from collections.abc import Collection

    from luthier.clock import Clock
    from luthier.context import CallContext
    from luthier.govern.audit import AuditLog
    from luthier.govern.guard import GateCall, Next, Up
    from luthier.uri import ToolUri

_log = logger("luthier.govern")

_FAULT = "This is a fault of Luthier or of a policy; the log has the details."


class AuditRecorder:
    """Writes what happens to a call, as the two outermost and innermost guards of the gate."""

    def __init__(self, audit: AuditLog, clock: Clock, *, keep: Collection[str] = ()) -> None:
        """`keep`: "arguments" and "results" of calls are written down too, redacted."""
        self._audit = audit
        self._waits = getattr(audit, "waits", False)
        self._clock = clock
        self._sent = "arguments" in keep
        self._got = "results" in keep
        self._pins = Hashes()

    async def verdict(self, call: GateCall, inner: Next) -> Up:
        """The outermost: whatever kept a call from being carried is written down."""
        try:
            result = await inner(call)
        except (WireError, CallerError, NotFoundError, SpecError, AuditError) as error:
            if not call.ledger.allowed and not isinstance(error, AuditError):
                await self._write_failure(call, error)
            raise
        except asyncio.CancelledError:
            if not call.ledger.allowed:
                with suppress(AuditError):
                    await self._write_verdict(call, "failed", reason="cancelled")
            raise
        except Exception as error:
            told = isinstance(error, StoreError)  # not a fault of ours, and its words say what to do
            _log.error("a guard failed on %s: %s", call.call.uri, error, exc_info=not told)
            if call.ledger.allowed:
                raise ResultWithheldError(
                    f"A guard failed on the result of {call.call.uri}, so it is withheld."
                ) from error
            result = call.refuse(
                "denied",
                f"The gate could not decide about {call.call.uri}, so the answer is no.",
                rule=f"guard failed: {type(error).__name__}",
                place="the gate",
                hint=str(error) if told and is_told(call.call.context.principals) else _FAULT,
            )
        if isinstance(result, Refusal) and not call.ledger.allowed:
            await self._write_verdict(
                call, "refused", reason=result.kind, rule=result.rule, place=result.place
            )
        elif isinstance(result, Refusal) and call.ledger.revoked:
            await self._write_verdict(
                call, "revoked", reason=result.kind, rule=result.rule, place=result.place
            )
        return result

    async def carried(self, call: GateCall, inner: Next) -> Up:
        """The innermost: verdict and intent before the call is carried, the outcome after."""
        ledger = call.ledger
        allowed = _verdict(call, "allowed", rule=ledger.allowed_by, place=ledger.allowed_at)
        uri = allowed.uri
        pin = self._pins.of(call.tool) if call.tool is not None and call.call.uri.scheme == "mcp" else ""
        sent = kept_text(call.call.arguments.value, call.label) if self._sent else ""
        intent = Intent(call=call.call.id, uri=uri, arguments=ledger.digest, pin=pin, sent=sent)
        try:
            await self._write(allowed, intent)
        except asyncio.CancelledError:  # it may be written by now, and nothing is carried
            ledger.allowed = True
            with suppress(AuditError):
                await self._write_outcome(call, uri, self._clock.monotonic(), "cancelled")
            raise
        ledger.allowed = True
        began = self._clock.monotonic()
        try:
            result = await inner(call)
        except LuthierError as error:
            await self._write_outcome(call, uri, began, kind_of(error))
            raise
        except Exception as error:
            await self._write_outcome(call, uri, began, "unknown")
            raise ConnectionLostError(
                f"Carrying {uri} failed here: {error!r}. Whether it took effect is not known.",
                server=call.call.uri.server,
                tool=call.call.uri.name,
            ) from error
        except BaseException:
            with suppress(AuditError):  # a cancellation must not be swallowed; the log stays failed anyway
                await self._write_outcome(call, uri, began, "cancelled")
            raise
        await self._write_outcome(call, uri, began, "ok", result)
        return result

    async def lookup_refused(
        self, uri: ToolUri | str, context: CallContext, rule: str, place: str, kind: str = "denied"
    ) -> None:
        """A tool, or something else that is called, was asked for by somebody who may not use it."""
        await self._write(
            Verdict(
                call="",
                uri=str(uri),
                verdict="refused",
                reason=kind,
                rule=rule,
                place=place,
                principals=context.principals,
                run=context.run,
                step=context.step,
                trace=context.trace_id,
            )
        )

    def write(self, record: Record) -> None:
        """Write what is no call's. Raises AuditError."""
        try:
            self._audit.write(record)
        except AuditError:
            raise
        except Exception as error:
            raise _failed(error) from error

    async def _write(self, *records: Record) -> None:
        try:
            if self._waits:
                await written_down(self._audit, *records)
            else:  # spares the frames of two coroutines in every call
                self._audit.write(*records)
        except AuditError:
            raise
        except Exception as error:
            raise _failed(error) from error

    async def _write_failure(self, call: GateCall, error: LuthierError) -> None:
        rule, place = call.ledger.rule, call.ledger.place
        if rule:  # the caller is told that nothing is there; the log knows better
            await self._write_verdict(call, "refused", reason=call.ledger.kind, rule=rule, place=place)
        elif isinstance(error, NotFoundError):
            await self._write_verdict(call, "failed", reason=kind_of(error), rule=f"no such {error.what}")
        else:
            await self._write_verdict(call, "failed", reason=kind_of(error))

    async def _write_verdict(
        self, call: GateCall, verdict: str, *, reason: str = "", rule: str = "", place: str = ""
    ) -> None:
        await self._write(_verdict(call, verdict, reason=reason, rule=rule, place=place))

    async def _write_outcome(
        self, call: GateCall, uri: str, began: float, outcome: str, result: Up | None = None
    ) -> None:
        digest, size, label, got = "", 0, None, ""
        if isinstance(result, ToolResult):
            outcome = "error" if result.reply.is_error else outcome
            digest, size = reply_digest(result.reply)
            call.ledger.size = size
            label = tag_of(result.label, call.call.id)
            if self._got:
                got = kept_text(result.reply.content, result.label)
        elif result is not None:
            outcome = "refused"
        duration = round((self._clock.monotonic() - began) * 1000, 3)
        try:
            await self._write(
                Outcome(
                    call=call.call.id,
                    uri=uri,
                    outcome=outcome,
                    duration=duration,
                    result=digest,
                    size=size,
                    label=label,
                    got=got,
                )
            )
        except AuditError as error:
            raise ResultWithheldError(
                f"{uri} was called, and how that ended could not be recorded: {error.message}",
                hint="The result is withheld. Look at the server before the call is made again.",
            ) from error


def _failed(error: Exception) -> AuditError:
    return AuditError(f"The audit log failed: {error!r}.")


def _verdict(call: GateCall, verdict: str, *, reason: str = "", rule: str = "", place: str = "") -> Verdict:
    wanted = call.call
    context = wanted.context
    arguments = wanted.arguments.value
    return Verdict(
        call=wanted.id,
        uri=str(wanted.uri),
        verdict=verdict,
        reason=reason,
        rule=rule,
        place=place,
        principals=context.principals,
        run=context.run,
        step=context.step,
        attempt=context.attempt,
        arguments=call.ledger.digest or arguments_digest(arguments),
        names=names_of(arguments),
        label=tag_of(call.label),
        approval=call.ledger.approval,
        approver=call.ledger.approver,
        trace=context.trace_id,
    )
