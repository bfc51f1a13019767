"""The login of a person: authorization code with PKCE, led by the official SDK, sent by us.

The SDK's provider is a generator of requests. Each is looked at and sent past our guard; what a token
endpoint answers is read here, so that the SDK never holds a token and cannot log one.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import msgspec

from luthier.errors import ConnectError
from luthier.secrets import Secret
from luthier.text import one_line
from luthier.wire.auth.account import PATIENCE
from luthier.wire.auth.callback import Callback
from luthier.wire.auth.challenge import union
from luthier.wire.auth.client_auth import choose
from luthier.wire.auth.metadata import WELL_KNOWN, refused
from luthier.wire.auth.registration import read_registration
from luthier.wire.auth.replies import read_tokens
from luthier.wire.auth.tokens import Grant, Registration, Tokens

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    import httpx2
    from mcp.client.auth import OAuthClientProvider, TokenStorage
    from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthToken

    from luthier.clock import Clock
    from luthier.wire.auth.account import Account
    from luthier.wire.auth.challenge import Challenge
    from luthier.wire.auth.fetch import Fetched, Guarded
    from luthier.wire.auth.guard import UrlGuard

    Show = Callable[[str], Awaitable[None]]

_SENT = ("content-type", "authorization", "accept", "mcp-protocol-version")
_VERSION = "2025-11-25"
_OK, _FORBIDDEN = 200, 403
_PLACEHOLDER = {"access_token": "kept-elsewhere", "token_type": "Bearer"}


class Interactive:
    """Lets a person log in by a browser: `show` gets the address to open. A Dance for LoginTokens."""

    def __init__(
        self,
        account: Account,
        fetch: Guarded,
        guard: UrlGuard,
        clock: Clock,
        show: Show,
        *,
        patience: float = PATIENCE,
    ) -> None:
        self.account = account
        self.fetch = fetch
        self.guard = guard
        self.clock = clock
        self.show = show
        self.patience = patience

    async def __call__(self, status: int, challenge: Challenge, before: Grant | None) -> Grant:
        try:
            import mcp.client.auth  # noqa: F401  (asked for here, so that its lack is told as what it is)
        except ImportError:
            hint = 'Run: pip install "luthier[oauth]"'
            raise refused(self.account.server, "logging in needs the package mcp", hint=hint) from None
        # Who is registered with a port should come back at that port, if it is free.
        port = urlsplit(before.registration.redirect_uri).port if before else None
        async with Callback(self.clock, port=port or 0) as callback:
            return await _Flow(self, callback, before).run(status, challenge)


class _StoppedError(BaseException):
    """Leaves the SDK's generator past its `except Exception`, which would log what it catches."""

    def __init__(self, cause: ConnectError) -> None:
        super().__init__()
        self.cause = cause


class _Flow:
    """One login."""

    def __init__(self, login: Interactive, callback: Callback, before: Grant | None) -> None:
        self._login = login
        self._account = login.account
        self._server = login.account.server
        self._callback = callback
        self._before = before
        self._provider = self._made()
        self._issuer: str | None = None  # exactly as the metadata writes it
        self._state = ""
        self._endpoint = ""
        self._resource: str | None = None
        self._tokens: Tokens | None = None

    async def run(self, status: int, challenge: Challenge) -> Grant:
        import httpx2
        from mcp.client.auth import OAuthFlowError

        # Its errors are raised as well, and told by us.
        logging.getLogger("mcp.client.auth").addHandler(logging.NullHandler())
        request = httpx2.Request("POST", self._account.url, headers={"mcp-protocol-version": _VERSION})
        flow = self._provider.async_auth_flow(request)
        try:
            await anext(flow)
            answer = self._refusal(request, status, challenge)
            while (wanted := await flow.asend(answer)) is not request:
                answer = await self._answered(wanted)
        except _StoppedError as stopped:
            raise stopped.cause from None
        except (OAuthFlowError, ValueError, StopAsyncIteration) as error:
            raise refused(self._server, f"the login failed: {one_line(str(error)).rstrip('.')}") from None
        finally:
            await flow.aclose()
        return self._grant()

    # What the SDK is given

    def _made(self) -> OAuthClientProvider:
        from mcp.client.auth import OAuthClientProvider
        from mcp.shared.auth import OAuthClientMetadata

        metadata = OAuthClientMetadata.model_validate(
            {
                "client_name": "Luthier",
                "redirect_uris": [self._callback.address],
                "scope": self._account.scope,
            }
        )
        storage: TokenStorage = _Storage(self._known_client(), self._before)
        return OAuthClientProvider(
            self._account.url,
            metadata,
            storage,
            redirect_handler=self._redirected,
            callback_handler=self._returned,
            client_metadata_url=self._account.document,
        )

    def _known_client(self) -> OAuthClientInformationFull | None:
        """Who we are already: by the entry, or by an earlier registration that still holds."""
        from mcp.shared.auth import OAuthClientInformationFull

        account, before = self._account, self._before
        if account.registered:
            secret = account.secret.reveal() if account.secret else None
            issuer = account.issuer or (before.issuer if before else None)
            return OAuthClientInformationFull(
                client_id=account.client_id or "", client_secret=secret, issuer=issuer
            )
        if before is None or before.registration.redirect_uri != self._callback.address:
            return None
        client = before.registration
        if client.expires_at is not None and self._login.clock.now() >= client.expires_at:
            return None
        return OAuthClientInformationFull(
            client_id=client.client_id,
            client_secret=client.client_secret.reveal() if client.client_secret else None,
            token_endpoint_auth_method=client.method,
            issuer=before.issuer,
        )

    def _refusal(self, request: httpx2.Request, status: int, challenge: Challenge) -> httpx2.Response:
        """The server's 401 or 403 as it came, with the scopes that the entry or an earlier one asks for."""
        import httpx2

        if challenge.resource_metadata:
            self._login.guard.check(challenge.resource_metadata, what="the address of its metadata")
        missed = self._before.wanted if self._before else None
        facts = {
            "resource_metadata": challenge.resource_metadata,
            "scope": union(self._account.scope, missed, challenge.scope),
        }
        if missed or challenge.wants_scope:
            status, facts["error"] = _FORBIDDEN, "insufficient_scope"
        said = ", ".join(f'{name}="{value}"' for name, value in facts.items() if value and '"' not in value)
        return httpx2.Response(status, headers={"WWW-Authenticate": f"Bearer {said}"}, request=request)

    # What the SDK wants sent

    async def _answered(self, request: httpx2.Request) -> httpx2.Response:
        import httpx2

        url = str(request.url)
        headers = {name: request.headers[name] for name in _SENT if name in request.headers}
        body = request.read()
        if request.method == "GET":
            reply = await self._login.fetch("GET", url, headers, body, what="the address of its metadata")
            self._note_issuer(url, reply)
            return httpx2.Response(reply.status, content=reply.body, request=request)
        self._check_server()
        form = {name: values[0] for name, values in parse_qs(body.decode()).items()}
        if form.get("grant_type") == "authorization_code":
            return httpx2.Response(_OK, json=await self._redeemed(url, headers, body, form), request=request)
        if self._account.registered:
            raise refused(
                self._server,
                "it names another authorization server than the one that knows this client",
                hint="Check auth.issuer of its entry.",
            )
        reply = await self._login.fetch("POST", url, headers, body, what="the registration endpoint")
        client = read_registration(reply, url=url, server=self._server)
        return httpx2.Response(_OK, json=client, request=request)

    def _note_issuer(self, url: str, reply: Fetched) -> None:
        path = urlsplit(url).path
        if reply.status == _OK and any(name in path for name in WELL_KNOWN):
            named = reply.json().get("issuer")
            self._issuer = named if isinstance(named, str) else None

    def _check_server(self) -> None:
        """Whether this authorization server may be dealt with at all."""
        metadata, expected = self._provider.context.oauth_metadata, self._account.issuer
        if metadata is not None and "S256" not in (metadata.code_challenge_methods_supported or ()):
            raise refused(self._server, "its authorization server does not say that it checks PKCE (S256)")
        if expected is not None and self._issuer != expected:
            other = one_line(self._issuer or "none")
            raise refused(self._server, f"the issuer is {other!r}, and not the one that the entry names")

    async def _redeemed(
        self, url: str, headers: dict[str, str], body: bytes, form: dict[str, str]
    ) -> dict[str, str]:
        """Tokens for the code. The SDK is told only that there are some."""
        hidden = [Secret(form[name]) for name in ("code", "code_verifier", "client_secret") if name in form]
        hidden += (
            [Secret(headers["authorization"].removeprefix("Basic "))] if "authorization" in headers else []
        )
        headers = headers | {"accept": "application/json"}
        reply = await self._login.fetch("POST", url, headers, body, what="the token endpoint")
        now = self._login.clock.now()
        self._tokens = read_tokens(reply, url=url, server=self._server, now=now, secrets=hidden)
        self._endpoint, self._resource = url, form.get("resource")
        return _PLACEHOLDER

    # The person

    async def _redirected(self, address: str) -> None:
        try:
            self._check_server()
            self._login.guard.check(address, what="the address to log in at")
            self._choose_method()
        except ConnectError as error:
            raise _StoppedError(error) from None
        self._state = parse_qs(urlsplit(address).query)["state"][0]
        self._callback.expect(self._state)
        await self._login.show(address)

    def _choose_method(self) -> None:
        """How a client of the entry shows its secret, now that the server's metadata is there."""
        context, secret = self._provider.context, self._account.secret
        if self._account.registered and context.client_info is not None:
            metadata = context.oauth_metadata
            methods = metadata.token_endpoint_auth_methods_supported if metadata else None
            if metadata is not None and methods is None:
                methods = ["client_secret_basic"]
            context.client_info.token_endpoint_auth_method = choose(secret, methods, server=self._server)

    async def _returned(self) -> AuthorizationCodeResult:
        from mcp.shared.auth import AuthorizationCodeResult

        try:
            back = await self._callback.wait(self._login.patience)
        except TimeoutError:
            fault = f"nobody logged in within {self._login.patience:g} s"
            raise _StoppedError(refused(self._server, fault)) from None
        metadata = self._provider.context.oauth_metadata
        promised = metadata is not None and metadata.authorization_response_iss_parameter_supported
        if back.issuer != self._issuer if back.issuer is not None else promised:
            raise _StoppedError(refused(self._server, "the answer to the login is from another issuer"))
        if back.error or not back.code:
            reason = one_line(back.error, 64) or "no code came back"
            raise _StoppedError(refused(self._server, f"the login was refused: {reason}"))
        named = str(metadata.issuer) if metadata is not None and back.issuer is not None else None
        return AuthorizationCodeResult(code=back.code, state=self._state, iss=named)

    # What is kept

    def _grant(self) -> Grant:
        context = self._provider.context
        client = context.client_info
        if self._tokens is None or client is None:
            raise refused(self._server, "the login gave no token")
        scope = self._tokens.scope or context.client_metadata.scope
        return Grant(
            issuer=self._issuer or _base(self._account.url),
            token_endpoint=self._endpoint,
            registration=Registration(
                client_id=client.client_id,
                client_secret=Secret(client.client_secret) if client.client_secret else None,
                method=client.token_endpoint_auth_method,
                expires_at=client.client_secret_expires_at or None,
                redirect_uri=self._callback.address,
            ),
            resource=self._resource,
            tokens=msgspec.structs.replace(self._tokens, scope=scope),
            scope=scope,
        )


def _base(url: str) -> str:
    """The issuer of a server that names none: the server itself."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


class _Storage:
    """What the SDK may know of before: who we are and which scope was granted, but no token."""

    def __init__(self, client: OAuthClientInformationFull | None, before: Grant | None) -> None:
        self._client = client
        self._scope = before.scope if before else None

    async def get_tokens(self) -> OAuthToken | None:
        from mcp.shared.auth import OAuthToken

        return OAuthToken(access_token="kept-elsewhere", scope=self._scope)  # noqa: S106  (no token at all)

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """They are kept elsewhere."""

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self._client

    async def set_client_info(self, client_info: Any) -> None:
        """It is read off in the end."""
