"""What goes wrong with an HTTP request, said as an error of the house with its facts."""

from __future__ import annotations

import datetime as dt
import email.utils
import errno
import os
import re
from typing import TYPE_CHECKING

import msgspec

from luthier.errors import (
    ConnectError,
    ConnectionLostError,
    HttpAnswer,
    HttpError,
    MessageTooLargeError,
    ProtocolError,
    WireError,
)
from luthier.text import escape, one_line
from luthier.web import UrlFault, shown
from luthier.wire.faults import PASSING
from luthier.wire.http.connector import RefusedAddressError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from luthier.wire.http.target import HttpTarget
    from luthier.wire.transport import Outgoing

EXCERPT = 2048
"""Bytes of a body that are kept with an error."""

_SHOWN = 300
_LONGEST_WAIT = 86_400.0
_IDS = ("x-request-id", "request-id", "x-correlation-id", "cf-ray", "x-amzn-requestid")
_TITLE = re.compile(r"<title[^>]{0,200}>([^<]{1,300})<", re.IGNORECASE)
_LOGIN = re.compile(r"""type\s*=\s*["']?password|\b(?:log|sign)[ -]?in\b|\bSSO\b""", re.IGNORECASE)
_HTML = re.compile(rb"\s*(?:\xef\xbb\xbf)?\s*<(?:!doctype|html|head|body|!--)", re.IGNORECASE)
_HINTS = {
    401: "It wants credentials: check `auth` or `headers` of that server, or log in with "
    "`luthier servers login {server}`.",
    403: "Its credentials are not enough: check `auth` or `headers` of that server, or log in again with "
    "`luthier servers login {server}`.",
    404: "Check `url` of that server.",
    405: "Check `url` and `transport` of that server.",
    407: "The proxy wants credentials: check `proxy` of that server.",
    413: "Send less, or ask the server's operator for a higher limit.",
    429: "It asks to be called less often.",
}

_PERSONAL = "The Authorization given with the call was refused; the entry's own was not used in its place."


class Asked(msgspec.Struct, frozen=True, gc=False):
    """What a request was for. `phase` is that of WireError."""

    phase: str = "call"
    tool: str = ""
    method: str = ""

    @property
    def what(self) -> str:
        return f"{self.method} {self.tool!r}" if self.tool else self.method


_PHASES = {"tools/list": "list", "initialize": "handshake", "server/discover": "handshake"}


def asked_for(message: Outgoing) -> Asked:
    return Asked(_PHASES.get(message.method, "call"), message.name, message.method)


def is_html(kind: str, body: bytes) -> bool:
    """By what it says it is or by how it begins; what begins as JSON does is none, whatever it says."""
    if body.removeprefix(b"\xef\xbb\xbf").lstrip().startswith((b"{", b"[")):
        return False
    return kind in ("text/html", "application/xhtml+xml") or _HTML.match(body) is not None


def describe_html(body: bytes) -> str:
    """What a web page is that came where an answer was expected."""
    text = body[: 8 * EXCERPT].decode(errors="replace")
    title = _TITLE.search(text)
    named = f" titled {one_line(title[1].strip(), 80)!r}" if title else ""
    return f"a login page{named}" if _LOGIN.search(text) else f"a web page{named}"


def status_error(
    target: HttpTarget, asked: Asked, status: int, reason: str, headers: Mapping[str, str], body: bytes
) -> HttpError:
    """The error for a response that is no success. `body` is its beginning."""
    said = describe_html(body) if is_html(_kind(headers), body) else _said(body)
    if status in (502, 503, 504) and said.startswith("a web page"):
        said = said.replace("a web page", "a proxy's error page", 1)
    place = f" to {asked.what}" if asked.what else ""
    name = f" {one_line(reason, 60)}" if reason else ""
    personal = target.personal and status in (401, 403)
    whose = " with the credentials given for this call" if personal else ""
    return HttpError(
        f"Server {target.server!r} answered HTTP {status}{name}{place}{whose}{f': {said}' if said else ''}",
        HttpAnswer(
            status,
            retry_after=retry_after(headers.get("Retry-After", "")),
            www_authenticate=one_line(headers.get("WWW-Authenticate", ""), 1024),
            request_id=next((one_line(headers[name], 128) for name in _IDS if name in headers), ""),
            excerpt=body[:EXCERPT].decode(errors="replace"),
        ),
        server=target.server,
        tool=asked.tool,
        phase=asked.phase,
        hint=_PERSONAL if personal else _HINTS.get(status, "").format(server=target.server),
    )


def redirect_error(
    target: HttpTarget, asked: Asked, status: int, url: str, location: str, *, why: str
) -> HttpError:
    return HttpError(
        f"Server {target.server!r} redirects {shown(url)} to {shown(location)}, which {why}",
        HttpAnswer(status),
        server=target.server,
        tool=asked.tool,
        phase=asked.phase,
        hint="If that is where the server is, write its address as `url` of that server.",
    )


def retry_after(text: str) -> float | None:
    """Seconds from now, of either form of the header; at most a day."""
    text = text.strip()
    if text.isascii() and text.isdigit():
        return min(float(text[:9]), _LONGEST_WAIT)
    try:
        when = email.utils.parsedate_to_datetime(text)
    except ValueError:
        return None
    now = dt.datetime.now(dt.UTC)
    if when.tzinfo is None:
        when = when.replace(tzinfo=dt.UTC)
    return min(max(0.0, (when - now).total_seconds()), _LONGEST_WAIT)


def too_large(target: HttpTarget, asked: Asked) -> MessageTooLargeError:
    return MessageTooLargeError(
        f"Server {target.server!r} answered {asked.what} with more than {target.max_message_bytes:,} bytes, "
        "which is more than may be read.",
        server=target.server,
        tool=asked.tool,
        phase=asked.phase,
        sent=True,
        hint="Ask for less, or raise `max_message_bytes` of that server.",
    )


def cut_off(target: HttpTarget, asked: Asked, how: str) -> ConnectionLostError:
    """The response ended before its answer was there."""
    return ConnectionLostError(
        f"The answer of server {target.server!r} to {asked.what} {how}. What became of it is not known.",
        server=target.server,
        tool=asked.tool,
        phase=asked.phase,
        sent=True,
    )


def unreadable(target: HttpTarget, asked: Asked, reason: str, *, hint: str = "") -> ProtocolError:
    return ProtocolError(
        f"Server {target.server!r} answered {asked.what} with something that cannot be used: {reason}.",
        server=target.server,
        tool=asked.tool,
        phase=asked.phase,
        hint=hint,
    )


def page_instead(target: HttpTarget, asked: Asked, body: bytes) -> ProtocolError:
    return unreadable(
        target, asked, describe_html(body), hint="Check `url` of that server, and whether it wants a login."
    )


class UnreachableError(ConnectError):
    """There was no connection, so nothing was asked."""


def unreachable(
    target: HttpTarget, asked: Asked, reason: str, *, retryable: bool = True, hint: str = ""
) -> UnreachableError:
    return UnreachableError(
        f"Server {target.server!r} cannot be reached at {shown(target.url)}: {reason}.",
        server=target.server,
        phase=asked.phase,
        retryable=retryable,
        hint=hint,
    )


def refused(target: HttpTarget, asked: Asked, url: str, fault: UrlFault) -> UnreachableError:
    """A URL that may not be asked, so nothing was sent."""
    place = f"{escape(target.place)}: " if target.place else ""
    return UnreachableError(
        f"Server {target.server!r}: {place}{one_line(shown(url))!r} is not asked: it {fault.why}.",
        server=target.server,
        phase=asked.phase,
        retryable=False,
        hint=fault.hint,
    )


def no_session(server: str, error: WireError) -> ConnectError:
    """That error, as the reason why there is no session."""
    if isinstance(error, ConnectError):
        return error
    http = error if isinstance(error, HttpError) else None
    return ConnectError(
        f"No session with server {server!r}: {error.message}",
        server=server,
        http=http,
        retryable=http is None or http.status in PASSING,
        hint=error.hint,
    )


def from_aiohttp(target: HttpTarget, asked: Asked, error: BaseException) -> WireError:
    """The error of the house for whatever the HTTP library raises."""
    import aiohttp

    if isinstance(error, WireError):
        return error
    if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError):
        return _not_connected(target, asked, error)
    reason = one_line(str(error) or type(error).__name__, _SHOWN).rstrip(".")
    match error:
        case aiohttp.ClientHttpProxyError():
            said = f"its proxy answered HTTP {error.status} {one_line(error.message, 60)}".rstrip()
            passing = error.status in PASSING
            return unreachable(target, asked, said, retryable=passing, hint="Check the proxy.")
        case aiohttp.ClientResponseError():
            return unreadable(target, asked, f"it is not HTTP: {one_line(error.message, _SHOWN)}")
        case aiohttp.InvalidURL() | ValueError():
            hint = "Check `url` and `headers` of that server."
            return unreachable(target, asked, f"it cannot be asked: {reason}", retryable=False, hint=hint)
        case _:
            return cut_off(target, asked, f"broke off: {_os_reason(error)}")


def cause(error: Exception) -> Exception | None:
    """What may be kept of an error of the HTTP library as a cause: nothing that holds a request."""
    import aiohttp

    return None if isinstance(error, aiohttp.ClientResponseError) else error


def _not_connected(target: HttpTarget, asked: Asked, error: BaseException) -> ConnectError:
    import aiohttp

    cause = getattr(error, "os_error", None)
    if isinstance(cause, RefusedAddressError):
        why = f"{cause.fault.why}, by what its name stands for"
        return refused(target, asked, target.url, UrlFault(why, cause.fault.hint))
    match error:
        case aiohttp.ClientConnectorDNSError():
            hint = "Check `url` of that server, and the network."
            return unreachable(target, asked, f"its name: {_os_reason(error)}", hint=hint)
        case aiohttp.ClientProxyConnectionError():
            return unreachable(target, asked, f"its proxy: {_os_reason(error)}", hint="Check the proxy.")
        case aiohttp.ClientConnectorCertificateError() | aiohttp.ClientSSLError():
            reason = one_line(str(error), _SHOWN).rstrip(".")
            hint = "Name its own authority as `tls: {ca: FILE}` of that server."
            return unreachable(target, asked, f"TLS: {reason}", retryable=False, hint=hint)
        case aiohttp.ConnectionTimeoutError():
            return unreachable(target, asked, f"no connection within {target.timeout:g} s")
        case _:
            return unreachable(target, asked, _os_reason(error))


def _os_reason(error: BaseException) -> str:
    strerror, number = getattr(error, "strerror", None), getattr(error, "errno", None)
    reason = strerror if isinstance(strerror, str) and strerror else str(error)
    if isinstance(number, int) and number in errno.errorcode:  # asyncio puts the address in its place
        reason = os.strerror(number)
    return one_line(reason or "the connection was closed", _SHOWN).rstrip(".")


def _kind(headers: Mapping[str, str]) -> str:
    return headers.get("Content-Type", "").partition(";")[0].strip().lower()


def _said(body: bytes) -> str:
    """What an error's body says, in short: the message in it where it is JSON, else its beginning."""
    try:
        found = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return one_line(body[: 4 * _SHOWN].decode(errors="replace").strip(), _SHOWN)
    for _ in range(2):
        if isinstance(found, dict):
            names = ("error_description", "message", "detail", "error")
            found = next((found[name] for name in names if found.get(name)), found)
    text = found if isinstance(found, str) else msgspec.json.encode(found).decode()
    return one_line(text, _SHOWN)
