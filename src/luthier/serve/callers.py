"""Who holds which token: only hashes are kept, and every one of them is compared, so time tells nothing."""

from __future__ import annotations

import hmac
import secrets
from hashlib import sha256
from typing import TYPE_CHECKING

from luthier.errors import Fault, SpecError
from luthier.secrets import expand
from luthier.serve.caller import Caller
from luthier.serve.offers import OWN

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from luthier.serve.offers import Offer
    from luthier.spec import Ensemble, Project

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

    def __init__(self, hashes: Mapping[str, Caller]) -> None:
        self._hashes = {digest.encode(): caller for digest, caller in hashes.items()}

    @classmethod
    def of(cls, project: Project, offers: Iterable[Offer], environ: Mapping[str, str]) -> Callers:
        """All clients of a project. Raises UnresolvedReferenceError, and SpecError for a bad token."""
        held = [
            (Caller(id=id, roles=frozenset(client.roles)), client.tokens, f"serve.clients.{id}")
            for id, client in project.serve.clients.items()
        ]
        held += [
            (
                Caller(id=OWN + offer.name),
                offer.trigger.tokens or (),
                trigger_place(offer.ensemble, offer.name),
            )
            for offer in offers
        ]
        return cls.holding(held, environ)

    @classmethod
    def holding(
        cls, held: Iterable[tuple[Caller, tuple[str, ...], str]], environ: Mapping[str, str]
    ) -> Callers:
        """These callers with these tokens, each with the place where they stand. Raises as `of` does."""
        hashes: dict[str, Caller] = {}
        for caller, tokens, place in held:
            for token in tokens:
                digest = _hash_of(token, environ, place)
                if hashes.setdefault(digest, caller).id != caller.id:
                    whose = hashes[digest].id
                    message = f"{place}: this token is that of {whose} too, so nobody can tell who calls"
                    raise SpecError([Fault(message, suggestion="give each client a token of its own")])
        return cls(hashes)

    def __bool__(self) -> bool:
        return bool(self._hashes)

    @property
    def names(self) -> tuple[str, ...]:
        """The clients that have a token, in order."""
        return tuple(sorted({caller.id for caller in self._hashes.values()}))

    def caller(self, token: str) -> Caller | None:
        """Whose token it is."""
        given, found = token_hash(token).encode(), None
        for digest, caller in self._hashes.items():
            if hmac.compare_digest(digest, given):
                found = caller
        return found


def trigger_place(ensemble: Ensemble, name: str) -> str:
    """Where the credentials of a trigger stand."""
    return f"{ensemble.file} (trigger {name})"


def secret_of(written: str, environ: Mapping[str, str], place: str) -> str:
    """A secret that its reference stands for. Raises UnresolvedReferenceError, SpecError for a short one."""
    value = expand(written, environ, place=place, secrets=True)
    if len(value) < SHORTEST:
        message = f"{place}: the token has fewer than {SHORTEST} characters"
        raise SpecError([Fault(message, suggestion="`luthier serve --new-token` makes one")])
    return value


def _hash_of(token: str, environ: Mapping[str, str], place: str) -> str:
    return token if token.startswith(_HASH) else token_hash(secret_of(token, environ, place))
