"""What token endpoints and metadata are asked through, always past the guard."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from luthier.wire.auth.guard import UrlGuard


class Fetched(msgspec.Struct, frozen=True):
    """A whole answer. Header names are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> dict[str, Any]:
        """The body as a JSON object; empty where it is none."""
        try:
            return msgspec.json.decode(self.body, type=dict[str, Any])
        except (msgspec.DecodeError, RecursionError):
            return {}

    def __repr__(self) -> str:
        return f"Fetched({self.status}, {len(self.body)} bytes)"


class Fetch(Protocol):
    """Sends one request, bounded in time and size, and follows no redirect to another origin."""

    async def __call__(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> Fetched:
        """Raises ConnectError where no answer comes."""
        ...


class Guarded:
    """A Fetch that asks the guard first. `what` names the URL in errors."""

    def __init__(self, fetch: Fetch, guard: UrlGuard) -> None:
        self._fetch = fetch
        self._guard = guard

    async def __call__(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes = b"", *, what: str
    ) -> Fetched:
        self._guard.check(url, what=what)
        return await self._fetch(method, url, headers, body)
