"""An authorization server on this machine: its metadata, its keys, and the tokens that it signs."""

from __future__ import annotations

import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import jwt
import msgspec
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

RESOURCE = "https://tools.example.com/mcp"


class Pair:
    """A key with its name, and what the issuer publishes of it."""

    def __init__(self, id: str | None, algorithm: str = "RS256", *, bits: int = 2048, **more: Any) -> None:
        self.id = id
        self.algorithm = algorithm
        data: str
        if algorithm.startswith(("RS", "PS")):
            made = rsa.generate_private_key(65537, bits)
            self.private, data = made, RSAAlgorithm.to_jwk(made.public_key())
        elif algorithm.startswith("ES"):
            curve = ec.generate_private_key(ec.SECP384R1() if algorithm == "ES384" else ec.SECP256R1())
            self.private, data = curve, ECAlgorithm.to_jwk(curve.public_key())
        else:
            edwards = ed25519.Ed25519PrivateKey.generate()
            self.private, data = edwards, OKPAlgorithm.to_jwk(edwards.public_key())
        named = {} if id is None else {"kid": id}
        self.public = {**msgspec.json.decode(data), **named, **more}

    private: Any


class LoopbackIssuer:
    """What it publishes can be changed; `asked` are the paths that it was asked for."""

    def __init__(self) -> None:
        self.url = ""
        self.keys: list[Any] = []
        self.asked: list[str] = []
        self.metadata: dict[str, Any] = {}
        self.status = 200

    def token(self, pair: Pair, header: Mapping[str, Any] | None = None, **claims: Any) -> str:
        """One that is good, but for what is said; a claim that is None is left out."""
        now = int(time.time())
        said = {
            "iss": self.url,
            "aud": RESOURCE,
            "sub": "ada",
            "iat": now,
            "exp": now + 300,
            "scope": "luthier:run",
            **claims,
        }
        found = {name: value for name, value in said.items() if value is not None}
        named = {"typ": "at+jwt", **({} if pair.id is None else {"kid": pair.id}), **(header or {})}
        return jwt.encode(found, pair.private, algorithm=pair.algorithm, headers=named)

    async def answer(self, request: web.BaseRequest) -> web.Response:
        self.asked.append(request.path)
        if request.path == "/.well-known/oauth-authorization-server":
            about = {"issuer": self.url, "jwks_uri": f"{self.url}/keys", **self.metadata}
            return web.json_response({name: value for name, value in about.items() if value is not None})
        if request.path == "/keys":
            return web.json_response({"keys": self.keys}, status=self.status)
        return web.Response(status=404)


@asynccontextmanager
async def issuing(*pairs: Pair) -> AsyncIterator[LoopbackIssuer]:
    """An issuer that listens, with these keys published."""
    issuer = LoopbackIssuer()
    issuer.keys = [pair.public for pair in pairs]
    runner = web.ServerRunner(web.Server(issuer.answer))
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        issuer.url = f"http://{host}:{port}"
        yield issuer
    finally:
        await runner.cleanup()
