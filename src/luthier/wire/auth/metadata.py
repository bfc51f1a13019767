"""What an authorization server says about itself (RFC 8414 and OpenID Connect), and what of it must hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from luthier.errors import ConnectError
from luthier.text import one_line

if TYPE_CHECKING:
    from luthier.wire.auth.fetch import Guarded

WELL_KNOWN = ("/.well-known/oauth-authorization-server", "/.well-known/openid-configuration")

_OK = 200
_SERVER_FAULT = 500
_BUSY = 429


class AuthorizationServer(msgspec.Struct, frozen=True, kw_only=True):
    """Its name exactly as it writes it. `methods`: how clients may say who they are at its token endpoint."""

    issuer: str
    token_endpoint: str
    methods: tuple[str, ...] = ("client_secret_basic",)  # what RFC 8414 says where the list is missing
    algorithms: tuple[str, ...] | None = None


def places(issuer: str) -> tuple[str, ...]:
    """Where the metadata of an issuer may be, the likeliest first."""
    parts = urlsplit(issuer)
    base, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    oauth, openid = WELL_KNOWN
    found = [f"{base}{oauth}{path}", f"{base}{openid}{path}", f"{base}{path}{openid}"]
    return tuple(dict.fromkeys(found))


async def discover(fetch: Guarded, issuer: str, *, server: str) -> AuthorizationServer:
    """Ask an issuer for its metadata. Raises ConnectError, also where it names another issuer than itself."""
    heals = False
    for url in places(issuer):
        reply = await fetch("GET", url, {"Accept": "application/json"}, what="the metadata of the issuer")
        body = reply.json() if reply.status == _OK else {}
        heals = heals or reply.status >= _SERVER_FAULT or reply.status == _BUSY
        if body:
            return _read(body, issuer, server)
    raise ConnectError(
        f"Server {server!r}: the issuer {one_line(issuer)!r} publishes no metadata.",
        server=server,
        phase="login",
        retryable=heals,
        hint="Check auth.issuer of its entry, or write auth.token_url.",
    )


def _read(body: dict[str, Any], issuer: str, server: str) -> AuthorizationServer:
    named, endpoint = body.get("issuer"), body.get("token_endpoint")
    if named != issuer:
        other = one_line(named) if isinstance(named, str) else "none"
        raise refused(server, f"the metadata of {one_line(issuer)!r} names another issuer: {other!r}")
    if not isinstance(endpoint, str):
        raise refused(server, f"the metadata of {one_line(issuer)!r} names no token endpoint")
    methods = texts(body.get("token_endpoint_auth_methods_supported"))
    algorithms = texts(body.get("token_endpoint_auth_signing_alg_values_supported"))
    plain = AuthorizationServer(issuer=issuer, token_endpoint=endpoint, algorithms=algorithms)
    return plain if methods is None else msgspec.structs.replace(plain, methods=methods)


def texts(value: object) -> tuple[str, ...] | None:
    """A list of texts; None where it is none."""
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else None


def refused(server: str, fault: str, *, hint: str = "") -> ConnectError:
    """The error for an authorization server that is not to be trusted; nothing more is sent to it."""
    return ConnectError(
        f"Server {server!r}: {fault}.", server=server, phase="login", retryable=False, hint=hint
    )
