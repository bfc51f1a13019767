"""Tokens of an issuer: a real one on this machine, good tokens, and every bad one by its kind."""

from __future__ import annotations

import base64
import hmac
import time
from contextlib import asynccontextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from luthier.serve.bearing import Bearing
from luthier.serve.caller import Caller, Refusal
from luthier.serve.jwks import keys_of
from luthier.spec import read_project
from luthier.testing import FakeClock
from tests.serve.issuer import RESOURCE, LoopbackIssuer, Pair, issuing

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

ADA = Caller(id="oauth/ada")


@cache
def pair(id: str | None = "k1", algorithm: str = "RS256", bits: int = 2048) -> Pair:
    """Keys are slow to make, so each is made once."""
    return Pair(id, algorithm, bits=bits)


@asynccontextmanager
async def bearing(
    issuer: LoopbackIssuer, clock: Any = None, environment: str = "development", **more: Any
) -> AsyncIterator[Bearing]:
    says = {"issuer": issuer.url, "resource": RESOURCE, **more}
    project = read_project({"environment": environment, "serve": {"oauth": says}}, root="/")
    assert project.serve.oauth is not None
    keys, close = keys_of(project.serve.oauth, project, {}, clock or FakeClock())
    try:
        yield Bearing(project.serve.oauth, keys)
    finally:
        await close()


@pytest.mark.parametrize("algorithm", ["RS256", "PS256", "ES256", "EdDSA"])
async def test_a_token_of_the_issuer_opens_the_door(algorithm: str) -> None:
    async with issuing(pair("k1", algorithm)) as issuer, bearing(issuer) as door:
        assert await door.caller(issuer.token(pair("k1", algorithm))) == ADA
        assert issuer.asked == ["/.well-known/oauth-authorization-server", "/keys"]


@pytest.mark.parametrize(
    ("claims", "roles"),
    [
        ({"scope": "luthier:run luthier:approve other"}, {"run", "approve"}),
        ({"scope": None, "scp": ["luthier:admin", 5]}, {"admin"}),
        ({"scope": "other"}, set()),
        ({"scope": None}, set()),
        ({"scope": 5}, set()),
        ({"aud": ["https://else.example.com", RESOURCE]}, {"run"}),
    ],
)
async def test_scopes_become_roles(claims: dict[str, Any], roles: set[str]) -> None:
    async with issuing(pair()) as issuer, bearing(issuer) as door:
        found = await door.caller(issuer.token(pair(), **claims))
    assert isinstance(found, Caller)
    assert found.roles == roles


async def test_scopes_and_signatures_are_those_that_the_project_names() -> None:
    more: dict[str, Any] = {"scopes": {"use": "run"}, "algorithms": ["ES384"]}
    async with issuing(pair("k1", "ES384")) as issuer, bearing(issuer, **more) as door:
        assert await door.caller(issuer.token(pair("k1", "ES384"), scope="use")) == ADA
        assert isinstance(await door.caller(issuer.token(pair())), Refusal)


def encoded(value: Any) -> str:
    data = value if isinstance(value, bytes) else msgspec.json.encode(value)
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def signed_by_the_public_key(issuer: LoopbackIssuer) -> str:
    """The public key of RS256, used as the shared secret of HS256."""
    public = pair().private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return recrafted(issuer, {"alg": "HS256", "kid": "k1"}, lambda text: hmac.digest(public, text, "sha256"))


def recrafted(
    issuer: LoopbackIssuer, header: dict[str, Any], sign: Callable[[bytes], bytes] = lambda _: b""
) -> str:
    claims = issuer.token(pair()).split(".")[1]
    text = f"{encoded(header)}.{claims}"
    return f"{text}.{encoded(sign(text.encode()))}"


def signed(issuer: LoopbackIssuer, pair: Pair, header: dict[str, Any]) -> str:
    """Signed by hand, where the library that makes tokens would not."""
    return recrafted(issuer, header, lambda text: pair.private.sign(text, PKCS1v15(), SHA256()))


def edited(issuer: LoopbackIssuer) -> str:
    head, _, signature = issuer.token(pair()).split(".")
    now = int(time.time())
    claims = {"iss": issuer.url, "aud": RESOURCE, "sub": "root", "exp": now + 300, "scope": "luthier:admin"}
    return f"{head}.{encoded(claims)}.{signature}"


def late(issuer: LoopbackIssuer, **by: int) -> str:
    claims: dict[str, Any] = {name: int(time.time()) + seconds for name, seconds in by.items()}
    return issuer.token(pair(), **claims)


BAD: dict[str, Callable[[LoopbackIssuer], str]] = {
    "no signature": lambda issuer: recrafted(issuer, {"alg": "none"}),
    "no signature, spelled otherwise": lambda issuer: recrafted(issuer, {"alg": "nOnE", "kid": "k1"}),
    "no algorithm": lambda issuer: recrafted(issuer, {"kid": "k1"}),
    "the public key as a shared secret": signed_by_the_public_key,
    "an algorithm that is not listed": lambda issuer: issuer.token(pair("k1", "RS512")),
    "claims of another": edited,
    "a signature cut off": lambda issuer: issuer.token(pair()).rpartition(".")[0] + ".",
    "a key of another under the same name": lambda issuer: issuer.token(Pair("k1")),
    "a key that is not there": lambda issuer: issuer.token(pair("k9")),
    "no name of a key": lambda issuer: signed(issuer, pair(), {"alg": "RS256"}),
    "a name of a key that is a number": lambda issuer: recrafted(issuer, {"alg": "RS256", "kid": 5}),
    "a key of its own": lambda issuer: issuer.token(Pair("k9"), {"jwk": Pair("k9").public}),
    "a key of few bits": lambda issuer: signed(
        issuer, pair("weak", bits=1024), {"alg": "RS256", "kid": "weak"}
    ),
    "a key of another algorithm": lambda issuer: issuer.token(pair("only-es"), {"alg": "RS256"}),
    "a key that does not sign": lambda issuer: issuer.token(pair("seals")),
    "a key whose uses leave this out": lambda issuer: issuer.token(pair("makes")),
    "one of two keys of one name": lambda issuer: issuer.token(pair("twice")),
    "an extension": lambda issuer: recrafted(issuer, {"alg": "RS256", "kid": "k1", "crit": ["x"], "x": 1}),
    "a token of another kind": lambda issuer: issuer.token(pair(), {"typ": "logout+jwt"}),
    "another issuer": lambda issuer: issuer.token(pair(), iss="https://evil.example.com"),
    "an issuer that begins alike": lambda issuer: issuer.token(pair(), iss=f"{issuer.url}/"),
    "no issuer": lambda issuer: issuer.token(pair(), iss=None),
    "another audience": lambda issuer: issuer.token(pair(), aud="https://else.example.com"),
    "an audience that begins alike": lambda issuer: issuer.token(pair(), aud=f"{RESOURCE}/x"),
    "no audience": lambda issuer: issuer.token(pair(), aud=None),
    "an empty list of audiences": lambda issuer: issuer.token(pair(), aud=[]),
    "an audience that is no text": lambda issuer: issuer.token(pair(), aud=[5]),
    "past its time": lambda issuer: late(issuer, exp=-31),
    "before its time": lambda issuer: late(issuer, nbf=90),
    "made in the future": lambda issuer: late(issuer, iat=90),
    "no end": lambda issuer: issuer.token(pair(), exp=None),
    "an end that is a word": lambda issuer: issuer.token(pair(), exp="never"),
    "an end without end": lambda issuer: issuer.token(pair(), exp=float("inf")),
    "no subject": lambda issuer: issuer.token(pair(), sub=None),
    "an empty subject": lambda issuer: issuer.token(pair(), sub=""),
    "a subject of two lines": lambda issuer: issuer.token(pair(), sub="a\nb"),
    "a subject without end": lambda issuer: issuer.token(pair(), sub="a" * 300),
    "not a token": lambda _: "a.b.c",
    "nothing": lambda _: "..",
    "a header that is a list": lambda issuer: recrafted(issuer, [1]),  # type: ignore[arg-type]  # on purpose
    "claims that are no mapping": lambda _: f"{encoded({'alg': 'RS256', 'kid': 'k1'})}.{encoded([1])}.x",
    "depth": lambda _: f"{encoded(b'[' * 5000)}.{encoded({})}.x",
    "five parts, sealed": lambda issuer: issuer.token(pair()) + ".a.b",
}


@pytest.mark.parametrize("kind", BAD)
async def test_no_other_token_does(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    async with issuing(pair(), pair("weak", bits=1024), pair("k1", "ES256")) as issuer:
        issuer.keys += [
            {**pair("only-es").public, "alg": "ES256"},
            {**pair("seals").public, "use": "enc"},
            {**pair("makes").public, "key_ops": ["sign"]},
            pair("twice").public,
            Pair("twice").public,
            "no key",
            {"kty": "oct", "kid": "k1", "k": "c2VjcmV0"},
        ]
        token = BAD[kind](issuer)
        async with bearing(issuer) as door:
            assert await door.caller(issuer.token(pair())) == ADA
            found = await door.caller(token)
    assert isinstance(found, Refusal)
    assert (found.status, found.message) == (401, "Invalid bearer token")
    assert token not in f"{found} {caplog.text}" or token == ".."
