"""The door of every HTTP surface: Host, Origin and the lock of the address, before anything behind it.

A page in a browser may lead a name of its own to this machine (DNS rebinding); its Host gives it away. All
credentials are taken off the request here, so nothing behind the door can pass them on.
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

from luthier.redaction import logger
from luthier.serve.caller import Caller, Refusal
from luthier.serve.locks import SIGNING_HEADERS, all_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping

    from luthier.serve.bearing import Bearing
    from luthier.serve.locks import Headers, Lock
    from luthier.spec import Serve

    Scope = MutableMapping[str, Any]
    Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
    Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
    App = Callable[[Scope, Receive, Send], Awaitable[None]]

_log = logger("luthier.serve")
PATH = "/mcp"
"""Where the protocol is spoken."""

_KEPT_OUT = frozenset(
    {b"authorization", b"proxy-authorization", b"cookie", *(name.encode() for name in SIGNING_HEADERS)}
)
_UNKNOWN, _FORBIDDEN, _TOO_LARGE, _OTHER_KIND = 401, 403, 413, 415
_HTTP_PORT = 80


def own_hosts(host: str, port: int) -> frozenset[str]:
    """The Host headers of those who mean the address that is listened on."""
    address = ipaddress.ip_address(host)
    names = [f"[{host}]" if address.version == 6 else host]  # noqa: PLR2004  (IPv6)
    if address.is_loopback or address.is_unspecified:
        names += ["127.0.0.1", "localhost", "[::1]"]
    short = names if port == _HTTP_PORT else []
    return frozenset([f"{name}:{port}" for name in names] + short)


_TITLES = {
    _FORBIDDEN: "Forbidden",
    _TOO_LARGE: "Content too large",
    _OTHER_KIND: "Unsupported media type",
}


class Body:
    """The body of a request: read here where a lock looks at it, and read again behind the door."""

    def __init__(self, receive: Receive, most: int) -> None:
        self._receive = receive
        self._most = most
        self._read: bytes | None = None

    async def read(self) -> bytes:
        """All of it. Raises TooLargeError."""
        chunks, size, more = [], 0, True
        while more:
            message = await self._receive()
            chunks.append(message.get("body", b""))
            size += len(chunks[-1])
            if size > self._most:
                raise TooLargeError
            more = message["type"] == "http.request" and message.get("more_body", False)
        self._read = b"".join(chunks)
        return self._read

    async def receive(self) -> MutableMapping[str, Any]:
        """As ASGI has it."""
        if self._read is None:
            return await self._receive()
        body, self._read = self._read, None
        return {"type": "http.request", "body": body, "more_body": False}


class TooLargeError(Exception):
    """A body over the limit."""


class Locks(Protocol):
    """Which lock is before which address, and which role its caller must have besides."""

    def of(self, scope: Scope) -> tuple[Lock, str]: ...


class Door:
    """An ASGI application before another one."""

    def __init__(
        self, app: App, locks: Locks, serve: Serve, own: frozenset[str], bearing: Bearing | None = None
    ) -> None:
        self._app = app
        self._locks = locks
        self._most = serve.max_body_bytes
        self._bearing = bearing
        issued = {urlsplit(serve.oauth.resource).netloc.lower()} if serve.oauth else set()
        self._hosts = own | frozenset(serve.hosts) | issued
        named = {f"{scheme}://{host}" for host in self._hosts for scheme in ("http", "https")}
        self._origins = frozenset(serve.origins) | named

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        body = Body(receive, self._most)
        found = await self.look(scope, body)
        if isinstance(found, Refusal):
            _log.warning("refused a request with %d: %s", found.status, found.why)
            await self._refuse(found, scope, receive, send)
            return
        headers = [(name, value) for name, value in scope["headers"] if name.lower() not in _KEPT_OUT]
        inner = {**scope, "headers": headers, "caller": found, "user": _user(found)}
        await self._app(inner, body.receive, send)

    async def look(self, scope: Scope, body: Body) -> Caller | Refusal:
        """Who asks, or why the request goes no further."""
        headers: Headers = scope["headers"]
        return self.place_fault(headers) or await self._admitted(scope, headers, body)

    def place_fault(self, headers: Headers) -> Refusal | None:
        """Why a request for this host, from a page of this origin, goes no further."""
        hosts, origins = all_of(headers, "host"), all_of(headers, "origin")
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            return Refusal(_FORBIDDEN, "This host is not served here.", f"Host {hosts}")
        if len(origins) > 1 or any(origin.lower() not in self._origins for origin in origins):
            return Refusal(_FORBIDDEN, "This origin may not call.", f"Origin {origins}")
        return None

    async def _admitted(self, scope: Scope, headers: Headers, body: Body) -> Caller | Refusal:
        lock, role = self._locks.of(scope)
        try:
            found = await lock.admit(headers, body.read)
        except TooLargeError:
            return Refusal(_TOO_LARGE, f"The body has more than {self._most} bytes.", "a body over the limit")
        if isinstance(found, Caller) and role and not found.may(role):
            return missing_role(found, role)
        if isinstance(found, Caller) and scope["path"] == PATH and scope["method"] == "POST":
            return _other_kind(headers) or found
        return found

    async def _refuse(self, refusal: Refusal, scope: Scope, receive: Receive, send: Send) -> None:
        from starlette.responses import JSONResponse

        body = {"error": _title(refusal.status, scope["path"]), "message": refusal.message}
        headers = challenge(refusal, self._bearing)
        await JSONResponse(body, status_code=refusal.status, headers=headers)(scope, receive, send)


def missing_role(caller: Caller, role: str) -> Refusal:
    """What is said to who is known and may not."""
    message = f"This takes the role {role!r}."
    return Refusal(_FORBIDDEN, message, f"client {caller.id} lacks the role {role}", role)


def challenge(refusal: Refusal, bearing: Bearing | None) -> dict[str, str]:
    """The header that says what would open the door (RFC 6750, RFC 9728)."""
    if refusal.status != _UNKNOWN and not (refusal.role and bearing):
        return {}
    parts = ['realm="luthier"']
    if refusal.role and bearing:
        parts += ['error="insufficient_scope"', f'scope="{bearing.scopes_for(refusal.role)}"']
    elif refusal.message.startswith("Invalid"):
        parts.append('error="invalid_token"')
    if bearing:
        parts.append(f'resource_metadata="{bearing.metadata_url}"')
    return {"WWW-Authenticate": f"Bearer {', '.join(parts)}"}


def _other_kind(headers: Headers) -> Refusal | None:
    """Why a message of the protocol is not looked at: it is no JSON by its own word."""
    kinds = [kind.partition(";")[0].strip().lower() for kind in all_of(headers, "content-type")]
    if kinds == ["application/json"]:
        return None
    return Refusal(_OTHER_KIND, "The body must be application/json.", f"Content-Type {kinds}")


def _title(status: int, path: str) -> str:
    if status == _UNKNOWN:
        return "MCP authentication failed" if path.startswith("/mcp") else "Unauthorized"
    return _TITLES.get(status, "Unavailable")


def _user(caller: Caller) -> Any:
    """The client as the SDK knows callers: a session of one is not there for another."""
    from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
    from mcp.server.auth.provider import AccessToken

    return AuthenticatedUser(AccessToken(token="", client_id=caller.id, scopes=[]))
