"""What goes wrong with one request, said as an error of the house: who, which tool, in which phase."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from luthier.errors import (
    CallTimeoutError,
    ConnectionLostError,
    MessageTooLargeError,
    ProtocolError,
    WireError,
)
from luthier.text import one_line

if TYPE_CHECKING:
    from luthier.wire.pending import Request

METHOD_NOT_FOUND = -32601
UNSUPPORTED_VERSION = -32022
HEADER_MISMATCH = -32020
MISSING_CAPABILITY = -32021

PASSING = frozenset({408, 429, 500, 502, 503, 504})
"""Statuses of HTTP that time may heal."""

_SHOWN = 500  # characters of what a server says that stand in an error's text


def answered_error(server: str, request: Request, error: Any) -> ProtocolError:
    """The error that a server answered with, however it is formed."""
    code, message, data = _read(error)
    number = "" if code is None else f" {code}"
    said = f": {one_line(message, _SHOWN)}" if message else ", without a message"
    return ProtocolError(
        f"Server {server!r} answered {request.what} with error{number}{said}",
        server=server,
        tool=request.tool,
        phase=request.phase,
        code=code,
        data=data,
    )


def _read(error: Any) -> tuple[int | None, str, Any]:
    if isinstance(error, str):
        return None, error, None
    if not isinstance(error, dict):
        return None, "", error
    code, message, data = error.get("code"), error.get("message"), error.get("data")
    try:
        number = None if isinstance(code, bool) or code is None else int(code)
    except (TypeError, ValueError):
        number = None
    if number is None and code is not None and data is None:
        data = {"code": code}
    if not isinstance(message, str):
        data = error if data is None else data
        message = ""
    return number, message, data


def broken_answer(server: str, request: Request, reason: str) -> ProtocolError:
    said = one_line(reason, _SHOWN)
    return ProtocolError(
        f"Server {server!r} answered {request.what} with something that cannot be read: {said}.",
        server=server,
        tool=request.tool,
        phase=request.phase,
    )


def too_large(server: str, request: Request, size: int) -> MessageTooLargeError:
    return MessageTooLargeError(
        f"Server {server!r} answered {request.what} with {size:,} bytes, which is more than may be read.",
        server=server,
        tool=request.tool,
        phase=request.phase,
        sent=True,
        hint="Ask for less, or raise `max_message_bytes` of that server.",
    )


def timed_out(server: str, request: Request, *, sent: bool) -> CallTimeoutError:
    waited = f"{request.waited:.3g} s" if request.waited >= 1 else f"{request.waited * 1000:.0f} ms"
    doubt = f" ({request.doubt})" if request.doubt else ""
    return CallTimeoutError(
        f"Server {server!r} did not answer {request.what} within {waited}{doubt}."
        if sent
        else f"Server {server!r} did not take {request.what} within {waited}: it reads nothing.",
        server=server,
        tool=request.tool,
        phase=request.phase,
        sent=sent,
    )


def last_words(tail: str) -> str:
    """The last line that a process said on stderr, as the end of a sentence; empty where it said nothing."""
    lines = tail.splitlines()
    return f"; the last line on its stderr: {one_line(lines[-1], _SHOWN)}" if lines else ""


def lost(server: str, request: Request, why: WireError | None, *, sent: bool) -> ConnectionLostError:
    """The connection ended under this request, or had ended before it; `why` is what the transport said."""
    reason = why.message if why else f"The connection to server {server!r} is closed."
    outcome = (
        f"What became of {request.what} is not known." if sent else f"Nothing of {request.what} was sent."
    )
    return ConnectionLostError(
        f"{reason} {outcome}",
        server=server,
        tool=request.tool,
        phase=request.phase,
        sent=sent,
        exit_status=getattr(why, "exit_status", None),
        stderr_tail=getattr(why, "stderr_tail", ""),
        hint=why.hint if why else "",
    )
