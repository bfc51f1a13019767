"""The public keys of an issuer: fetched past the guard, kept for a while, and asked for again within bounds.

A key that is not known may be a new one, or an invention of whoever sends it; so a look is taken at most once
in `PAUSE`. Keys that are withdrawn count until the next look after `FRESH`; where the issuer cannot be
reached, those that are there count until `STALE`, and then nobody comes in.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec

from luthier.errors import ConnectError, LuthierError
from luthier.redaction import logger
from luthier.web import UrlRules
from luthier.wire.auth.adapter import ClientFetch
from luthier.wire.auth.fetch import Guarded
from luthier.wire.auth.guard import UrlGuard
from luthier.wire.auth.metadata import places
from luthier.wire.http.target import TlsFiles

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from luthier.clock import Clock
    from luthier.spec import Project
    from luthier.spec.issuer import Issuer

PAUSE = 30.0
FRESH = 600.0
STALE = 3600.0

_MOST = 64
_OK = 200
_KINDS = {"RS": "RSA", "PS": "RSA", "ES": "EC", "Ed": "OKP"}
_log = logger("luthier.serve")


class Key(msgspec.Struct, frozen=True):
    """A key as the issuer writes it."""

    id: str | None
    data: dict[str, Any]

    def fits(self, id: str | None, algorithm: str) -> bool:
        """Whether a token whose header says this may be signed with it."""
        said, kind = self.data.get("alg"), _KINDS.get(algorithm[:2])
        return self.id == id and self.data["kty"] == kind and (said is None or said == algorithm)


class Jwks:
    """The keys of one issuer. The first look is taken when the first token comes."""

    def __init__(self, issuer: Issuer, fetch: Guarded, clock: Clock) -> None:
        self._issuer = issuer
        self._fetch = fetch
        self._clock = clock
        self._keys: tuple[Key, ...] = ()
        self._read_at: float | None = None
        self._tried_at: float | None = None
        self._looking = asyncio.Lock()

    async def find(self, id: str | None, algorithm: str) -> Key | None:
        """The key for a token with that header. Raises ConnectError while the issuer's keys are unknown."""
        found = self._find(id, algorithm)
        if found is None or self._age() > FRESH:
            await self._look(id, algorithm)
            found = self._find(id, algorithm)
        if self._age() > STALE:
            raise ConnectError(f"The keys of {self._issuer.issuer} cannot be had.", server="", phase="login")
        return found

    def _find(self, id: str | None, algorithm: str) -> Key | None:
        fitting = [key for key in self._keys if key.fits(id, algorithm)]
        return fitting[0] if len(fitting) == 1 else None  # two of one name: nobody can say which is meant

    def _age(self) -> float:
        return float("inf") if self._read_at is None else self._clock.monotonic() - self._read_at

    async def _look(self, id: str | None, algorithm: str) -> None:
        """Take a look, unless one has just been taken; whoever comes meanwhile waits for that one."""
        async with self._looking:
            now = self._clock.monotonic()
            if self._find(id, algorithm) is not None and self._age() <= FRESH:
                return
            if self._tried_at is not None and now - self._tried_at < PAUSE:
                return
            self._tried_at = now
            try:
                self._keys = await self._read()
            except LuthierError as error:
                _log.warning("the keys of %s cannot be had: %s", self._issuer.issuer, error)
            else:
                self._read_at = self._clock.monotonic()

    async def _read(self) -> tuple[Key, ...]:
        url = self._issuer.jwks_url or await self._published()
        reply = await self._fetch("GET", url, {"Accept": "application/json"}, what="the keys of the issuer")
        listed = reply.json().get("keys") if reply.status == _OK else None
        if not isinstance(listed, list):
            raise self._unusable(f"{url} answers {reply.status} and no keys")
        return tuple(key for data in listed[:_MOST] if (key := _key(data)) is not None)

    async def _published(self) -> str:
        """Where the issuer's own metadata says that its keys are."""
        issuer = self._issuer.issuer
        for url in places(issuer):
            reply = await self._fetch(
                "GET", url, {"Accept": "application/json"}, what="the metadata of the issuer"
            )
            about = reply.json() if reply.status == _OK else {}
            if not about:
                continue
            if about.get("issuer") != issuer:
                raise self._unusable(f"{url} is that of another issuer")
            if isinstance(found := about.get("jwks_uri"), str):
                return found
        raise self._unusable("it publishes no metadata that names its keys")

    def _unusable(self, why: str) -> ConnectError:
        return ConnectError(f"{self._issuer.issuer}: {why}.", server="", phase="login")


def keys_of(
    issuer: Issuer, project: Project, environ: Mapping[str, str], clock: Clock
) -> tuple[Jwks, Callable[[], Awaitable[None]]]:
    """The keys of a project's issuer, and what closes the connections that they come by."""
    from luthier.wire.http import HttpClient

    client = HttpClient(environ)
    named = [issuer.issuer, *([issuer.jwks_url] if issuer.jwks_url else [])]
    production = project.environment == "production"
    rules = UrlRules.of(*named, production=production, allow_private=issuer.allow_private)
    guard = UrlGuard(*named, server="serve.oauth", rules=rules)
    send = ClientFetch(client, guard, clock, server="serve.oauth", tls=TlsFiles(), proxy=None)
    return Jwks(issuer, Guarded(send, guard), clock), client.close


def _key(data: Any) -> Key | None:
    """A public key that signs; None for all else."""
    if (
        not isinstance(data, dict)
        or data.get("kty") not in _KINDS.values()
        or data.get("use", "sig") != "sig"
    ):
        return None
    uses, id = data.get("key_ops"), data.get("kid")
    if isinstance(uses, list) and "verify" not in uses:
        return None
    return Key(id if isinstance(id, str) else None, data)
