"""Tokens of an issuer at the door: where to get one, what it opens, and that it goes nowhere."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from luthier.errors import SpecError
from luthier.serve import Listening, Service
from luthier.testing import MemoryAudit
from tests.serve.house import greeter, house
from tests.serve.issuer import RESOURCE, LoopbackIssuer, issuing
from tests.serve.test_bearing import pair
from tests.serve.test_http import asked, connected, served

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

METADATA = "/.well-known/oauth-protected-resource"


@asynccontextmanager
async def guarded(root: Path, **parts: Any) -> AsyncIterator[tuple[str, LoopbackIssuer]]:
    async with issuing(pair()) as issuer:
        oauth = {"issuer": issuer.url, "resource": RESOURCE}
        async with served(root, serve={"oauth": oauth, "clients": {}}, **parts) as url:
            yield url, issuer


async def test_who_has_no_token_is_told_where_to_get_one(tmp_path: Path) -> None:
    async with guarded(tmp_path) as (url, issuer):
        status, _, headers = await asked(f"{url}/mcp", "POST", token=None)
        found = await asked(f"{url}{METADATA}/mcp", token=None)
        same = await asked(f"{url}{METADATA}", token=None)
        _, _, wrong = await asked(f"{url}/mcp", "POST", token="a.b.c")
    assert status == 401
    place = f'resource_metadata="https://tools.example.com{METADATA}/mcp"'
    assert headers["WWW-Authenticate"] == f'Bearer realm="luthier", {place}'
    assert 'error="invalid_token"' in wrong["WWW-Authenticate"]
    assert found[:2] == same[:2]
    assert found[:2] == (
        200,
        {
            "resource": RESOURCE,
            "authorization_servers": [issuer.url],
            "scopes_supported": ["luthier:admin", "luthier:approve", "luthier:run"],
            "bearer_methods_supported": ["header"],
        },
    )


async def test_without_an_issuer_nothing_is_published(tmp_path: Path) -> None:
    async with served(tmp_path) as url:
        assert (await asked(f"{url}{METADATA}", token=None))[0] == 404


async def test_the_official_client_calls_with_a_token_of_the_issuer(tmp_path: Path) -> None:
    audit = MemoryAudit()
    async with guarded(tmp_path, audit=audit) as (url, issuer):
        async with connected(url, issuer.token(pair()), "auto") as peer:
            result = await peer.call_tool("greeting", {"name": "Ada"})
    assert result.structured_content == {"said": "Hello, Ada"}
    assert "client:oauth/ada" in str(audit.records)


async def test_a_token_without_the_scope_is_told_which_it_takes(tmp_path: Path) -> None:
    async with guarded(tmp_path) as (url, issuer):
        token = issuer.token(pair(), scope="luthier:approve")
        status, _, headers = await asked(f"{url}/mcp/tools", token=token)
    assert status == 403
    assert 'error="insufficient_scope", scope="luthier:run"' in headers["WWW-Authenticate"]


async def test_the_resource_is_a_host_that_is_served(tmp_path: Path) -> None:
    async with guarded(tmp_path) as (url, issuer):
        headers = {"Host": "tools.example.com", "Origin": "https://tools.example.com"}
        assert (await asked(f"{url}/mcp/tools", token=issuer.token(pair()), headers=headers))[0] == 200


async def test_while_keys_cannot_be_had_the_answer_is_to_come_again(tmp_path: Path) -> None:
    async with guarded(tmp_path) as (url, issuer):
        issuer.status = 500
        status, body, headers = await asked(f"{url}/mcp/tools", token=issuer.token(pair()))
    assert (status, body["error"]) == (503, "Unavailable")
    assert "WWW-Authenticate" not in headers


def kept_in(root: Path) -> str:
    return "".join(path.read_bytes().decode("latin-1") for path in root.rglob("*") if path.is_file())


async def test_a_token_of_the_issuer_goes_nowhere(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    server, audit = greeter(), MemoryAudit()
    async with guarded(tmp_path, server=server, audit=audit) as (url, issuer):
        tokens = [issuer.token(pair()), issuer.token(pair(), aud="https://else.example.com")]
        for token in tokens:
            await asked(f"{url}/mcp/tools/greeting", "POST", token=token, json={"arguments": {"name": "Bo"}})
    seen = f"{server.received} {audit.records} {caplog.text} {kept_in(tmp_path)}"
    assert "Bo" in seen
    for token in tokens:
        assert not [part for part in token.split(".")[1:] if part in seen]


async def test_an_issuer_alone_is_enough_to_serve_and_nobody_is_not(tmp_path: Path) -> None:
    async with house(tmp_path, serve={"clients": {}}) as runtime:
        with pytest.raises(SpecError, match="Nobody has a token"):
            Listening.on("127.0.0.1:0", Service(runtime), runtime.project, runtime.environ)
