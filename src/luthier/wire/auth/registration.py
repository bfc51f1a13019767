"""Reads what an authorization server answers to a client that registers itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from luthier.text import one_line
from luthier.web import shown
from luthier.wire.auth.metadata import refused, texts
from luthier.wire.auth.replies import OK, refusal

if TYPE_CHECKING:
    from luthier.wire.auth.fetch import Fetched

_KEPT = ("client_id", "client_secret", "token_endpoint_auth_method")


def read_registration(reply: Fetched, *, url: str, server: str) -> dict[str, Any]:
    """What of it is used. Raises ConnectError; nothing of a reply that cannot be used is shown."""
    body = reply.json()
    place = f"Server {server!r}: the registration endpoint {one_line(shown(url))!r}"
    if reply.status not in OK:
        raise refusal(reply, place, server=server)
    kept = {name: body[name] for name in _KEPT if isinstance(body.get(name), str) and body[name]}
    if "client_id" not in kept:
        raise refused(
            server, f"the registration endpoint {one_line(shown(url))!r} answered without a client_id"
        )
    expires = body.get("client_secret_expires_at")
    if isinstance(expires, int) and expires > 0:
        kept["client_secret_expires_at"] = expires
    return kept | {"redirect_uris": list(texts(body.get("redirect_uris")) or ())}
