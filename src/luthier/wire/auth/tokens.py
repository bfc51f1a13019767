"""Tokens, what must be kept with them to renew them, and the port of whatever keeps them."""

from __future__ import annotations

import asyncio
import hashlib
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Protocol

import msgspec

from luthier.secrets import Secret
from luthier.wire.auth.pool import Pool

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from contextlib import AbstractAsyncContextManager

_SKEW = 30.0  # a token is renewed so many seconds before it expires, or a tenth of its life if that is less


class Tokens(msgspec.Struct, frozen=True, kw_only=True):
    """What a token endpoint gave. Times are Unix seconds; without them a token serves until it is refused."""

    access: Secret
    refresh: Secret | None = None
    scope: str | None = None
    expires_at: float | None = None
    renew_at: float | None = None

    def is_stale(self, now: float) -> bool:
        """Whether it should be renewed before it is used."""
        return self.renew_at is not None and now >= self.renew_at

    def is_expired(self, now: float) -> bool:
        return self.expires_at is not None and now >= self.expires_at


def life(seconds: float, now: float) -> tuple[float, float]:
    """When a token that lives so long expires, and when it should be renewed."""
    return now + seconds, now + seconds - min(_SKEW, seconds / 10)


class Registration(msgspec.Struct, frozen=True, kw_only=True):
    """Who we are at one authorization server, and nowhere else. `method`: as RFC 7591 names it."""

    client_id: str
    client_secret: Secret | None = None
    method: str | None = None
    expires_at: float | None = None
    redirect_uri: str = ""


class Grant(msgspec.Struct, frozen=True, kw_only=True):
    """All that outlives a process of one login.

    `tokens` is None when they are dead; `scope` was granted, and `wanted` was missed since.
    """

    issuer: str
    token_endpoint: str
    registration: Registration
    resource: str | None = None
    tokens: Tokens | None = None
    scope: str | None = None
    wanted: str | None = None


def key(*facts: str | None) -> str:
    """One name for all the facts that a token depends on; it tells none of them."""
    return hashlib.sha256(msgspec.json.encode(facts)).hexdigest()[:32]


class TokenStore(Protocol):
    """Keeps grants by key. Its `pool` is what those who share it in this process hold in memory."""

    @property
    def pool(self) -> Pool: ...

    async def load(self, key: str) -> Grant | None:
        """The grant as it is now, whoever wrote it."""
        ...

    async def save(self, key: str, grant: Grant) -> None:
        """Keep it in place of the one before. Raises OSError where that cannot be done."""
        ...

    def hold(self, key: str) -> AbstractAsyncContextManager[None]:
        """Only one at a time, of all who share the store, renews the tokens of a key. Raises TimeoutError."""
        ...


class MemoryTokens:
    """Keeps grants as long as it lives."""

    def __init__(self) -> None:
        self.pool = Pool()
        self._grants: dict[str, Grant] = {}
        self._locks: dict[str, asyncio.Lock] = {}

    async def load(self, key: str) -> Grant | None:
        return self._grants.get(key)

    async def save(self, key: str, grant: Grant) -> None:
        self._grants[key] = grant

    @asynccontextmanager
    async def hold(self, key: str) -> AsyncIterator[None]:
        async with self._locks.setdefault(key, asyncio.Lock()):
            yield
