"""The door of every HTTP surface: Host, Origin and token are looked at before anything behind it is.

A page in a browser may lead a name of its own to this machine (DNS rebinding); its Host gives it away. The
token is taken off the request here, so nothing behind the door can pass it on.
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Any

import msgspec

from luthier.redaction import logger

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping

    from luthier.serve.callers import Callers
    from luthier.spec import Serve

    Scope = MutableMapping[str, Any]
    Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
    Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
    App = Callable[[Scope, Receive, Send], Awaitable[None]]

_log = logger("luthier.serve")
_KEPT_OUT = frozenset({b"authorization", b"proxy-authorization", b"cookie"})
_SCHEME = "bearer "
_HTTP_PORT = 80


def own_hosts(host: str, port: int) -> frozenset[str]:
    """The Host headers of those who mean the address that is listened on."""
    address = ipaddress.ip_address(host)
    names = [f"[{host}]" if address.version == 6 else host]  # noqa: PLR2004  (IPv6)
    if address.is_loopback or address.is_unspecified:
        names += ["127.0.0.1", "localhost", "[::1]"]
    short = names if port == _HTTP_PORT else []
    return frozenset([f"{name}:{port}" for name in names] + short)


class Refusal(msgspec.Struct, frozen=True):
    """A request that goes no further: status, what its caller is told, and why, for the log."""

    status: int
    message: str
    why: str


class Door:
    """An ASGI application before another one."""

    def __init__(self, app: App, callers: Callers, serve: Serve, own: frozenset[str]) -> None:
        self._app = app
        self._callers = callers
        self._hosts = own | frozenset(serve.hosts)
        named = {f"{scheme}://{host}" for host in self._hosts for scheme in ("http", "https")}
        self._origins = frozenset(serve.origins) | named

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        found = self.look(scope["headers"])
        if isinstance(found, Refusal):
            _log.warning("refused a request with %d: %s", found.status, found.why)
            await _refuse(found, scope, receive, send)
            return
        headers = [(name, value) for name, value in scope["headers"] if name.lower() not in _KEPT_OUT]
        await self._app({**scope, "headers": headers, "user": _user(found)}, receive, send)

    def look(self, headers: list[tuple[bytes, bytes]]) -> str | Refusal:
        """The client who asks, or why the request goes no further."""
        hosts, origins, tokens = (
            [value.decode("latin-1") for name, value in headers if name.lower() == wanted]
            for wanted in (b"host", b"origin", b"authorization")
        )
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            return Refusal(403, "This host is not served here.", f"Host {hosts}")
        if len(origins) > 1 or any(origin.lower() not in self._origins for origin in origins):
            return Refusal(403, "This origin may not call.", f"Origin {origins}")
        if len(tokens) != 1 or not tokens[0].lower().startswith(_SCHEME):
            return Refusal(401, "Missing or invalid Authorization header", "no bearer token")
        client = self._callers.client(tokens[0][len(_SCHEME) :].strip())
        if client is None:
            return Refusal(401, "Invalid bearer token", "a token of nobody")
        return client


def _user(client: str) -> Any:
    """The client as the SDK knows callers: a session of one is not there for another."""
    from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
    from mcp.server.auth.provider import AccessToken

    return AuthenticatedUser(AccessToken(token="", client_id=client, scopes=[]))


async def _refuse(refusal: Refusal, scope: Scope, receive: Receive, send: Send) -> None:
    from starlette.responses import JSONResponse

    known = refusal.status == 401  # noqa: PLR2004  (who is not known may say who it is)
    error = "MCP authentication failed" if known else "Forbidden"
    headers = {"WWW-Authenticate": 'Bearer realm="luthier"'} if known else None
    body = {"error": error, "message": refusal.message}
    await JSONResponse(body, status_code=refusal.status, headers=headers)(scope, receive, send)
