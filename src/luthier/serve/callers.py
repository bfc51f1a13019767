"""Who holds which token: only hashes are kept, and every one of them is compared, so time tells nothing."""

from __future__ import annotations

import hmac
import secrets
from hashlib import sha256
from typing import TYPE_CHECKING

from luthier.errors import Fault, SpecError
from luthier.secrets import expand
from luthier.serve.offers import OWN

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from luthier.serve.offers import Offer
    from luthier.spec import Project

SHORTEST = 16
"""Characters of the shortest token that is accepted; those that are made here have 43."""

_HASH = "sha256:"


def new_token() -> str:
    """A token that nobody guesses."""
    return secrets.token_urlsafe(32)


def token_hash(token: str) -> str:
    """What is kept of a token. It is random and long, so a plain hash cannot be searched back."""
    return _HASH + sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


class Callers:
    """The clients by the hashes of their tokens."""

    def __init__(self, hashes: Mapping[str, str]) -> None:
        self._hashes = {digest.encode(): client for digest, client in hashes.items()}

    @classmethod
    def of(cls, project: Project, offers: Iterable[Offer], environ: Mapping[str, str]) -> Callers:
        """All clients of a project. Raises UnresolvedReferenceError, and SpecError for a bad token."""
        written = [
            (client, token, f"serve.clients.{client}")
            for client, tokens in project.serve.clients.items()
            for token in tokens
        ]
        written += [
            (OWN + offer.name, token, f"{offer.ensemble.file} (trigger {offer.name})")
            for offer in offers
            for token in offer.trigger.tokens or ()
        ]
        hashes: dict[str, str] = {}
        for client, token, place in written:
            digest = _hash_of(token, environ, place)
            if hashes.setdefault(digest, client) != client:
                message = f"{place}: this token is that of {hashes[digest]} too, so nobody can tell who calls"
                raise SpecError([Fault(message, suggestion="give each client a token of its own")])
        return cls(hashes)

    def __bool__(self) -> bool:
        return bool(self._hashes)

    @property
    def names(self) -> tuple[str, ...]:
        """The clients that have a token, in order."""
        return tuple(sorted(set(self._hashes.values())))

    def client(self, token: str) -> str | None:
        """Whose token it is."""
        given, found = token_hash(token).encode(), None
        for digest, client in self._hashes.items():
            if hmac.compare_digest(digest, given):
                found = client
        return found


def _hash_of(token: str, environ: Mapping[str, str], place: str) -> str:
    if token.startswith(_HASH):
        return token
    value = expand(token, environ, place=place, secrets=True)
    if len(value) < SHORTEST:
        message = f"{place}: the token has fewer than {SHORTEST} characters"
        raise SpecError([Fault(message, suggestion="`luthier serve --new-token` makes one")])
    return token_hash(value)
