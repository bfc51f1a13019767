"""OAuth client credentials: tokens for a program, got by its own name and secret."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlencode

import msgspec

from luthier.errors import ConnectError
from luthier.secrets import Secret
from luthier.wire.auth.bearer import bearer
from luthier.wire.auth.client_auth import Credentials, choose
from luthier.wire.auth.identity import FORM, GRANT, Identity, vouched
from luthier.wire.auth.metadata import AuthorizationServer, discover, refused
from luthier.wire.auth.replies import read_tokens
from luthier.wire.auth.tokens import key

if TYPE_CHECKING:
    from collections.abc import Mapping

    from luthier.clock import Clock
    from luthier.wire.auth.fetch import Guarded
    from luthier.wire.auth.pool import Pool
    from luthier.wire.auth.tokens import Tokens
    from luthier.wire.http.authorizer import OutgoingHttp

_UNAUTHORIZED = 401


class Client(msgspec.Struct, frozen=True, kw_only=True):
    """Who we are, where that is known, and for what. `token_url` or `issuer` is given, or both."""

    server: str
    client_id: str
    secret: Secret | None
    resource: str
    scope: str | None = None
    token_url: str | None = None
    issuer: str | None = None
    identity: Identity | None = None  # whom the client speaks for; else for itself

    @property
    def key(self) -> str:
        """Servers whose tokens have the same key share them."""
        secret = self.secret.reveal() if self.secret else None
        whom = self.identity.id_token.reveal() if self.identity else None
        return key(self.issuer or self.token_url, self.client_id, secret, self.resource, self.scope, whom)


class ClientCredentials:
    """An Authorizer. One token request serves any number of waiting calls."""

    def __init__(self, client: Client, fetch: Guarded, clock: Clock, pool: Pool) -> None:
        self._client = client
        self._fetch = fetch
        self._clock = clock
        self._kept = pool.of(client.key)
        self._known: AuthorizationServer | None = None

    async def headers(self, _request: OutgoingHttp) -> dict[str, str]:
        tokens = self._kept.tokens
        if tokens is None or tokens.is_stale(self._clock.now()):
            tokens = await self._kept.asking.run(self._renewed_early)
        return bearer(tokens.access)

    async def challenged(self, status: int, _headers: Mapping[str, str], sent: Mapping[str, str]) -> bool:
        """A refused token is renewed once; what another scope would be is for the entry to say."""
        if status != _UNAUTHORIZED:
            return False
        kept, now = self._kept, self._clock.monotonic()
        if kept.tokens is not None and bearer(kept.tokens.access).items() <= sent.items():
            if kept.healed.by(kept.tokens.access, now):
                return False  # what the server was given afresh does not please it either
            tokens = await kept.asking.run(self._renewed)
            kept.healed.note(tokens.access, now)
        return True

    def signing(self) -> None:
        return None

    async def _renewed_early(self) -> Tokens:
        """New tokens; those before still do while they hold, where the trouble with new ones may pass."""
        before = self._kept.tokens
        try:
            return await self._renewed()
        except ConnectError as error:
            if before is None or not error.retryable or before.is_expired(self._clock.now()):
                raise
            return before

    async def _renewed(self) -> Tokens:
        client = self._client
        url, credentials = await self._endpoint()
        form = {"grant_type": "client_credentials", "resource": client.resource}
        if client.scope:
            form["scope"] = client.scope
        if client.identity is not None:
            proof = await vouched(
                client.identity,
                self._fetch,
                audience=client.issuer or url,
                resource=client.resource,
                scope=client.scope,
                server=client.server,
            )
            form |= {"grant_type": GRANT, "assertion": proof.reveal()}
        try:
            form, headers, hidden = credentials.apply(form, now=self._clock.now())
        except ValueError as error:
            raise refused(client.server, str(error)) from None
        body = urlencode(form).encode()
        reply = await self._fetch("POST", url, FORM | headers, body, what="the token endpoint")
        now, hidden = self._clock.now(), [*hidden, Secret(form.get("assertion", ""))]
        tokens = read_tokens(reply, url=url, server=client.server, now=now, secrets=hidden)
        self._kept.tokens = tokens
        return tokens

    async def _endpoint(self) -> tuple[str, Credentials]:
        """Where to ask, and how to show who asks."""
        client = self._client
        known = self._known
        if known is None and client.issuer is not None:
            known = self._known = await discover(self._fetch, client.issuer, server=client.server)
        url = client.token_url or (known.token_endpoint if known else "")
        return url, Credentials(
            client_id=client.client_id,
            secret=client.secret,
            method=choose(client.secret, known.methods if known else None, server=client.server),
            audience=known.issuer if known else url,
            algorithms=known.algorithms if known else None,
        )
