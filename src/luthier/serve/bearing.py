"""Tokens of an authorization server: what must hold of one before its bearer is let in (RFC 9068, 8725).

It is signed by a key of the one issuer that the project names, by a signature that only its holder can make,
for this server and no other, and it is in time. What it says of its bearer becomes an id and roles; the token
itself is forgotten.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from luthier.errors import LuthierError
from luthier.redaction import logger
from luthier.serve.caller import Caller, Refusal

if TYPE_CHECKING:
    from luthier.serve.jwks import Jwks, Key
    from luthier.spec.issuer import Issuer

BEARER = "oauth/"
"""How the ids of those begin who come with a token of the issuer; no client of the project has a slash."""

WELL_KNOWN = "/.well-known/oauth-protected-resource"

_TYPES = frozenset({"jwt", "at+jwt", "application/at+jwt"})
_CLAIMS = ["exp", "iss", "aud", "sub"]
_LONGEST_NAME = 255
_MIN_RSA_BITS = 2048
_log = logger("luthier.serve")


class Bearing:
    """Whoever comes with a token of the issuer."""

    def __init__(self, issuer: Issuer, keys: Jwks) -> None:
        self._issuer = issuer
        self._keys = keys

    async def caller(self, token: str) -> Caller | Refusal:
        """Who bears it, or why nobody comes in with it; what is told is never more than that."""
        import jwt

        try:
            header = jwt.get_unverified_header(token)
            fault = _header_fault(header, self._issuer)
            key = None if fault else await self._keys.find(header.get("kid"), header["alg"])
            if fault or key is None:
                return _invalid(fault or f"no key {header.get('kid')!r} of the issuer")
            claims = self._claims(token, key, header["alg"])
        except (jwt.PyJWTError, ValueError, TypeError, RecursionError) as error:
            return _invalid(f"{type(error).__name__}: {error}")
        except LuthierError as error:
            return Refusal(503, "Tokens cannot be checked now", str(error))
        return self._bearer(claims)

    def _claims(self, token: str, key: Key, algorithm: str) -> dict[str, Any]:
        """What the token says, once its signature, its time, its issuer and its audience hold."""
        import jwt

        issuer = self._issuer
        public = jwt.PyJWK(key.data, algorithm)
        if key.data["kty"] == "RSA" and public.key.key_size < _MIN_RSA_BITS:
            raise jwt.InvalidKeyError("a key of so few bits")
        return jwt.decode(
            token,
            public,
            algorithms=[algorithm],
            audience=issuer.resource,
            issuer=issuer.issuer,
            leeway=issuer.leeway,
            options={"require": _CLAIMS},
        )

    def _bearer(self, claims: dict[str, Any]) -> Caller | Refusal:
        name = claims["sub"]
        if not name or len(name) > _LONGEST_NAME or not name.isprintable() or not name.isascii():
            return _invalid("its subject cannot be a name")
        said = claims.get("scope", claims.get("scp", ""))
        scopes = said.split() if isinstance(said, str) else said if isinstance(said, list) else []
        roles = {
            self._issuer.scopes[one] for one in scopes if isinstance(one, str) and one in self._issuer.scopes
        }
        return Caller(id=BEARER + name, roles=frozenset(roles))

    @property
    def metadata(self) -> dict[str, Any]:
        """What clients are told of where to get a token (RFC 9728)."""
        return {
            "resource": self._issuer.resource,
            "authorization_servers": [self._issuer.issuer],
            "scopes_supported": sorted(self._issuer.scopes),
            "bearer_methods_supported": ["header"],
        }

    @property
    def metadata_url(self) -> str:
        """Where that stands."""
        parts = urlsplit(self._issuer.resource)
        return f"{parts.scheme}://{parts.netloc}{self.metadata_path}"

    @property
    def metadata_path(self) -> str:
        return WELL_KNOWN + urlsplit(self._issuer.resource).path.rstrip("/")

    def scopes_for(self, role: str) -> str:
        """The scopes that give a role, as a challenge names them."""
        return " ".join(sorted(scope for scope, given in self._issuer.scopes.items() if given == role))


def _header_fault(header: dict[str, Any], issuer: Issuer) -> str:
    if header.get("alg") not in issuer.algorithms:
        return f"signature {header.get('alg')!r} is not accepted"
    if "crit" in header:
        return "it asks for an extension that is not known"
    if str(header.get("typ", "jwt")).lower() not in _TYPES:
        return f"it is a {header['typ']!r}"
    if not isinstance(header.get("kid"), str | None):
        return "its key has no name"
    return ""


def _invalid(why: str) -> Refusal:
    return Refusal(401, "Invalid bearer token", why)
