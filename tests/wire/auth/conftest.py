"""The loopback authority, an HTTP client, and authorizers of entries that name them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Any

import pytest

from luthier.clock import FakeClock
from luthier.web import Reach, UrlRules
from luthier.wire.auth import MemoryTokens, make_authorizer
from luthier.wire.http import Authorizer, HttpClient, HttpTarget
from luthier.wire.http.facts import Asked
from tests.wire.auth.authority import Authority, running

if TYPE_CHECKING:
    from luthier.spec.project import Auth

Make = Callable[..., Authorizer]
Call = Callable[..., Awaitable[tuple[int, str]]]


@pytest.fixture
async def authority() -> AsyncIterator[Authority]:
    async with running() as found:
        yield found


@pytest.fixture
async def client() -> AsyncIterator[HttpClient]:
    made = HttpClient({})
    yield made
    await made.close()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def store() -> MemoryTokens:
    return MemoryTokens()


@pytest.fixture
def call(authority: Authority, client: HttpClient) -> Call:
    """Calls the resource through an Authorizer: the status, and the token that it saw."""

    async def called(authorizer: Authorizer, **headers: str) -> tuple[int, str]:
        target = HttpTarget(server="lute", url=authority.resource, authorizer=authorizer, reach=Reach.any)
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        answer = await client.open(target, Asked(), "POST", authority.resource, sent, b"{}")
        body = await answer.read()
        return answer.status, json.loads(body)["seen"] if answer.ok else ""

    return called


@pytest.fixture
def make(authority: Authority, client: HttpClient, clock: FakeClock, store: MemoryTokens) -> Make:
    """An Authorizer of the entry `lute` with this `auth`."""

    def made(auth: Auth, **changed: Any) -> Authorizer:
        facts: dict[str, Any] = {
            "server": "lute",
            "url": authority.resource,
            "secret": None,
            "client": client,
            "tokens": store,
            "clock": clock,
            "rules": UrlRules(allow_private=True, production=False),
        }
        return make_authorizer(auth, **(facts | changed))

    return made
