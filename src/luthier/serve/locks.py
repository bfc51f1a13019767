"""How a request shows whose it is: a bearer token, and for triggers a password or a signature over the body.

A lock gives the caller or a refusal, and nothing else comes out of it. Every secret is compared, and each
in a time that tells nothing about it.
"""

from __future__ import annotations

import base64
import binascii
import hmac
from hashlib import sha256
from typing import TYPE_CHECKING, Protocol

import msgspec

from luthier.serve.caller import Caller, Proof, Refusal

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from luthier.clock import Clock
    from luthier.serve.bearing import Bearing
    from luthier.serve.callers import Callers
    from luthier.spec.http_trigger import Preset

    Headers = Sequence[tuple[bytes, bytes]]
    ReadBody = Callable[[], Awaitable[bytes]]

ANONYMOUS = Caller(id="", roles=frozenset())
_SIGNED = {
    "default": ("x-webhook-signature", "x-webhook-timestamp", "sha256=", "{at}."),
    "github": ("x-hub-signature-256", "", "sha256=", ""),
    "slack": ("x-slack-signature", "x-slack-request-timestamp", "v0=", "v0:{at}:"),
}
"""Of each preset: the headers of signature and time, what comes before the digits, and before the body."""

SIGNING_HEADERS = frozenset(name for row in _SIGNED.values() for name in row[:2] if name)


class Lock(Protocol):
    """What stands before an address."""

    async def admit(self, headers: Headers, body: ReadBody) -> Caller | Refusal:
        """Whose request it is, or why it goes no further."""
        ...


class Open:
    """No lock: everybody is let in, as the caller that it names."""

    def __init__(self, caller: Caller = ANONYMOUS) -> None:
        self._caller = caller

    async def admit(self, headers: Headers, body: ReadBody) -> Caller | Refusal:  # noqa: ARG002  (as the port has it)
        return self._caller


class Tokens:
    """Bearer tokens: those that the project knows, and those of its issuer.

    `own` are those of one address; who comes with one of the project's must be one of `clients` (None: all).
    """

    def __init__(
        self,
        callers: Callers,
        bearing: Bearing | None = None,
        *,
        own: Callers | None = None,
        clients: tuple[str, ...] | None = None,
    ) -> None:
        self._callers = callers
        self._bearing = bearing
        self._own = own
        self._clients = clients

    async def admit(self, headers: Headers, body: ReadBody) -> Caller | Refusal:  # noqa: ARG002  (as the port has it)
        token = credentials(headers, "bearer")
        if token is None:
            return Refusal(401, "Missing or invalid Authorization header", "no bearer token")
        own = self._own.caller(token) if self._own else None
        if own is not None:
            return own
        found = await self._known(token)
        if isinstance(found, Caller) and self._clients is not None and found.id not in self._clients:
            return Refusal(403, "This is not for this client.", f"{found.id} is none of its clients")
        return found

    async def _known(self, token: str) -> Caller | Refusal:
        found = self._callers.caller(token)
        if found is not None:
            return found
        if self._bearing is not None and token.count(".") == 2:  # noqa: PLR2004  (header, claims, signature)
            return await self._bearing.caller(token)
        return Refusal(401, "Invalid bearer token", "a token of nobody")


class Optional:
    """Who brings no credentials is let in as nobody; those that are brought must hold."""

    def __init__(self, lock: Lock) -> None:
        self._lock = lock

    async def admit(self, headers: Headers, body: ReadBody) -> Caller | Refusal:
        if all_of(headers, "authorization"):
            return await self._lock.admit(headers, body)
        return ANONYMOUS


class Basic:
    """`user:password`, as the oldest scheme has it."""

    def __init__(self, secrets: tuple[str, ...], caller: Caller) -> None:
        self._secrets = tuple(secret.encode() for secret in secrets)
        self._caller = caller

    async def admit(self, headers: Headers, body: ReadBody) -> Caller | Refusal:  # noqa: ARG002  (as the port has it)
        try:
            given = base64.b64decode(credentials(headers, "basic") or "", validate=True)
        except (binascii.Error, ValueError):
            given = b""
        if _is_one_of(given, self._secrets):
            return self._caller
        return Refusal(401, "Invalid credentials", "no such name and password")


class Signature:
    """An HMAC over the body, and over the time where the preset has one; then it is good once.

    `scope` keeps apart what was signed with one secret for several addresses.
    """

    def __init__(
        self,
        secrets: tuple[str, ...],
        caller: Caller,
        clock: Clock,
        *,
        preset: Preset,
        tolerance: float,
        scope: str = "",
    ) -> None:
        self._secrets = tuple(secret.encode() for secret in secrets)
        self._caller = caller
        self._clock = clock
        self._name, self._time, self._prefix, self._before = _SIGNED[preset]
        self._tolerance = tolerance
        self._scope = scope

    async def admit(self, headers: Headers, body: ReadBody) -> Caller | Refusal:
        given, at = only(headers, self._name) or "", only(headers, self._time) if self._time else ""
        if at is None or (self._time and not self._is_now(at)):
            return Refusal(401, "Invalid signature", f"its time is {at!r}")
        message = self._before.format(at=at).encode() + await body()
        digits = given.removeprefix(self._prefix).encode()
        made = [hmac.new(secret, message, sha256).hexdigest().encode() for secret in self._secrets]
        if not _is_one_of(digits, made):
            return Refusal(401, "Invalid signature", "it is another one")
        if not self._time:
            return self._caller
        key = sha256(f"{self._scope} ".encode() + digits).hexdigest()
        return msgspec.structs.replace(self._caller, proof=Proof(key, int(at) + self._tolerance))

    def _is_now(self, at: str) -> bool:
        return at.isdecimal() and len(at) < 16 and abs(self._clock.now() - int(at)) <= self._tolerance  # noqa: PLR2004


def _is_one_of(given: bytes, secrets: Sequence[bytes]) -> bool:
    found = False
    for secret in secrets:
        found = hmac.compare_digest(secret, given) or found
    return found


def all_of(headers: Headers, name: str) -> list[str]:
    """Every value of a header."""
    wanted = name.encode()
    return [value.decode("latin-1") for key, value in headers if key.lower() == wanted]


def only(headers: Headers, name: str) -> str | None:
    """The value of a header that stands there once."""
    found = all_of(headers, name)
    return found[0] if len(found) == 1 else None


def credentials(headers: Headers, scheme: str) -> str | None:
    """What the one Authorization header holds after its scheme."""
    word, _, rest = (only(headers, "authorization") or "").partition(" ")
    return rest.strip() if word.lower() == scheme else None
