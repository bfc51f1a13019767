"""The configuration snippets of the `tools` page have their twins here: what is written, what goes out."""

from __future__ import annotations

import hashlib
import hmac
from typing import TYPE_CHECKING, Any

from luthier import Runtime
from luthier.spec import Auth, read_project
from tests.wire.auth.authority import running
from tests.wire.http.support import Answering, Asked, Site, text

if TYPE_CHECKING:
    from pathlib import Path

ENVIRON = {
    "GITHUB_MCP_TOKEN": "ghp_xxx",
    "BRAVE_API_KEY": "BSAxxx",
    "OAUTH_CLIENT_ID": "client_xxx",
    "OAUTH_CLIENT_SECRET": "secret_xxx",
    "MCP_TOKEN": "token_xxx",
    "MCP_SECRET": "shh",
}
ASKED: dict[str, Any] = {"owner": "anthropics", "repo": "anthropic-sdk-typescript", "pull_number": 123}


def rest(asked: Asked, answering: Answering) -> None:
    """A server of the page: `GET /tools`, `POST /tools/NAME`."""
    if asked.method == "GET":
        answering.give(200, {"tools": [{"name": "get_pull_request", "inputSchema": {"type": "object"}}]})
    else:
        answering.give(200, text("done"))


async def asked_of(entry: dict[str, Any], folder: Path, *, calls: int = 1) -> list[Asked]:
    """The requests that calls of a tool make of such a server."""
    async with Site(rest) as site:
        servers = {"far": {"url": site.url.removesuffix("/mcp"), "transport": "rest", **entry}}
        async with Runtime.open({"mcpServers": servers}, root=folder, environ=ENVIRON) as rt:
            for _ in range(calls):
                await rt.call("mcp://far/get_pull_request", **ASKED)
        return site.asked


def test_configure_mcp_servers() -> None:
    project = read_project(
        {
            "mcpServers": {
                "github": {
                    "url": "https://github-mcp.example.com",
                    "auth": {"type": "bearer", "token": "${env.GITHUB_MCP_TOKEN}"},
                    "timeout": 15000,
                },
                "brave": {
                    "url": "https://brave-search-mcp.example.com",
                    "auth": {"type": "bearer", "token": "${env.BRAVE_API_KEY}"},
                },
                "custom": {
                    "url": "https://custom-mcp.example.com",
                    "auth": {
                        "type": "oauth",
                        "clientId": "${env.OAUTH_CLIENT_ID}",
                        "clientSecret": "${env.OAUTH_CLIENT_SECRET}",
                        "tokenUrl": "https://auth.example.com/oauth/token",
                    },
                    "timeout": 20000,
                },
                "public": {"url": "https://public-mcp.example.com"},
            }
        }
    )
    servers = project.servers
    assert list(servers) == ["github", "brave", "custom", "public"]
    assert servers["github"].auth == Auth(type="bearer", token="${env.GITHUB_MCP_TOKEN}")
    assert (servers["github"].timeout, servers["github"].tool_timeout) == (15.0, 15.0)
    assert servers["custom"].auth == Auth(
        type="oauth",
        client_id="${env.OAUTH_CLIENT_ID}",
        client_secret="${env.OAUTH_CLIENT_SECRET}",
        token_url="https://auth.example.com/oauth/token",
    )
    assert servers["public"].auth == Auth()


async def test_bearer_token(tmp_path: Path) -> None:
    token = {"auth": {"type": "bearer", "token": "${env.GITHUB_MCP_TOKEN}"}}
    *_, called = await asked_of(token, tmp_path)
    assert (called.method, called.path) == ("POST", "/tools/get_pull_request")
    assert called.headers["authorization"] == "Bearer ghp_xxx"
    assert called.headers["content-type"] == "application/json"
    assert called.json == {"name": "get_pull_request", "arguments": ASKED}


async def test_oauth(tmp_path: Path) -> None:
    async with running() as authority:
        oauth = {
            "type": "oauth",
            "clientId": "${env.OAUTH_CLIENT_ID}",
            "clientSecret": "${env.OAUTH_CLIENT_SECRET}",
            "tokenUrl": f"{authority.issuer}/token",
        }
        asked = await asked_of({"auth": oauth}, tmp_path, calls=3)
        (request,) = authority.asked  # one token for all calls
    assert request.form["grant_type"] == "client_credentials"
    assert (request.form["client_id"], request.form["client_secret"]) == ("client_xxx", "secret_xxx")
    assert {one.headers["authorization"] for one in asked} == {"Bearer access-1"}
    assert [one.method for one in asked] == ["GET", "POST", "POST", "POST"]


async def test_hmac_signature(tmp_path: Path) -> None:
    signed = {"auth": {"type": "bearer", "token": "${env.MCP_TOKEN}"}, "secret": "${env.MCP_SECRET}"}
    *_, called = await asked_of(signed, tmp_path)
    at = called.headers["x-conductor-timestamp"]
    assert at.isdecimal()
    expected = hmac.digest(b"shh", f"{at}.".encode() + called.body, hashlib.sha256).hex()
    assert called.headers["x-conductor-signature"] == f"sha256={expected}"
    assert called.headers["authorization"] == "Bearer token_xxx"
