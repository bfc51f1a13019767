"""Client assertions (RFC 7523): short-lived statements of who we are, signed with a private key."""

from __future__ import annotations

import base64
import secrets
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from luthier.secrets import Secret

_LIFE = 300  # seconds
_CURVES = {"secp256r1": ("ES256", 32), "secp384r1": ("ES384", 48), "secp521r1": ("ES512", 66)}


def signed(
    key: Secret, client: str, audience: str, *, now: float, algorithms: Sequence[str] | None = None
) -> str:
    """A signed token that says `client`, good for five minutes. Raises ValueError for an unusable key.

    `algorithms` are those that the authorization server takes; None: it does not say.
    """
    try:
        from cryptography.hazmat.primitives.serialization import load_pem_private_key
    except ImportError:
        raise ValueError('signing needs the package cryptography: pip install "luthier[oauth]"') from None
    try:
        private = load_pem_private_key(key.reveal().strip().encode(), password=None)
    except Exception:  # noqa: BLE001  (whatever is wrong with it; what the library says may quote the key)
        raise ValueError("client_secret looks like a private key and cannot be read as one") from None
    name = _algorithm(private, algorithms)
    claims = {
        "iss": client,
        "sub": client,
        "aud": audience,
        "iat": int(now),
        "exp": int(now) + _LIFE,
        "jti": secrets.token_urlsafe(24),
    }
    content = b".".join(_part(msgspec.json.encode(item)) for item in ({"alg": name, "typ": "JWT"}, claims))
    return (content + b"." + _part(_sign(private, name, content))).decode()


def _algorithm(private: Any, algorithms: Sequence[str] | None) -> str:
    """The first that suits the key and that the server takes."""
    suited = _suited(private)
    taken = [name for name in suited if algorithms is None or name in algorithms]
    if not suited:
        raise ValueError("client_secret is a private key of a kind that assertions are not signed with")
    if not taken:
        raise ValueError(
            f"its authorization server takes none of the signatures of this key: {', '.join(suited)}"
        )
    return taken[0]


def _suited(private: Any) -> tuple[str, ...]:
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

    if isinstance(private, rsa.RSAPrivateKey):
        return ("RS256", "PS256", "RS384", "PS384", "RS512", "PS512")
    if isinstance(private, ec.EllipticCurvePrivateKey) and private.curve.name in _CURVES:
        return (_CURVES[private.curve.name][0],)
    return ("EdDSA",) if isinstance(private, ed25519.Ed25519PrivateKey) else ()


def _sign(private: Any, name: str, content: bytes) -> bytes:
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec, padding, utils

    if name == "EdDSA":
        signature: bytes = private.sign(content)
        return signature
    digest = {"256": hashes.SHA256(), "384": hashes.SHA384(), "512": hashes.SHA512()}[name[2:]]
    if name.startswith("ES"):
        r, s = utils.decode_dss_signature(private.sign(content, ec.ECDSA(digest)))
        size = _CURVES[private.curve.name][1]
        return r.to_bytes(size, "big") + s.to_bytes(size, "big")
    if name.startswith("PS"):
        pss = padding.PSS(padding.MGF1(digest), digest.digest_size)
        return bytes(private.sign(content, pss, digest))
    return bytes(private.sign(content, padding.PKCS1v15(), digest))


def _part(content: bytes) -> bytes:
    return base64.urlsafe_b64encode(content).rstrip(b"=")
