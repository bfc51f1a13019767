"""The port through which requests get their credentials, and the request as a signer sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping


class OutgoingHttp(msgspec.Struct, frozen=True):
    """A request that is about to be sent. `body` is exactly what will go out."""

    method: str
    url: str
    body: bytes = b""


class Authorizer(Protocol):
    """Credentials for the requests to one server. Raises WireErrors, which fail that request only."""

    async def headers(self, request: OutgoingHttp) -> Mapping[str, str]:
        """The headers to add to this request. May wait for a token."""

    async def challenged(self, status: int, headers: Mapping[str, str], sent: Mapping[str, str]) -> bool:
        """The server answered 401 or 403 with these headers: True asks once more."""

    def signing(self) -> Authorizer | None:
        """What is left of it where a request brings credentials of its own: a signature, or nothing."""
