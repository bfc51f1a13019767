"""Makes the Authorizer of a server from what its entry says, references expanded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

from luthier.clock import Clock
from luthier.errors import ConnectError
from luthier.secrets import Secret
from luthier.web import UrlRules
from luthier.wire.auth.account import Account
from luthier.wire.auth.adapter import ClientFetch
from luthier.wire.auth.authorizers import Bearer, Open, Signed
from luthier.wire.auth.client_credentials import Client, ClientCredentials
from luthier.wire.auth.fetch import Guarded
from luthier.wire.auth.guard import UrlGuard
from luthier.wire.auth.identity import Identity
from luthier.wire.auth.oauth import LoginTokens
from luthier.wire.http.client import HttpClient
from luthier.wire.http.target import TlsFiles

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from luthier.spec.project import Auth
    from luthier.wire.auth.interactive import Interactive
    from luthier.wire.auth.tokens import TokenStore
    from luthier.wire.http.authorizer import Authorizer

    Show = Callable[[str], Awaitable[None]]


def make_authorizer(  # noqa: PLR0913  (an entry says all that, and one caller reads it)
    auth: Auth,
    *,
    server: str,
    url: str,
    secret: str | None,
    client: HttpClient,
    tokens: TokenStore,
    clock: Clock,
    rules: UrlRules,
    interactive_allowed: bool = False,
    show: Show | None = None,
    tls: TlsFiles | None = None,
    proxy: str | None = None,
) -> Authorizer:
    """The Authorizer for an entry whose references are expanded; nothing is sent yet.

    `secret` signs each request. A person is asked only with `interactive_allowed`, and then `show` gets the
    address to log in at (None: the machine's browser is opened). Raises ConnectError for what cannot work.
    """
    means = Means(server, url, client, clock, rules, tls or TlsFiles(), proxy)
    inner: Authorizer
    if auth.type == "none":
        inner = Open()
    elif auth.type == "bearer":
        inner = Bearer(_secret(auth.token), server=server)
    elif auth.interactive:
        shown = (show or open_browser) if interactive_allowed else None
        account = account_of(auth, server=server, url=url)
        dance = means.dance(account, shown) if shown else None
        inner = LoginTokens(account, means.fetch(account.issuer)[0], clock, tokens, dance=dance)
    else:
        inner = means.client_credentials(auth, tokens)
    if secret is None:
        return inner
    if not secret:
        raise _unusable(server, "the secret that signs requests is empty", "Check `secret` of its entry.")
    return Signed(inner, Secret(secret), clock)


@dataclass(frozen=True)
class Means:
    """What the credentials of one server are got with."""

    server: str
    url: str
    client: HttpClient
    clock: Clock
    rules: UrlRules
    tls: TlsFiles
    proxy: str | None

    def fetch(self, *own: str | None) -> tuple[Guarded, UrlGuard]:
        """The way past the guard; `own` are the addresses of the entry. Raises ConnectError."""
        named = [self.url, *(address for address in own if address)]
        try:
            guard = UrlGuard(*named, server=self.server, rules=self.rules)
        except ValueError:
            fault = "an address in its entry is not an http or https URL"
            raise _unusable(self.server, fault, "Check `url` and `auth` of its entry.") from None
        send = ClientFetch(self.client, guard, self.clock, server=self.server, tls=self.tls, proxy=self.proxy)
        return Guarded(send, guard), guard

    def dance(self, account: Account, show: Show) -> Interactive:
        from luthier.wire.auth.interactive import Interactive

        fetch, guard = self.fetch(account.issuer)
        return Interactive(account, fetch, guard, self.clock, show)

    def client_credentials(self, auth: Auth, tokens: TokenStore) -> ClientCredentials:
        if not auth.client_id or not auth.client_secret:
            hint = "Check client_id and client_secret of its entry."
            raise _unusable(self.server, "the client id or the client secret is empty", hint)
        if not auth.token_url and not auth.issuer:
            hint = "Write auth.token_url or auth.issuer."
            raise _unusable(self.server, "nothing says who may see the client secret", hint)
        client = Client(
            server=self.server,
            client_id=auth.client_id,
            secret=Secret(auth.client_secret),
            resource=resource_of(self.url),
            scope=auth.scope or None,
            token_url=auth.token_url or None,
            issuer=auth.issuer or None,
            identity=self._identity(auth),
        )
        fetch, _ = self.fetch(client.token_url, client.issuer, auth.idp_token_url)
        return ClientCredentials(client, fetch, self.clock, tokens.pool)

    def _identity(self, auth: Auth) -> Identity | None:
        if auth.id_token is None:
            return None
        if not auth.id_token or not auth.idp_token_url or not auth.issuer:
            hint = "Check id_token, idp_token_url and issuer of its entry."
            raise _unusable(self.server, "one of id token, identity provider and issuer is missing", hint)
        return Identity(
            id_token=Secret(auth.id_token),
            token_url=auth.idp_token_url,
            client_id=auth.idp_client_id or None,
        )


def account_of(auth: Auth, *, server: str, url: str) -> Account:
    return Account(
        server=server,
        url=url,
        client_id=auth.client_id or None,
        secret=_secret(auth.client_secret) or None,
        scope=auth.scope or None,
        issuer=auth.issuer or None,
    )


def resource_of(url: str) -> str:
    """The name of a server as the resource that tokens are for (RFC 8707): its URL without a fragment."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.lower(), parts.path, parts.query, ""))


async def open_browser(address: str) -> None:
    import asyncio
    import webbrowser

    await asyncio.to_thread(webbrowser.open, address)


def _secret(text: str | None) -> Secret | None:
    return None if text is None else Secret(text)


def _unusable(server: str, fault: str, hint: str) -> ConnectError:
    return ConnectError(
        f"Server {server!r}: {fault}, so nothing is sent.",
        server=server,
        phase="login",
        retryable=False,
        hint=hint,
    )
