"""Reads `serve.oauth`: the authorization server whose tokens open the door, and what it is believed about."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from luthier.spec.words import listed, meant, quoted
from luthier.web import form_fault

if TYPE_CHECKING:
    from collections.abc import Sequence

    from luthier.spec.reader import Reader

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Signatures by a pair of keys. There is none by a shared secret among them: who can check it can make it."""

USUAL = ("RS256", "PS256", "ES256", "EdDSA")
LEEWAY = 30.0
MOST_LEEWAY = 300.0


class Issuer(msgspec.Struct, frozen=True, kw_only=True):
    """`resource` is this server as its tokens name it (`aud`); `scopes` leads from a scope to a role.

    `jwks_url` None: as the issuer's metadata says. `leeway`: seconds that clocks may differ.
    """

    issuer: str
    resource: str
    jwks_url: str | None = None
    algorithms: tuple[str, ...] = USUAL
    scopes: dict[str, str] = {}
    leeway: float = LEEWAY
    allow_private: bool = False


def read_issuer(reader: Reader, roles: Sequence[str]) -> Issuer | None:
    """What `oauth:` says; without `scopes`, `luthier:ROLE` is that of each role."""
    inner = reader.inner("oauth")
    if inner is None:
        return None
    issuer = Issuer(
        issuer=_url(inner, "issuer", required=True) or "",
        resource=_url(inner, "resource", "audience", required=True) or "",
        jwks_url=_url(inner, "jwks_url", "jwks_uri"),
        algorithms=_algorithms(inner),
        scopes=_scopes(inner, roles),
        leeway=_leeway(inner),
        allow_private=inner.flag("allow_private"),
    )
    inner.done({"client_id": "this server has no id there: it only looks at tokens"})
    return issuer


def _url(reader: Reader, *names: str, required: bool = False) -> str | None:
    text = reader.text(*names, required=required)
    if text is not None and (fault := form_fault(text)) is not None:
        reader.sink.add(f"{quoted(text)} {fault.why}", reader.places[names[0]], suggestion=fault.hint)
    return text


def _algorithms(reader: Reader) -> tuple[str, ...]:
    named = reader.texts("algorithms")
    for index, name in enumerate(named or ()):
        if name not in ALGORITHMS:
            message = f"{quoted(name)} is no signature that is accepted here"
            hint = meant(name, ALGORITHMS) or f"known here: {listed(ALGORITHMS)}"
            reader.sink.add(message, (*reader.places["algorithms"], index), suggestion=hint)
    return USUAL if named is None else named


def _scopes(reader: Reader, roles: Sequence[str]) -> dict[str, str]:
    if reader.take("scopes") is None:
        return {f"luthier:{role}": role for role in roles}
    scopes = reader.text_map("scopes")
    for scope, role in scopes.items():
        if role not in roles:
            path = (*reader.places["scopes"], scope)
            hint = meant(role, roles) or f"known here: {listed(roles)}"
            reader.sink.add(f"there is no role {quoted(role)}", path, suggestion=hint)
        if (
            not scope
            or not scope.isascii()
            or any(not mark.isprintable() or mark in ' "\\' for mark in scope)
        ):
            path = (*reader.places["scopes"], scope)
            reader.sink.add(f"{quoted(scope)} cannot be a scope", path, key=True)
    return scopes


def _leeway(reader: Reader) -> float:
    found = reader.seconds("leeway", per=1, zero=True)
    if found is not None and found > MOST_LEEWAY:
        message = f"`leeway` must be at most {MOST_LEEWAY:g} seconds"
        reader.sink.add(message, reader.places["leeway"])
    return LEEWAY if found is None else found
