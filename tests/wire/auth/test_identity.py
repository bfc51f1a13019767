"""Enterprise-managed authorization: the identity provider vouches, the issuer believes it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from aiohttp import web

from luthier.errors import ConnectError
from luthier.spec.project import Auth
from luthier.wire.http import Authorizer, OutgoingHttp
from tests.wire.auth.authority import Authority, basic, running

if TYPE_CHECKING:
    from luthier.clock import FakeClock

Make = Callable[..., Authorizer]
Call = Callable[..., Awaitable[tuple[int, str]]]

GET = OutgoingHttp("GET", "http://127.0.0.1/tools")
VOUCHED = {
    "access_token": "jag-canary",
    "issued_token_type": "urn:ietf:params:oauth:token-type:id-jag",
    "token_type": "N_A",
}


@pytest.fixture
async def provider() -> AsyncIterator[Authority]:
    async with running() as found:
        found.answer = lambda: web.json_response(VOUCHED)
        yield found


def entry(authority: Authority, provider: Authority, **changed: Any) -> Auth:
    auth = Auth(
        type="oauth",
        client_id="luthier",
        client_secret="s-canary",
        issuer=authority.issuer,
        scope="tools",
        id_token="id-canary",
        idp_token_url=f"{provider.issuer}/token",
        idp_client_id="at-the-provider",
    )
    return msgspec.structs.replace(auth, **changed)


async def test_the_id_token_is_exchanged_and_the_assertion_redeemed(
    authority: Authority, provider: Authority, make: Make
) -> None:
    authority.answer = lambda: web.json_response(authority.issue(refresh=False))
    assert await make(entry(authority, provider)).headers(GET) == {"Authorization": "Bearer access-1"}
    [exchange], [redeemed] = provider.asked, authority.asked
    assert exchange.form == {
        "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
        "requested_token_type": "urn:ietf:params:oauth:token-type:id-jag",
        "audience": authority.issuer,
        "resource": authority.resource,
        "scope": "tools",
        "subject_token": "id-canary",
        "subject_token_type": "urn:ietf:params:oauth:token-type:id_token",
        "client_id": "at-the-provider",
    }
    assert exchange.authorization == ""
    assert redeemed.form == {
        "grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer",
        "assertion": "jag-canary",
        "resource": authority.resource,
        "scope": "tools",
    }
    assert basic(redeemed.authorization) == ("luthier", "s-canary")


async def test_each_renewal_asks_the_provider_anew(
    authority: Authority, provider: Authority, make: Make, clock: FakeClock
) -> None:
    authority.answer = lambda: web.json_response(authority.issue(refresh=False))
    authorizer = make(entry(authority, provider))
    await authorizer.headers(GET)
    await clock.advance(3600)
    assert await authorizer.headers(GET) == {"Authorization": "Bearer access-2"}
    assert len(provider.asked) == 2


async def test_two_employees_do_not_share_a_token(
    authority: Authority, provider: Authority, make: Make
) -> None:
    authority.answer = lambda: web.json_response(authority.issue(refresh=False))
    one, other = make(entry(authority, provider)), make(entry(authority, provider, id_token="another"))
    assert await one.headers(GET) != await other.headers(GET)


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (400, {"error": "invalid_grant", "error_description": "id-canary"}, "400 .invalid_grant: …"),
        (200, VOUCHED | {"issued_token_type": "urn:ietf:params:oauth:token-type:access_token"}, "assertion"),
        (200, VOUCHED | {"access_token": ""}, "assertion"),
        (200, VOUCHED | {"access_token": ["jag-canary"]}, "assertion"),
        (200, {}, "assertion"),
    ],
)
async def test_without_an_assertion_the_issuer_is_not_asked(
    status: int, body: dict[str, Any], said: str, authority: Authority, provider: Authority, make: Make
) -> None:
    provider.answer = lambda: web.json_response(body, status=status)
    with pytest.raises(ConnectError, match=said) as raised:
        await make(entry(authority, provider)).headers(GET)
    assert "canary" not in str(raised.value)
    assert not raised.value.retryable
    assert authority.asked == []


async def test_an_assertion_that_is_echoed_is_not_shown(
    authority: Authority, provider: Authority, make: Make
) -> None:
    authority.refusal = (400, {"error": "invalid_grant", "error_description": "jag-canary s-canary"})
    with pytest.raises(ConnectError, match="invalid_grant") as raised:
        await make(entry(authority, provider)).headers(GET)
    assert "canary" not in str(raised.value)


@pytest.mark.parametrize(
    "changed", [{"id_token": ""}, {"idp_token_url": None}, {"issuer": None, "token_url": "http://x"}]
)
async def test_an_entry_that_lacks_a_part_says_so_at_once(
    changed: dict[str, Any], authority: Authority, provider: Authority, make: Make
) -> None:
    with pytest.raises(ConnectError, match="is missing"):
        make(entry(authority, provider, **changed))


async def test_a_refused_token_whose_renewal_fails_says_why(
    authority: Authority, make: Make, call: Call
) -> None:
    auth = Auth(type="oauth", client_id="c", client_secret="s", token_url=f"{authority.issuer}/token")
    authorizer = make(auth)
    await call(authorizer)
    authority.live.clear()
    authority.refusal = (503, {})
    with pytest.raises(ConnectError, match="503") as raised:
        await call(authorizer)
    assert raised.value.retryable
