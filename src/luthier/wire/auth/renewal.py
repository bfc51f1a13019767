"""Gets new tokens for a refresh token, from the endpoint that gave it and from no other."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast
from urllib.parse import urlencode

import msgspec

from luthier.wire.auth.client_auth import Credentials, Method
from luthier.wire.auth.identity import FORM
from luthier.wire.auth.replies import TokenError, read_tokens

if TYPE_CHECKING:
    from luthier.clock import Clock
    from luthier.wire.auth.fetch import Guarded
    from luthier.wire.auth.tokens import Grant, Registration, Tokens

_METHODS = ("none", "client_secret_post", "client_secret_basic")


async def renew(grant: Grant, tokens: Tokens, fetch: Guarded, *, server: str, clock: Clock) -> Tokens | None:
    """The tokens that follow on these; None where there is no refresh token. Raises ConnectError.

    What the reply leaves out stays as it was: the scope, and a refresh token that is not rotated.
    """
    if tokens.refresh is None:
        return None
    client, now = grant.registration, clock.now()
    if client.expires_at is not None and now >= client.expires_at:
        message = f"Server {server!r}: its authorization server knows us no longer: the registration expired."
        raise TokenError(message, code="invalid_client", server=server, retryable=False)
    form = {"grant_type": "refresh_token", "refresh_token": tokens.refresh.reveal()}
    if grant.resource is not None:
        form["resource"] = grant.resource
    form, headers, hidden = credentials(client).apply(form, now=now)
    url = grant.token_endpoint
    body = urlencode(form | {"client_id": client.client_id}).encode()
    reply = await fetch("POST", url, FORM | headers, body, what="the token endpoint")
    fresh = read_tokens(
        reply, url=url, server=server, now=now, secrets=[tokens.refresh, tokens.access, *hidden]
    )
    return msgspec.structs.replace(
        fresh, refresh=fresh.refresh or tokens.refresh, scope=fresh.scope or tokens.scope
    )


def credentials(client: Registration) -> Credentials:
    """How this client shows who it is. A method that is not known here sends no secret."""
    known = client.method in _METHODS
    method = cast("Method", client.method) if known else "none"
    return Credentials(client_id=client.client_id, secret=client.client_secret, method=method)
