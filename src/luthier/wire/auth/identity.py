"""Enterprise-managed authorization: a company's identity provider vouches for its employee at an issuer."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlencode

import msgspec

from luthier.secrets import Secret
from luthier.text import one_line
from luthier.web import shown
from luthier.wire.auth.metadata import refused
from luthier.wire.auth.replies import OK, refusal

if TYPE_CHECKING:
    from luthier.wire.auth.fetch import Guarded

FORM = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"

_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
_SUBJECT = "urn:ietf:params:oauth:token-type:id_token"
_ASSERTION = "urn:ietf:params:oauth:token-type:id-jag"


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """Who the employee is: the ID token of a single sign-on, and where its issuer exchanges it."""

    id_token: Secret
    token_url: str
    client_id: str | None = None


async def vouched(
    identity: Identity, fetch: Guarded, *, audience: str, resource: str, scope: str | None, server: str
) -> Secret:
    """An assertion of the identity provider for that issuer and that server. Raises ConnectError."""
    facts = {
        "grant_type": _EXCHANGE,
        "requested_token_type": _ASSERTION,
        "audience": audience,
        "resource": resource,
        "scope": scope,
        "subject_token": identity.id_token.reveal(),
        "subject_token_type": _SUBJECT,
        "client_id": identity.client_id,
    }
    form = urlencode({name: value for name, value in facts.items() if value}).encode()
    url = identity.token_url
    reply = await fetch("POST", url, FORM, form, what="the identity provider")
    body, place = reply.json(), f"the identity provider {one_line(shown(url))!r}"
    if reply.status not in OK or "error" in body:
        raise refusal(reply, f"Server {server!r}: {place}", server=server, secrets=[identity.id_token])
    token, kind = body.get("access_token"), body.get("issued_token_type")
    if not isinstance(token, str) or not token or kind != _ASSERTION:
        raise refused(server, f"{place} did not answer with an assertion for its issuer")
    return Secret(token)
