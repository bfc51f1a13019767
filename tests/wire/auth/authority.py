"""An authorization server and a resource server that trusts it, on loopback, with knobs for misbehaviour."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, unquote, urlencode, urlsplit

from aiohttp import web

Form = dict[str, str]


@dataclass
class Asked:
    """A request for tokens as it came."""

    form: Form
    authorization: str = ""


@dataclass
class Authority:
    """Both servers. What it saw is counted; what it says can be changed while it runs."""

    issuer: str = ""
    resource: str = ""
    # Knobs
    metadata: dict[str, Any] = field(default_factory=dict)  # laid over what it would say; None leaves out
    token: dict[str, Any] = field(default_factory=dict)  # likewise, over each good reply
    refusal: tuple[int, dict[str, Any]] | None = None  # what the token endpoint says to everybody
    registration: dict[str, Any] = field(default_factory=dict)
    callback: dict[str, Any] = field(default_factory=dict)  # likewise, over what the browser brings back
    scopes: str = "tools"
    answer: Callable[[], web.Response] | None = None  # what the token endpoint answers, whatever is asked
    elsewhere: str = ""  # where the resource sends strangers
    hold: asyncio.Event | None = None  # the token endpoint answers when it is set
    accepts: Callable[[str], bool] | None = None  # whether the resource takes a token; default: if it is live
    # What was seen
    asked: list[Asked] = field(default_factory=list)
    registered: list[dict[str, Any]] = field(default_factory=list)
    authorized: list[Form] = field(default_factory=list)
    requests: list[tuple[str, str]] = field(default_factory=list)  # path, Authorization
    live: set[str] = field(default_factory=set)
    refreshes: set[str] = field(default_factory=set)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)  # the token endpoint was asked
    ready: int = 0
    all_ready: asyncio.Event = field(default_factory=asyncio.Event)
    _codes: dict[str, Form] = field(default_factory=dict)
    _numbers: Any = field(default_factory=lambda: itertools.count(1))

    def issue(self, *, refresh: bool, scope: str | None = None) -> dict[str, Any]:
        """A reply with fresh tokens."""
        number = next(self._numbers)
        access = f"access-{number}"
        self.live.add(access)
        reply: dict[str, Any] = {"access_token": access, "token_type": "Bearer", "expires_in": 3600}
        if refresh:
            reply["refresh_token"] = f"refresh-{number}"
            self.refreshes.add(f"refresh-{number}")
        if scope:
            reply["scope"] = scope
        return _over(reply, self.token)

    # The authorization server

    async def describe(self, request: web.Request) -> web.Response:
        self.requests.append((request.path, request.headers.get("Authorization", "")))
        known = {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "registration_endpoint": f"{self.issuer}/register",
            "response_types_supported": ["code"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none", "client_secret_basic", "client_secret_post"],
            "authorization_response_iss_parameter_supported": True,
        }
        if self.metadata.get("status"):
            return web.Response(status=self.metadata["status"])
        return web.json_response(_over(known, self.metadata))

    async def register(self, request: web.Request) -> web.Response:
        wanted = await request.json()
        self.registered.append(wanted)
        given = {**wanted, "client_id": f"client-{len(self.registered)}", "client_secret": "dcr-canary"}
        given["token_endpoint_auth_method"] = "client_secret_post"
        status = self.registration.get("status", 201)
        return web.json_response(_over(given, self.registration), status=status)

    async def authorize(self, request: web.Request) -> web.Response:
        query = dict(request.query)
        self.authorized.append(query)
        code = f"code-{len(self.authorized)}-canary"
        self._codes[code] = query
        back = _over({"code": code, "state": query["state"], "iss": self.issuer}, self.callback)
        return web.Response(status=302, headers={"Location": f"{query['redirect_uri']}?{urlencode(back)}"})

    async def exchange(self, request: web.Request) -> web.Response:
        form = {name: values[0] for name, values in parse_qs(await request.text()).items()}
        self.asked.append(Asked(form, request.headers.get("Authorization", "")))
        self.arrived.set()
        if self.hold is not None:
            await self.hold.wait()
        if self.answer is not None:
            return self.answer()
        if self.refusal is not None:
            status, body = self.refusal
            return web.json_response(body, status=status)
        match form.get("grant_type"):
            case "client_credentials":
                return web.json_response(self.issue(refresh=False, scope=form.get("scope")))
            case "authorization_code":
                return self._redeem(form)
            case "refresh_token" if form["refresh_token"] in self.refreshes:
                self.refreshes.discard(form["refresh_token"])  # it is good once
                return web.json_response(self.issue(refresh=True))
            case _:
                return web.json_response({"error": "invalid_grant"}, status=400)

    def _redeem(self, form: Form) -> web.Response:
        begun = self._codes.pop(form["code"], None)
        digest = hashlib.sha256(form["code_verifier"].encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        if begun is None or begun["code_challenge"] != challenge:
            return web.json_response({"error": "invalid_grant"}, status=400)
        return web.json_response(self.issue(refresh=True, scope=begun.get("scope")))

    async def note_ready(self, _request: web.Request) -> web.Response:
        self.ready += 1
        if self.ready == 2:
            self.all_ready.set()
        return web.Response()

    # The resource server

    async def describe_resource(self, request: web.Request) -> web.Response:
        self.requests.append((request.path, request.headers.get("Authorization", "")))
        return web.json_response(
            {
                "resource": self.resource,
                "authorization_servers": [self.issuer],
                "scopes_supported": self.scopes.split(),
            }
        )

    async def serve(self, request: web.Request) -> web.Response:
        given = request.headers.get("Authorization", "")
        self.requests.append((request.path, given))
        token = given.removeprefix("Bearer ")
        if self.elsewhere and not token:
            return web.Response(status=302, headers={"Location": self.elsewhere})
        if not (self.accepts or self.live.__contains__)(token):
            place = f"{_origin(self.resource)}/.well-known/oauth-protected-resource/mcp"
            return web.Response(
                status=401, headers={"WWW-Authenticate": f'Bearer resource_metadata="{place}"'}
            )
        wanted = request.headers.get("X-Wants-Scope")
        if wanted:
            said = f'Bearer error="insufficient_scope", scope="{wanted}"'
            return web.Response(status=403, headers={"WWW-Authenticate": said})
        return web.json_response({"seen": token})


def basic(authorization: str) -> tuple[str, str]:
    """The name and password of a Basic header."""
    name, _, password = base64.b64decode(authorization.removeprefix("Basic ")).decode().partition(":")
    return unquote(name), unquote(password)


def _over(known: dict[str, Any], changed: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in {**known, **changed}.items() if value is not None}


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


@asynccontextmanager
async def running() -> AsyncIterator[Authority]:
    """Both servers, each at a port of its own."""
    authority = Authority()
    one, other = web.Application(), web.Application()
    for place in ("/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"):
        one.router.add_get(place, authority.describe)
    one.router.add_post("/register", authority.register)
    one.router.add_get("/authorize", authority.authorize)
    one.router.add_post("/token", authority.exchange)
    one.router.add_get("/ready", authority.note_ready)
    other.router.add_get("/.well-known/oauth-protected-resource/mcp", authority.describe_resource)
    other.router.add_route("*", "/mcp", authority.serve)
    async with _listening(one) as issuer, _listening(other) as resource:
        authority.issuer, authority.resource = issuer, f"{resource}/mcp"
        yield authority


@asynccontextmanager
async def _listening(app: web.Application) -> AsyncIterator[str]:
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        await runner.cleanup()
