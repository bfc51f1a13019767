"""The simple credentials: a bearer token of the entry, none at all, and a signature besides either."""

from __future__ import annotations

from typing import TYPE_CHECKING

from luthier.wire.auth.bearer import bearer, checked
from luthier.wire.auth.hmac import signature

if TYPE_CHECKING:
    from collections.abc import Mapping

    from luthier.clock import Clock
    from luthier.secrets import Secret
    from luthier.wire.http.authorizer import Authorizer, OutgoingHttp


class Open:
    """No credentials."""

    async def headers(self, _request: OutgoingHttp) -> dict[str, str]:
        return {}

    async def challenged(self, _status: int, _headers: Mapping[str, str], _sent: Mapping[str, str]) -> bool:
        return False

    def signing(self) -> None:
        return None


class Bearer:
    """The token that the entry names. An empty or unusable one sends nothing: ConnectError."""

    def __init__(self, token: Secret | None, *, server: str) -> None:
        self._token = token
        self._server = server

    async def headers(self, _request: OutgoingHttp) -> dict[str, str]:
        return bearer(checked(self._token, server=self._server))

    async def challenged(self, _status: int, _headers: Mapping[str, str], _sent: Mapping[str, str]) -> bool:
        return False

    def signing(self) -> None:
        return None


class Signed:
    """Signs each request besides what another Authorizer adds to it."""

    def __init__(self, inner: Authorizer, secret: Secret, clock: Clock) -> None:
        self._inner = inner
        self._secret = secret
        self._clock = clock

    async def headers(self, request: OutgoingHttp) -> dict[str, str]:
        own = await self._inner.headers(request)  # may wait, so the time is read behind it
        return {**own, **signature(self._secret, request.body, at=self._clock.now())}

    async def challenged(self, status: int, headers: Mapping[str, str], sent: Mapping[str, str]) -> bool:
        return await self._inner.challenged(status, headers, sent)

    def signing(self) -> Signed:
        return Signed(Open(), self._secret, self._clock)
