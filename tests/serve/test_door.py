"""The door: Host, Origin and token, before anything behind it is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from luthier.serve import Callers, token_hash
from luthier.serve.addresses import Addresses
from luthier.serve.caller import Caller, Refusal
from luthier.serve.door import Body, Door, own_hosts
from luthier.serve.locks import Tokens
from luthier.spec import Serve

if TYPE_CHECKING:
    from collections.abc import MutableMapping

TOKEN = "t" * 40
CI = Caller(id="ci")
GOOD = {"content-type": "application/json", "host": "127.0.0.1:8080", "authorization": f"Bearer {TOKEN}"}


async def nowhere(*_: Any) -> Any:
    raise AssertionError("a request went through the door")


def door(app: Any = nowhere, caller: Caller = CI, **serve: Any) -> Door:
    locks = Addresses(Tokens(Callers({token_hash(TOKEN): caller})))
    return Door(app, locks, Serve(**serve), own_hosts("127.0.0.1", 8080))


async def look(served: Door, fields: dict[str, Any], path: str = "/mcp") -> Caller | Refusal:
    scope = {"type": "http", "method": "POST", "path": path, "headers": headers(fields)}
    return await served.look(scope, Body(nowhere, 0))


def headers(fields: dict[str, str | list[str] | None]) -> list[tuple[bytes, bytes]]:
    return [
        (name.encode(), one.encode())
        for name, value in {**GOOD, **fields}.items()
        for one in (value if isinstance(value, list) else [value])
        if one is not None
    ]


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"host": "LOCALHOST:8080"},
        {"host": "[::1]:8080"},
        {"authorization": f"bearer  {TOKEN}"},
        {"origin": "http://localhost:8080"},
        {"origin": "https://app.example.com"},
        {"host": "tools.example.com", "origin": "https://tools.example.com"},
    ],
)
async def test_who_may_come_in(fields: dict[str, Any]) -> None:
    served = door(hosts=("tools.example.com",), origins=("https://app.example.com",))
    assert await look(served, fields) == CI


@pytest.mark.parametrize(
    "fields",
    [
        {"host": None},
        {"host": "evil.example.com"},
        {"host": "127.0.0.1"},
        {"host": "127.0.0.1:8081"},
        {"host": "localhost.:8080"},
        {"host": "localhost:8080.evil.example.com"},
        {"host": ["127.0.0.1:8080", "evil.example.com"]},
        {"origin": "null"},
        {"origin": ""},
        {"origin": "http://evil.example.com"},
        {"origin": "http://localhost:8081"},
        {"origin": "http://localhost:8080.evil.example.com"},
        {"origin": ["http://localhost:8080", "http://evil.example.com"]},
    ],
)
@pytest.mark.parametrize("path", ["/mcp", "/health", "/.well-known/oauth-protected-resource"])
async def test_who_comes_by_another_name_is_forbidden(fields: dict[str, Any], path: str) -> None:
    found = await look(door(), fields, path)
    assert isinstance(found, Refusal)
    assert found.status == 403


@pytest.mark.parametrize(
    "token",
    [None, "", TOKEN, "Bearer", "Bearer ", f"Basic {TOKEN}", "Bearer wrong", [f"Bearer {TOKEN}", "Bearer b"]],
)
@pytest.mark.parametrize(
    "path", ["/mcp", "/api/v1/runs", "/openapi.json", "//mcp", "/healthy", "/.well-known/x", ""]
)
async def test_who_has_no_token_is_not_known(token: Any, path: str) -> None:
    found = await look(door(), {"authorization": token}, path)
    assert isinstance(found, Refusal)
    assert found.status == 401
    assert TOKEN not in str(found)


def test_the_hosts_of_an_address_are_its_own_names() -> None:
    assert own_hosts("10.0.0.1", 80) == {"10.0.0.1:80", "10.0.0.1"}
    assert own_hosts("::1", 1) == {"[::1]:1", "127.0.0.1:1", "localhost:1"}


async def test_nothing_behind_the_door_sees_the_token() -> None:
    seen: list[Any] = []

    async def behind(scope: MutableMapping[str, Any], *_: Any) -> None:
        seen.append(scope)

    sent = headers({"cookie": "c=1", "x-other": "kept"})
    await door(behind)({"type": "http", "method": "POST", "path": "/mcp", "headers": sent}, nowhere, nowhere)
    kept = {b"content-type": b"application/json", b"host": b"127.0.0.1:8080", b"x-other": b"kept"}
    assert dict(seen[0]["headers"]) == kept
    assert seen[0]["caller"] == CI
    assert seen[0]["user"].display_name == "ci"
    assert TOKEN not in str(vars(seen[0]["user"]))


async def test_only_who_runs_gets_to_the_tools() -> None:
    found = await look(door(caller=Caller(id="eve", roles=frozenset({"approve"}))), {})
    assert isinstance(found, Refusal)
    assert (found.status, found.role) == (403, "run")


async def test_the_health_is_told_to_everybody_and_a_token_that_is_shown_there_must_hold() -> None:
    assert await look(door(), {"authorization": None}, "/health") == Caller(id="", roles=frozenset())
    assert await look(door(), {}, "/health/ready") == CI
    assert isinstance(await look(door(), {"authorization": "Bearer wrong"}, "/health"), Refusal)


async def test_what_is_neither_a_request_nor_the_life_of_the_server_is_passed_over() -> None:
    await door()({"type": "websocket", "headers": headers({})}, nowhere, nowhere)
