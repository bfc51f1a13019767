"""Which addresses may be asked for tokens and metadata: those of the entry, and public ones over https."""

from __future__ import annotations

import re
from urllib.parse import SplitResult, urlsplit

from luthier.errors import ConnectError
from luthier.text import one_line
from luthier.wire.addresses import address_of, leads_inside
from luthier.wire.http.target import origin, shown

_NAME = re.compile(r"[a-z0-9](?:[a-z0-9_.-]*[a-z0-9])?\.?")
_INSIDE = ("localhost", "local", "localdomain", "internal", "intranet", "lan", "home", "corp", "home.arpa")


class UrlGuard:
    """Passes the origins that the entry itself names and public https; with `allow_private`, also the rest.

    What a name resolves to is not known here: the HTTP client looks at that when it connects.
    """

    def __init__(self, *literal: str, server: str, allow_private: bool) -> None:
        self._literal = frozenset(map(origin, literal))
        self._server = server
        self.allow_private = allow_private

    def is_literal(self, url: str) -> bool:
        """Whether the entry itself names this origin."""
        try:
            return origin(url) in self._literal
        except ValueError:
            return False

    def check(self, url: str, *, what: str) -> None:
        """Raises ConnectError, never to be retried, if nothing may be sent there. `what` names the URL."""
        fault = self._fault(url)
        if fault is None:
            return
        hint = "If it is meant, set allow_private for this server." if "private" in fault else ""
        raise ConnectError(
            f"Server {self._server!r}: {what} {one_line(shown(url))!r} is refused: {fault}.",
            server=self._server,
            phase="login",
            retryable=False,
            hint=hint,
        )

    def _fault(self, url: str) -> str | None:
        if not url.isascii() or re.search(r"[\s\\\x00-\x1f\x7f]", url):
            return "it holds characters that no URL may hold"
        try:
            own = origin(url)
            parts = urlsplit(url)
        except ValueError as error:
            return one_line(str(error).split(":")[0])
        if parts.username is not None or parts.password is not None:
            return "it holds a user name or a password"
        if own in self._literal:
            return None
        return _host_fault(parts, allow_private=self.allow_private)


def _host_fault(parts: SplitResult, *, allow_private: bool) -> str | None:
    host = (parts.hostname or "").lower()
    address = address_of(host)
    if address is None and not _NAME.fullmatch(host):
        return "its host is not a name"
    if allow_private:
        return None
    bare = host.rstrip(".")
    inside = leads_inside(address) if address else bare.endswith(tuple(f".{name}" for name in _INSIDE))
    if inside or bare in _INSIDE:
        return "its host is private"
    if parts.scheme.lower() != "https":
        return "it is not https"
    return None
