"""Signed client assertions: what they claim, and that the signature is the key's."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa

from luthier.errors import ConnectError
from luthier.secrets import Secret
from luthier.spec.project import Auth
from luthier.wire.auth.assertion import signed
from luthier.wire.http import Authorizer, OutgoingHttp

if TYPE_CHECKING:
    from tests.wire.auth.authority import Authority

Make = Callable[..., Authorizer]

KEYS: dict[str, Any] = {
    "RS256": rsa.generate_private_key(65537, 2048),
    "ES256": ec.generate_private_key(ec.SECP256R1()),
    "ES384": ec.generate_private_key(ec.SECP384R1()),
    "ES512": ec.generate_private_key(ec.SECP521R1()),
    "EdDSA": ed25519.Ed25519PrivateKey.generate(),
}


def pem(key: Any) -> str:
    encoded: bytes = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return encoded.decode()


def claims(token: str, key: Any, name: str, audience: str) -> dict[str, Any]:
    options: Any = {"verify_exp": False, "verify_iat": False}
    found: dict[str, Any] = jwt.decode(
        token, key.public_key(), algorithms=[name], audience=audience, options=options
    )
    return found


@pytest.mark.parametrize("name", KEYS)
def test_the_kind_of_the_key_says_how_it_signs(name: str) -> None:
    token = signed(Secret(f"\n {pem(KEYS[name])}"), "luthier", "https://auth.example", now=1000.9)
    assert jwt.get_unverified_header(token) == {"alg": name, "typ": "JWT"}
    found = claims(token, KEYS[name], name, "https://auth.example")
    assert found.pop("jti")
    assert found == {
        "iss": "luthier",
        "sub": "luthier",
        "aud": "https://auth.example",
        "iat": 1000,
        "exp": 1300,
    }


@pytest.mark.parametrize("name", ["PS256", "RS384", "PS384", "RS512", "PS512"])
def test_an_rsa_key_signs_as_the_server_wants_it(name: str) -> None:
    key = KEYS["RS256"]
    token = signed(Secret(pem(key)), "c", "a", now=0, algorithms=["ES256", name])
    assert claims(token, key, name, "a")["sub"] == "c"


def test_no_two_assertions_are_the_same() -> None:
    key = Secret(pem(KEYS["EdDSA"]))
    assert signed(key, "c", "a", now=0) != signed(key, "c", "a", now=0)


@pytest.mark.parametrize(
    ("key", "algorithms", "said"),
    [
        ("-----BEGIN PRIVATE KEY-----\ncanary\n-----END PRIVATE KEY-----", None, "cannot be read"),
        (pem(KEYS["ES256"]), ["RS256"], "none of the signatures of this key: ES256"),
        (pem(ed448.Ed448PrivateKey.generate()), None, "of a kind"),
        (pem(ec.generate_private_key(ec.SECP256K1())), None, "of a kind"),
    ],
    ids=["broken", "not taken", "ed448", "curve"],
)
def test_a_key_that_cannot_sign_says_why_and_shows_nothing(
    key: str, algorithms: list[str] | None, said: str
) -> None:
    with pytest.raises(ValueError, match=said) as raised:
        signed(Secret(key), "c", "a", now=0, algorithms=algorithms)
    assert "canary" not in str(raised.value)
    assert raised.value.__cause__ is None


async def test_a_private_key_as_client_secret_is_never_sent(authority: Authority, make: Make) -> None:
    key = KEYS["ES256"]
    auth = Auth(type="oauth", client_id="luthier", client_secret=pem(key), issuer=authority.issuer)
    await make(auth).headers(OutgoingHttp("GET", authority.resource))
    [asked] = authority.asked
    assert "client_secret" not in asked.form
    assert asked.authorization == ""
    assert asked.form["client_assertion_type"].endswith("jwt-bearer")
    assert claims(asked.form["client_assertion"], key, "ES256", authority.issuer)["iss"] == "luthier"


async def test_without_an_issuer_the_assertion_is_for_the_token_endpoint(
    authority: Authority, make: Make
) -> None:
    key, url = KEYS["ES256"], f"{authority.issuer}/token"
    auth = Auth(type="oauth", client_id="luthier", client_secret=pem(key), token_url=url)
    await make(auth).headers(OutgoingHttp("GET", authority.resource))
    assert claims(authority.asked[0].form["client_assertion"], key, "ES256", url)["sub"] == "luthier"


async def test_a_key_that_cannot_be_read_is_a_fault_of_the_entry(authority: Authority, make: Make) -> None:
    secret = "-----BEGIN PRIVATE KEY-----\ncanary"
    auth = Auth(type="oauth", client_id="c", client_secret=secret, token_url=f"{authority.issuer}/token")
    with pytest.raises(ConnectError, match="cannot be read") as raised:
        await make(auth).headers(OutgoingHttp("GET", authority.resource))
    assert not raised.value.retryable
    assert "canary" not in str(raised.value)
    assert authority.asked == []
