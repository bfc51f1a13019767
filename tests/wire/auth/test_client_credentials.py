"""OAuth client credentials: one token for all who wait, renewed in time and once on 401."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from luthier.clock import FakeClock, settle
from luthier.errors import ConnectError
from luthier.spec.project import Auth
from luthier.wire.http import Authorizer, HttpClient, OutgoingHttp
from tests.wire.auth.authority import Authority, basic

Make = Callable[..., Authorizer]
Call = Callable[..., Awaitable[tuple[int, str]]]

SECRET = "s3cr3t:/ c%nary"
GET = OutgoingHttp("GET", "http://127.0.0.1/tools")


def entry(authority: Authority, **changed: Any) -> Auth:
    facts: dict[str, Any] = {
        "type": "oauth",
        "client_id": "luthier",
        "client_secret": SECRET,
        "token_url": f"{authority.issuer}/token",
    }
    return Auth(**(facts | changed))


async def arrived(authority: Authority) -> None:
    """Until the token endpoint has been asked."""
    async with asyncio.timeout(10):
        await authority.arrived.wait()
    await settle()


async def test_the_token_that_was_asked_for_is_sent(authority: Authority, make: Make, call: Call) -> None:
    assert await call(make(entry(authority, scope="tools read"))) == (200, "access-1")
    [asked] = authority.asked
    assert asked.form == {
        "grant_type": "client_credentials",
        "client_id": "luthier",
        "client_secret": SECRET,
        "resource": authority.resource,
        "scope": "tools read",
    }
    assert asked.authorization == ""


async def test_one_request_serves_any_number_of_waiting_calls(
    authority: Authority, make: Make, call: Call
) -> None:
    authority.hold = asyncio.Event()
    authorizer = make(entry(authority))
    calls = [asyncio.ensure_future(call(authorizer)) for _ in range(20)]
    await arrived(authority)
    authority.hold.set()
    assert await asyncio.gather(*calls) == [(200, "access-1")] * 20
    assert len(authority.asked) == 1


async def test_a_waiting_call_that_is_cancelled_takes_nothing_from_the_others(
    authority: Authority, make: Make, call: Call
) -> None:
    authority.hold = asyncio.Event()
    authorizer = make(entry(authority))
    first, second = (asyncio.ensure_future(call(authorizer)) for _ in range(2))
    await arrived(authority)
    first.cancel()
    await settle()
    authority.hold.set()
    assert await second == (200, "access-1")
    assert first.cancelled()
    assert len(authority.asked) == 1


async def test_servers_with_the_same_client_and_resource_share_a_token_and_others_do_not(
    authority: Authority, make: Make
) -> None:
    same, again = make(entry(authority)), make(entry(authority), server="other")
    assert await same.headers(GET) == await again.headers(GET)
    different = [
        make(entry(authority, scope="more")),
        make(entry(authority, client_id="somebody")),
        make(entry(authority, client_secret="guessed")),
        make(entry(authority), url=f"{authority.resource}/other"),
    ]
    tokens = {(await each.headers(GET))["Authorization"] for each in [same, *different]}
    assert len(tokens) == 5


@pytest.mark.parametrize(
    ("life", "kept", "renewed"),
    [
        (3600, 3569, 3570),
        (100, 89, 90),
        pytest.param("3600", 3569, 3570, id="as text"),
        (3600.5, 3570, 3570.5),
        (0, None, 0),
        (-5, None, 0),
    ],
)
async def test_a_token_is_renewed_a_little_before_it_expires(
    life: object, kept: float | None, renewed: float, authority: Authority, make: Make, clock: FakeClock
) -> None:
    authority.token = {"expires_in": life}
    authorizer = make(entry(authority))
    first = await authorizer.headers(GET)
    if kept is not None:
        await clock.advance(kept)
        assert await authorizer.headers(GET) == first
    await clock.advance(renewed - (kept or 0))
    assert await authorizer.headers(GET) == {"Authorization": "Bearer access-2"}


@pytest.mark.parametrize("life", [None, "soon", True, [], "inf", "nan", 10**400])
async def test_a_token_without_a_life_is_used_until_it_is_refused(
    life: object, authority: Authority, make: Make, call: Call, clock: FakeClock
) -> None:
    authority.token = {"expires_in": life}
    authorizer = make(entry(authority))
    await call(authorizer)
    await clock.advance(10**8)
    assert await call(authorizer) == (200, "access-1")
    authority.live.clear()
    assert await call(authorizer) == (200, "access-2")


async def test_a_token_that_is_about_to_expire_still_serves_while_renewing_it_fails(
    authority: Authority, make: Make, clock: FakeClock
) -> None:
    authorizer = make(entry(authority))
    first = await authorizer.headers(GET)
    authority.refusal = (503, {})
    await clock.advance(3580)
    assert await authorizer.headers(GET) == first
    await clock.advance(20)
    with pytest.raises(ConnectError, match="503") as raised:
        await authorizer.headers(GET)
    assert raised.value.retryable


async def test_many_calls_refused_together_renew_once(authority: Authority, make: Make, call: Call) -> None:
    authorizer = make(entry(authority))
    await call(authorizer)
    authority.live.clear()
    assert set(await asyncio.gather(*(call(authorizer) for _ in range(10)))) == {(200, "access-2")}
    assert len(authority.asked) == 2


async def test_a_server_that_refuses_whatever_it_is_given_costs_one_renewal_and_says_401(
    authority: Authority, make: Make, call: Call
) -> None:
    authority.accepts = lambda _token: False
    authorizer = make(entry(authority))
    assert (await call(authorizer))[0] == 401
    assert len(authority.asked) == 2


async def test_a_token_that_was_good_for_long_is_renewed_when_it_is_refused_in_the_end(
    authority: Authority, make: Make, call: Call, clock: FakeClock
) -> None:
    authorizer = make(entry(authority))
    for number in (1, 2, 3):
        assert await call(authorizer) == (200, f"access-{number}")
        await clock.advance(61)
        authority.live.clear()


async def test_a_scope_that_is_missing_is_for_the_entry_to_say(
    authority: Authority, make: Make, call: Call
) -> None:
    authorizer = make(entry(authority))
    assert (await call(authorizer, X_Wants_Scope="admin"))[0] == 403
    assert len(authority.asked) == 1


async def test_a_renewal_that_fails_fails_the_call(authority: Authority, make: Make, call: Call) -> None:
    authorizer = make(entry(authority))
    await call(authorizer)
    authority.live.clear()
    authority.refusal = (400, {"error": "invalid_client"})
    with pytest.raises(ConnectError, match="invalid_client"):
        await call(authorizer)
    authority.refusal = None
    assert await call(authorizer) == (200, "access-2")


# How the client shows who it is


@pytest.mark.parametrize(
    ("methods", "shown"),
    [
        (["client_secret_basic", "client_secret_post"], "basic"),
        (["client_secret_post"], "post"),
        (["private_key_jwt", "client_secret_basic"], "basic"),
        (None, "basic"),  # as RFC 8414 has it
    ],
)
async def test_the_metadata_of_the_issuer_says_how_the_secret_is_shown(
    methods: list[str] | None, shown: str, authority: Authority, make: Make, call: Call
) -> None:
    authority.metadata = {"token_endpoint_auth_methods_supported": methods}
    authorizer = make(entry(authority, token_url=None, issuer=authority.issuer))
    assert await call(authorizer) == (200, "access-1")
    [asked] = authority.asked
    if shown == "basic":
        assert basic(asked.authorization) == ("luthier", SECRET)
        assert "client_secret" not in asked.form
    else:
        assert asked.authorization == ""
        assert asked.form["client_secret"] == SECRET


async def test_metadata_is_asked_for_once(authority: Authority, make: Make, clock: FakeClock) -> None:
    authorizer = make(entry(authority, token_url=None, issuer=authority.issuer))
    await authorizer.headers(GET)
    await clock.advance(3600)
    await authorizer.headers(GET)
    assert len(authority.asked) == 2
    assert [path for path, _ in authority.requests] == ["/.well-known/oauth-authorization-server"]


async def test_an_issuer_that_takes_no_secret_is_told_none(authority: Authority, make: Make) -> None:
    authority.metadata = {"token_endpoint_auth_methods_supported": ["private_key_jwt"]}
    with pytest.raises(ConnectError, match="takes no client secret") as raised:
        await make(entry(authority, token_url=None, issuer=authority.issuer)).headers(GET)
    assert "private_key_jwt" in raised.value.hint
    assert authority.asked == []


@pytest.mark.parametrize(
    ("metadata", "said"),
    [
        ({"issuer": "https://elsewhere.example"}, "another issuer: 'https://elsewhere.example'"),
        ({"issuer": None}, "another issuer: 'none'"),
        ({"token_endpoint": None}, "no token endpoint"),
        ({"token_endpoint": 7}, "no token endpoint"),
        ({"status": 404}, "publishes no metadata"),
    ],
)
async def test_metadata_that_does_not_fit_its_issuer_gets_no_secret(
    metadata: dict[str, Any], said: str, authority: Authority, make: Make
) -> None:
    authority.metadata = metadata
    with pytest.raises(ConnectError, match=said) as raised:
        await make(entry(authority, token_url=None, issuer=authority.issuer)).headers(GET)
    assert not raised.value.retryable
    assert authority.asked == []


async def test_an_issuer_that_is_down_may_come_back(authority: Authority, make: Make) -> None:
    authority.metadata = {"status": 503}
    authorizer = make(entry(authority, token_url=None, issuer=authority.issuer))
    with pytest.raises(ConnectError) as raised:
        await authorizer.headers(GET)
    assert raised.value.retryable
    authority.metadata = {}
    assert await authorizer.headers(GET) == {"Authorization": "Bearer access-1"}


# What cannot work


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"client_id": ""}, "client id or the client secret is empty"),
        ({"client_secret": ""}, "client id or the client secret is empty"),
        ({"client_secret": None}, "client id or the client secret is empty"),
        ({"token_url": None}, "who may see the client secret"),
        ({"token_url": "ftp://x/token"}, "not an http or https URL"),
    ],
)
async def test_an_entry_that_cannot_work_says_so_at_once(
    changed: dict[str, Any], said: str, authority: Authority, make: Make
) -> None:
    with pytest.raises(ConnectError, match=said) as raised:
        make(entry(authority, **changed))
    assert not raised.value.retryable
    assert raised.value.hint


async def test_a_token_endpoint_that_is_not_there_may_come_back(
    authority: Authority, make: Make, client: HttpClient
) -> None:
    with pytest.raises(ConnectError) as raised:
        await make(entry(authority, token_url="http://127.0.0.1:9/token")).headers(GET)
    assert raised.value.retryable


async def test_a_token_endpoint_that_never_answers_is_given_up(
    authority: Authority, make: Make, clock: FakeClock
) -> None:
    authority.hold = asyncio.Event()
    waiting = asyncio.ensure_future(make(entry(authority)).headers(GET))
    await arrived(authority)
    await clock.advance(30)
    with pytest.raises(ConnectError, match="no answer within 30 s") as raised:
        await waiting
    assert raised.value.retryable
    authority.hold.set()
