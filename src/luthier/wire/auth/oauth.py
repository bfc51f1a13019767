"""Tokens that a person's login gave: used, renewed and given up. What needs the person is done elsewhere."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Protocol

import msgspec

from luthier.errors import ConnectError, LoginNeededError
from luthier.redaction import logger
from luthier.wire.auth.account import Account, forget
from luthier.wire.auth.bearer import bearer
from luthier.wire.auth.challenge import Challenge, read_challenge, union
from luthier.wire.auth.healed import Healed
from luthier.wire.auth.renewal import renew
from luthier.wire.auth.replies import TokenError
from luthier.wire.auth.single import Single

if TYPE_CHECKING:
    from collections.abc import Mapping

    from luthier.clock import Clock
    from luthier.secrets import Secret
    from luthier.wire.auth.fetch import Guarded
    from luthier.wire.auth.tokens import Grant, Tokens, TokenStore
    from luthier.wire.http.authorizer import OutgoingHttp

_log = logger("luthier.wire.auth")

_UNAUTHORIZED, _FORBIDDEN = 401, 403
_DEAD = frozenset({"invalid_grant", "invalid_client", "unauthorized_client"})


class Dance(Protocol):
    """Lets a person log in. `before` is what is kept of an earlier login."""

    async def __call__(self, status: int, challenge: Challenge, before: Grant | None) -> Grant:
        """Raises ConnectError where it comes to nothing."""
        ...


class LoginTokens:
    """An Authorizer. With no `dance` (headless) it never asks a person, and says what to run instead.

    Renewals are made one at a time, for all calls of this process and, by the store's lock, of all others.
    """

    def __init__(
        self,
        account: Account,
        fetch: Guarded,
        clock: Clock,
        store: TokenStore,
        *,
        dance: Dance | None = None,
    ) -> None:
        self._account = account
        self._fetch = fetch
        self._clock = clock
        self._store = store
        self._dance = dance
        self._tokens: Tokens | None = None
        self._asked: frozenset[str] = frozenset()  # scopes that a login was made for already
        self._renewing: Single[Tokens] = Single()
        self._dancing = store.pool.of(account.key).login  # one for all connections of this process
        self._healed = Healed()

    async def headers(self, _request: OutgoingHttp) -> dict[str, str]:
        tokens = self._tokens or await self._stored()
        if tokens is None:
            if self._dance is None:
                raise self._needed("nobody is logged in")
            return {}  # the server's answer to this begins the login
        if tokens.refresh is not None and tokens.is_stale(self._clock.now()):
            tokens = await self._renewing.run(partial(self._renewed, None))
        return bearer(tokens.access)

    async def challenged(self, status: int, headers: Mapping[str, str], sent: Mapping[str, str]) -> bool:
        challenge = read_challenge(headers.get("WWW-Authenticate") or headers.get("www-authenticate") or "")
        tokens = self._tokens
        if tokens is not None and not bearer(tokens.access).items() <= sent.items():
            return True  # another call has seen to it meanwhile
        if status == _FORBIDDEN:
            return challenge.wants_scope and await self._widened(challenge, tokens)
        if status != _UNAUTHORIZED:
            return False
        if tokens is None:
            await self._logged_in(status, challenge)
            return True
        now = self._clock.monotonic()
        if self._healed.by(tokens.access, now):
            return False  # what the server was given afresh does not please it either
        try:
            fresh = await self._renewing.run(partial(self._renewed, tokens.access))
        except LoginNeededError:
            if self._dance is None:
                raise
            fresh = await self._logged_in(status, challenge)
        self._healed.note(fresh.access, now)
        return True

    def signing(self) -> None:
        return None

    async def _stored(self) -> Tokens | None:
        grant = await self._load()
        self._tokens = grant.tokens if grant else None
        return self._tokens

    async def _load(self) -> Grant | None:
        try:
            return await self._store.load(self._account.key)
        except OSError as error:
            raise self._failed(f"the file of tokens: {error.strerror}", heals=False) from error

    async def _renewed(self, refused: Secret | None) -> Tokens:
        """New tokens: those that somebody else has got meanwhile, or else by the refresh token."""
        store, account = self._store, self._account
        try:
            async with store.hold(account.key):
                grant = await store.load(account.key)
                if grant is None or grant.tokens is None:
                    raise self._needed("the login has ended")
                self._tokens = await self._exchanged(grant, grant.tokens, refused)
                return self._tokens
        except LoginNeededError:
            self._tokens = None  # so that the next call looks whether a person has logged in again
            raise
        except TimeoutError:
            raise self._failed("another process has been renewing it for too long", heals=True) from None
        except OSError as error:
            raise self._failed(f"the file of tokens: {error.strerror}", heals=False) from error

    async def _exchanged(self, grant: Grant, tokens: Tokens, refused: Secret | None) -> Tokens:
        now = self._clock.now()
        if tokens.access != refused and not (tokens.refresh is not None and tokens.is_stale(now)):
            return tokens
        try:
            fresh = await renew(grant, tokens, self._fetch, server=self._account.server, clock=self._clock)
        except TokenError as error:
            if error.code in _DEAD:
                await forget(self._store, self._account, grant)
                raise self._needed("the login has ended or was revoked") from error
            if error.retryable and refused is None and not tokens.is_expired(now):
                return tokens  # it is only about to expire
            raise
        if fresh is None:
            await forget(self._store, self._account, grant)
            raise self._needed("the token is refused and cannot be renewed")
        await self._keep(msgspec.structs.replace(grant, tokens=fresh))
        return fresh

    async def _widened(self, challenge: Challenge, tokens: Tokens | None) -> bool:
        """Log in again for a scope that is missing, if that was not tried before."""
        missing = frozenset(challenge.scope.split())
        stored = await self._stored()
        if stored is not None and tokens is not None and stored.access != tokens.access:
            return True
        granted = frozenset((tokens.scope or "").split()) if tokens else frozenset()
        if missing <= granted | self._asked:
            return False
        if self._dance is None:
            grant = await self._load()
            if grant is not None:
                await self._keep(msgspec.structs.replace(grant, wanted=union(grant.wanted, challenge.scope)))
            raise self._needed(f"the login does not reach far enough: {union(challenge.scope)!r} is missing")
        self._asked |= missing
        await self._logged_in(_FORBIDDEN, challenge)
        return True

    async def _logged_in(self, status: int, challenge: Challenge) -> Tokens:
        self._tokens = await self._dancing.run(partial(self._danced, status, challenge))
        return self._tokens

    async def _danced(self, status: int, challenge: Challenge) -> Tokens:
        if self._dance is None:
            raise self._needed("nobody is logged in")
        grant = await self._dance(status, challenge, await self._load())
        await self._keep(grant)
        if grant.tokens is None:
            raise self._needed("the login gave no token")
        return grant.tokens

    async def _keep(self, grant: Grant) -> None:
        try:
            await self._store.save(self._account.key, grant)
        except OSError as error:  # they are good for as long as this process lives
            _log.warning("tokens of server %s cannot be kept: %s", self._account.server, error.strerror)

    def _failed(self, why: str, *, heals: bool) -> ConnectError:
        server = self._account.server
        message = f"Server {server!r}: there is no token to send: {why}."
        return ConnectError(message, server=server, phase="login", retryable=heals)

    def _needed(self, why: str) -> LoginNeededError:
        server = self._account.server
        return LoginNeededError(f"Server {server!r} needs a login: {why}.", server=server)
