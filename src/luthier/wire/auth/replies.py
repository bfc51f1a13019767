"""Reads what a token endpoint answers: tokens, or an error told without anything secret in it."""

from __future__ import annotations

import base64
import math
import re
from typing import TYPE_CHECKING
from urllib.parse import quote, quote_plus

from luthier.errors import ConnectError
from luthier.secrets import Secret
from luthier.text import one_line
from luthier.web import shown
from luthier.wire.auth.tokens import Tokens, life

if TYPE_CHECKING:
    from collections.abc import Iterable

    from luthier.wire.auth.fetch import Fetched

OK = (200, 201)

_TOKEN = re.compile(r"[\x21-\x7e]+")
_CODE = re.compile(r"[a-z][a-z0-9_]{0,63}")
_HEALS = frozenset({"temporarily_unavailable", "server_error", "slow_down"})
_BUSY = (408, 425, 429)
_SERVER_FAULT = 500


class TokenError(ConnectError):
    """The token endpoint said no. `code` is the word of RFC 6749 for it, empty where it gave none."""

    def __init__(self, message: str, *, code: str, server: str, retryable: bool, hint: str = "") -> None:
        super().__init__(message, server=server, phase="login", retryable=retryable, hint=hint)
        self.code = code


def read_tokens(
    reply: Fetched, *, url: str, server: str, now: float, secrets: Iterable[Secret | None] = ()
) -> Tokens:
    """The tokens in a reply. Raises TokenError; `secrets` are what was sent, and never shown again."""
    body = reply.json()
    place = f"Server {server!r}: the token endpoint {one_line(shown(url))!r}"
    if reply.status not in OK or "error" in body:
        raise refusal(reply, place, server=server, secrets=secrets)
    access, refresh, scope = body.get("access_token"), body.get("refresh_token"), body.get("scope")
    kind = body.get("token_type", "bearer")
    if not isinstance(access, str) or not _TOKEN.fullmatch(access):
        raise TokenError(f"{place} answered without a usable token.", code="", server=server, retryable=False)
    if not isinstance(kind, str) or kind.lower() != "bearer":
        message = f"{place} answered with a token that is not a bearer token."
        raise TokenError(message, code="", server=server, retryable=False)
    seconds = _seconds(body.get("expires_in"))
    expires_at, renew_at = (None, None) if seconds is None else life(seconds, now)
    return Tokens(
        access=Secret(access),
        refresh=Secret(refresh) if isinstance(refresh, str) and refresh else None,
        scope=scope if isinstance(scope, str) and scope else None,
        expires_at=expires_at,
        renew_at=renew_at,
    )


def _seconds(value: object) -> float | None:
    """A token's life; some servers write it as text, and what cannot be read says nothing."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        seconds = float(value)
    except (ValueError, OverflowError):
        return None
    return max(seconds, 0.0) if math.isfinite(seconds) else None


def refusal(reply: Fetched, place: str, *, server: str, secrets: Iterable[Secret | None] = ()) -> TokenError:
    """The error for a reply that is no success; `place` begins the sentence."""
    status, body = reply.status, reply.json()
    code = body.get("error")
    code = code if isinstance(code, str) and _CODE.fullmatch(code) else ""
    said = body.get("error_description")
    reason = code if code and redacted(code, secrets) == code else ""
    if isinstance(said, str) and said.strip():
        reason = f"{reason}: {redacted(said, secrets)}" if reason else redacted(said, secrets)
    retryable = status >= _SERVER_FAULT or status in _BUSY or code in _HEALS
    told = f" ({one_line(reason)})" if reason else ""
    message = f"{place} answered {status}{told}."
    return TokenError(message, code=code, server=server, retryable=retryable, hint=_hint(code))


def _hint(code: str) -> str:
    match code:
        case "invalid_client" | "unauthorized_client":
            return "Check client_id, client_secret and how the client may authenticate."
        case "invalid_scope":
            return "Check scope."
        case "invalid_target":
            return "It does not know this server's URL as a resource."
        case _:
            return ""


def redacted(text: str, secrets: Iterable[Secret | None]) -> str:
    """The text with every spelling in which a secret may be echoed blotted out."""
    for secret in secrets:
        plain = secret.reveal() if secret else ""
        for spelling in _spellings(plain) if plain else ():
            text = text.replace(spelling, "…")
    return text


def _spellings(plain: str) -> tuple[str, ...]:
    encoded = base64.b64encode(plain.encode("utf-8", "surrogatepass")).decode()
    return plain, quote(plain, safe="", errors="replace"), quote_plus(plain, errors="replace"), encoded
