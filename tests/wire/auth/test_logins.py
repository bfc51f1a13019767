"""Logins of people: the dance, the life of what it gave, and what happens where nobody can be asked."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from luthier.clock import FakeClock, settle
from luthier.errors import ConnectError, LoginNeededError
from luthier.secrets import Secret
from luthier.spec.project import Auth
from luthier.web import UrlRules
from luthier.wire.auth import Grant, MemoryTokens, Tokens
from luthier.wire.auth.factory import account_of
from luthier.wire.auth.tokens import Registration
from luthier.wire.http import Authorizer, OutgoingHttp
from tests.wire.auth.authority import Authority, basic
from tests.wire.auth.browser import Browser

Make = Callable[..., Authorizer]
Call = Callable[..., Awaitable[tuple[int, str]]]

AUTH = Auth(type="oauth", interactive=True)
GET = OutgoingHttp("GET", "http://127.0.0.1/tools")


@pytest.fixture
def browser() -> Browser:
    return Browser()


@pytest.fixture
def person(make: Make, browser: Browser) -> Callable[..., Authorizer]:
    """An Authorizer that may ask a person."""
    return lambda auth=AUTH, **facts: make(auth, interactive_allowed=True, show=browser, **facts)


def key(authority: Authority, auth: Auth = AUTH) -> str:
    return account_of(auth, server="lute", url=authority.resource).key


async def kept(authority: Authority, store: MemoryTokens, auth: Auth = AUTH) -> Grant:
    found = await store.load(key(authority, auth))
    assert found is not None
    return found


async def log_in(authority: Authority, store: MemoryTokens, clock: FakeClock, **changed: Any) -> Tokens:
    """What an earlier login left, an hour long."""
    given = authority.issue(refresh=True)
    facts: dict[str, Any] = {
        "access": Secret(given["access_token"]),
        "refresh": Secret(given["refresh_token"]),
        "scope": "tools",
        "expires_at": clock.now() + 3600,
        "renew_at": clock.now() + 3570,
    }
    tokens = Tokens(**(facts | changed))
    grant = Grant(
        issuer=authority.issuer,
        token_endpoint=f"{authority.issuer}/token",
        registration=Registration(client_id="client-1", redirect_uri="http://127.0.0.1:1/callback"),
        resource=authority.resource,
        tokens=tokens,
        scope=tokens.scope,
    )
    await store.save(key(authority), grant)
    return tokens


# The dance


async def test_the_first_call_leads_to_a_login_and_then_goes_through(
    authority: Authority, person: Make, call: Call, browser: Browser, store: MemoryTokens
) -> None:
    authorizer = person()
    assert await call(authorizer) == (200, "access-1")
    query = browser.query()
    assert query["code_challenge_method"] == "S256"
    assert query["resource"] == authority.resource
    assert query["scope"] == "tools"
    assert query["redirect_uri"].startswith("http://127.0.0.1:")
    [asked] = authority.asked
    assert asked.form["grant_type"] == "authorization_code"
    assert asked.form["resource"] == authority.resource
    assert asked.form["client_secret"] == "dcr-canary"
    assert authority.registered[0]["application_type"] == "native"
    assert "go back to the terminal" in browser.pages[0]
    grant = await kept(authority, store)
    assert (grant.issuer, grant.token_endpoint) == (authority.issuer, f"{authority.issuer}/token")
    assert grant.registration.client_secret == Secret("dcr-canary")
    assert grant.tokens is not None
    assert grant.tokens.scope == "tools"
    assert await call(authorizer) == (200, "access-1")
    assert len(browser.opened) == 1


async def test_no_credential_goes_where_it_does_not_belong(
    authority: Authority, person: Make, call: Call
) -> None:
    await call(person())
    authority.live.clear()
    places = {path: given for path, given in authority.requests if path != "/mcp"}
    assert places == {
        "/.well-known/oauth-protected-resource/mcp": "",
        "/.well-known/oauth-authorization-server": "",
    }


async def test_many_calls_make_one_login(
    authority: Authority, person: Make, call: Call, browser: Browser
) -> None:
    authorizer = person()
    assert set(await asyncio.gather(*(call(authorizer) for _ in range(8)))) == {(200, "access-1")}
    assert len(browser.opened) == 1


async def test_the_scope_of_the_entry_is_asked_for(
    authority: Authority, person: Make, call: Call, browser: Browser
) -> None:
    await call(person(msgspec.structs.replace(AUTH, scope="mine")))
    assert browser.query()["scope"] == "mine"


async def test_a_client_of_the_entry_is_not_registered_anew(
    authority: Authority, person: Make, call: Call, browser: Browser
) -> None:
    auth = Auth(type="oauth", interactive=True, client_id="mine", client_secret="pre-canary")
    assert await call(person(auth)) == (200, "access-1")
    assert authority.registered == []
    assert browser.query()["client_id"] == "mine"
    assert basic(authority.asked[0].authorization) == ("mine", "pre-canary")


async def test_a_client_of_the_entry_shows_its_secret_as_the_server_takes_it(
    authority: Authority, person: Make, call: Call
) -> None:
    authority.metadata = {"token_endpoint_auth_methods_supported": ["client_secret_post"]}
    await call(person(Auth(type="oauth", interactive=True, client_id="mine", client_secret="pre-canary")))
    assert authority.asked[0].form["client_secret"] == "pre-canary"


async def test_a_metadata_document_names_the_client_where_the_server_reads_it(
    authority: Authority, person: Make, call: Call, browser: Browser
) -> None:
    authority.metadata = {"client_id_metadata_document_supported": True}
    document = "https://luthier.example/client.json"
    await call(person(Auth(type="oauth", interactive=True, client_id=document)))
    assert browser.query()["client_id"] == document
    assert authority.registered == []


# What is refused

REFUSED: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "no word about PKCE": ({"code_challenge_methods_supported": None}, {}, "PKCE"),
    "plain PKCE only": ({"code_challenge_methods_supported": ["plain"]}, {}, "PKCE"),
    "metadata of another issuer": ({"issuer": "https://evil.example"}, {}, "login failed"),
    "an answer of another issuer": ({}, {"iss": "https://evil.example"}, "another issuer"),
    "an answer that hides its issuer": ({}, {"iss": None}, "another issuer"),
    "an error of another issuer": ({}, {"iss": "https://evil.example", "error": "canary"}, "another issuer"),
    "an answer of no": ({}, {"code": None, "error": "access_denied"}, "was refused: access_denied"),
    "no code": ({}, {"code": None}, "no code"),
    "a code that is not known": ({}, {"code": "stolen-canary"}, "400"),
}


@pytest.mark.parametrize("case", REFUSED)
async def test_an_authorization_server_that_is_not_to_be_trusted_gets_no_code(
    case: str, authority: Authority, person: Make, call: Call, store: MemoryTokens
) -> None:
    authority.metadata, authority.callback, said = REFUSED[case]
    if case == "a code that is not known":
        authority.refusal = (400, {"error": "invalid_grant", "error_description": "code stolen-canary"})
    with pytest.raises(ConnectError, match=said) as raised:
        await call(person())
    assert not raised.value.retryable
    assert "canary" not in str(raised.value)
    assert case == "a code that is not known" or authority.asked == []
    assert await store.load(key(authority)) is None


async def test_without_pkce_not_even_a_registration_is_made(
    authority: Authority, person: Make, call: Call, browser: Browser
) -> None:
    authority.metadata = {"code_challenge_methods_supported": None}
    with pytest.raises(ConnectError):
        await call(person())
    assert authority.registered == []
    assert browser.opened == []


@pytest.mark.parametrize("endpoint", ["token_endpoint", "registration_endpoint", "authorization_endpoint"])
async def test_addresses_that_lead_inside_are_not_asked(
    endpoint: str, authority: Authority, person: Make, call: Call, browser: Browser
) -> None:
    # The issuer is named by the entry, so that it may be on this machine; what it names may not.
    authority.metadata = {endpoint: "https://169.254.169.254/latest"}
    auth = msgspec.structs.replace(AUTH, issuer=authority.issuer)
    with pytest.raises(ConnectError, match="it is private"):
        await call(person(auth, rules=UrlRules.of(authority.resource, authority.issuer, production=False)))
    assert browser.opened == [] or endpoint == "token_endpoint"
    assert authority.asked == []


async def test_a_resource_that_names_a_private_issuer_is_not_followed(
    authority: Authority, person: Make, call: Call
) -> None:
    with pytest.raises(ConnectError, match="it is private"):
        await call(person(rules=UrlRules.of(authority.resource, production=False)))
    assert all(not path.startswith("/.well-known/oauth-authorization") for path, _ in authority.requests)


async def test_another_issuer_than_the_one_of_the_entry_is_refused(
    authority: Authority, person: Make, call: Call
) -> None:
    auth = msgspec.structs.replace(AUTH, issuer="https://auth.example")
    with pytest.raises(ConnectError, match="not the one that the entry names"):
        await call(person(auth))
    assert authority.registered == []


async def test_a_client_of_the_entry_is_not_taken_to_another_issuer_than_before(
    authority: Authority, person: Make, call: Call, store: MemoryTokens, clock: FakeClock
) -> None:
    auth = Auth(type="oauth", interactive=True, client_id="mine", client_secret="pre-canary")
    await log_in(authority, store, clock)
    before = await kept(authority, store)
    moved = msgspec.structs.replace(before, issuer="https://old.example", tokens=None)
    await store.save(key(authority, auth), moved)
    with pytest.raises(ConnectError, match="another authorization server than the one that knows"):
        await call(person(auth))
    assert authority.registered == []


async def test_a_registration_that_is_refused_ends_the_login(
    authority: Authority, person: Make, call: Call
) -> None:
    authority.registration = {"status": 403, "error": "access_denied"}
    with pytest.raises(ConnectError, match=r"registration endpoint .* answered 403"):
        await call(person())


async def test_nobody_who_logs_in_ends_the_wait(
    authority: Authority, person: Make, call: Call, browser: Browser, clock: FakeClock
) -> None:
    browser.absent = True
    waiting = asyncio.ensure_future(call(person()))
    async with asyncio.timeout(10):
        while not browser.opened:  # noqa: ASYNC110  (requests on real sockets lead there)
            await asyncio.sleep(0)
    await clock.advance(300)
    with pytest.raises(ConnectError, match="nobody logged in within 300 s"):
        await waiting


# The life of the tokens


async def test_after_a_restart_the_refresh_token_serves_and_no_browser_is_opened(
    authority: Authority, person: Make, call: Call, browser: Browser, store: MemoryTokens, clock: FakeClock
) -> None:
    await log_in(authority, store, clock)
    await clock.advance(4000)
    assert await call(person()) == (200, "access-2")
    [asked] = authority.asked
    assert asked.form == {
        "grant_type": "refresh_token",
        "refresh_token": "refresh-1",
        "resource": authority.resource,
        "client_id": "client-1",
    }
    assert browser.opened == []
    assert authority.requests == [("/mcp", "Bearer access-2")]
    grant = await kept(authority, store)
    assert grant.tokens is not None
    assert (grant.tokens.refresh, grant.tokens.scope) == (Secret("refresh-2"), "tools")


async def test_a_refresh_token_that_is_not_rotated_is_kept(
    authority: Authority, make: Make, call: Call, store: MemoryTokens, clock: FakeClock
) -> None:
    await log_in(authority, store, clock)
    authority.token = {"refresh_token": None}
    await clock.advance(4000)
    assert await call(make(AUTH)) == (200, "access-2")
    grant = await kept(authority, store)
    assert grant.tokens is not None
    assert grant.tokens.refresh == Secret("refresh-1")


async def test_one_renewal_serves_any_number_of_waiting_calls(
    authority: Authority, make: Make, call: Call, store: MemoryTokens, clock: FakeClock
) -> None:
    await log_in(authority, store, clock)
    await clock.advance(3575)
    authorizer = make(AUTH)
    assert set(await asyncio.gather(*(call(authorizer) for _ in range(10)))) == {(200, "access-2")}
    authority.live.clear()
    assert set(await asyncio.gather(*(call(authorizer) for _ in range(10)))) == {(200, "access-3")}
    assert len(authority.asked) == 2


async def test_two_that_share_a_store_renew_once(
    authority: Authority, make: Make, call: Call, store: MemoryTokens, clock: FakeClock
) -> None:
    await log_in(authority, store, clock)
    one, other = make(AUTH), make(AUTH)
    assert set(await asyncio.gather(call(one), call(other))) == {(200, "access-1")}
    authority.live.clear()
    assert set(await asyncio.gather(call(one), call(other))) == {(200, "access-2")}
    await clock.advance(3575)
    assert set(await asyncio.gather(call(one), call(other))) == {(200, "access-3")}
    assert len(authority.asked) == 2


async def test_a_token_that_cannot_be_renewed_is_used_until_it_is_refused(
    authority: Authority, make: Make, call: Call, store: MemoryTokens, clock: FakeClock
) -> None:
    await log_in(authority, store, clock, refresh=None)
    await clock.advance(10_000)
    authorizer = make(AUTH)
    assert await call(authorizer) == (200, "access-1")
    authority.live.clear()
    with pytest.raises(LoginNeededError, match="cannot be renewed"):
        await call(authorizer)
    assert authority.asked == []


@pytest.mark.parametrize("code", ["invalid_grant", "invalid_client", "unauthorized_client"])
async def test_a_login_that_was_revoked_is_forgotten_and_says_what_to_run(
    code: str, authority: Authority, make: Make, call: Call, store: MemoryTokens, clock: FakeClock
) -> None:
    await log_in(authority, store, clock)
    authority.refusal = (400, {"error": code})
    await clock.advance(4000)
    authorizer = make(AUTH)
    with pytest.raises(LoginNeededError, match="ended or was revoked") as raised:
        await call(authorizer)
    assert not raised.value.retryable
    assert raised.value.hint == "Run: luthier servers login lute"
    grant = await kept(authority, store)
    assert grant.tokens is None
    assert grant.registration.client_id == "client-1"
    with pytest.raises(LoginNeededError, match="nobody is logged in"):
        await call(authorizer)
    assert len(authority.asked) == 1


async def test_a_new_login_is_seen_by_who_is_running(
    authority: Authority, make: Make, call: Call, store: MemoryTokens, clock: FakeClock
) -> None:
    await log_in(authority, store, clock)
    authorizer = make(AUTH)
    authority.refusal = (400, {"error": "invalid_grant"})
    authority.live.clear()
    with pytest.raises(LoginNeededError):
        await call(authorizer)
    await log_in(authority, store, clock)
    assert await call(authorizer) == (200, "access-2")


async def test_a_registration_that_expired_is_not_sent(
    authority: Authority, make: Make, call: Call, store: MemoryTokens, clock: FakeClock
) -> None:
    await log_in(authority, store, clock)
    grant = await kept(authority, store)
    client = msgspec.structs.replace(grant.registration, expires_at=clock.now() + 10)
    await store.save(key(authority), msgspec.structs.replace(grant, registration=client))
    await clock.advance(4000)
    with pytest.raises(LoginNeededError):
        await call(make(AUTH))
    assert authority.asked == []


async def test_a_token_endpoint_in_trouble_costs_no_login(
    authority: Authority, make: Make, call: Call, store: MemoryTokens, clock: FakeClock
) -> None:
    await log_in(authority, store, clock)
    authority.refusal = (503, {})
    await clock.advance(3575)
    authorizer = make(AUTH)
    assert await call(authorizer) == (200, "access-1")  # it still holds
    await clock.advance(60)
    with pytest.raises(ConnectError, match="503") as raised:
        await call(authorizer)
    assert raised.value.retryable
    authority.refusal = None
    assert await call(authorizer) == (200, "access-2")


async def test_a_server_that_refuses_whatever_it_is_given_costs_one_renewal(
    authority: Authority, make: Make, call: Call, store: MemoryTokens, clock: FakeClock
) -> None:
    await log_in(authority, store, clock)
    authority.accepts = lambda _token: False
    assert (await call(make(AUTH)))[0] == 401
    assert len(authority.asked) == 1


async def test_a_login_that_has_ended_leads_to_another_where_a_person_is(
    authority: Authority, person: Make, call: Call, browser: Browser, store: MemoryTokens, clock: FakeClock
) -> None:
    await log_in(authority, store, clock, refresh=None)
    authority.live.clear()
    assert await call(person()) == (200, "access-2")
    assert len(browser.opened) == 1


async def test_a_registration_is_used_again_while_its_port_is_free(
    authority: Authority, person: Make, call: Call, browser: Browser
) -> None:
    authority.token = {"refresh_token": None}
    authorizer = person()
    await call(authorizer)
    authority.live.clear()
    assert (await call(authorizer))[0] == 200
    assert browser.query(0)["redirect_uri"] == browser.query(1)["redirect_uri"]
    assert browser.query(0)["client_id"] == browser.query(1)["client_id"] == "client-1"
    assert len(authority.registered) == 1


async def test_a_registration_is_made_anew_when_it_expired(
    authority: Authority, person: Make, call: Call, clock: FakeClock
) -> None:
    authority.token = {"refresh_token": None}
    authority.registration = {"client_secret_expires_at": int(clock.now()) + 10}
    authorizer = person()
    await call(authorizer)
    await clock.advance(11)
    authority.live.clear()
    await call(authorizer)
    assert len(authority.registered) == 2


async def test_another_issuer_means_another_registration(
    authority: Authority, person: Make, call: Call, store: MemoryTokens, browser: Browser
) -> None:
    authorizer = person()
    await call(authorizer)
    grant = await kept(authority, store)
    moved = msgspec.structs.replace(grant, issuer="https://old.example", tokens=None)
    await store.save(key(authority), moved)
    authority.live.clear()
    await call(person())
    assert len(authority.registered) == 2
    assert browser.query()["client_id"] == "client-2"


# Where nobody can be asked


async def test_headless_nothing_is_sent_and_the_command_is_named(
    authority: Authority, make: Make, call: Call
) -> None:
    with pytest.raises(LoginNeededError) as raised:
        await call(make(AUTH))
    assert not raised.value.retryable
    assert "luthier servers login lute" in str(raised.value)
    assert authority.requests == []


# Scopes that are missing


async def test_a_missing_scope_widens_the_login(
    authority: Authority, person: Make, call: Call, browser: Browser
) -> None:
    authorizer = person()
    await call(authorizer)
    status, _ = await call(authorizer, X_Wants_Scope="admin write")
    assert status == 403  # the double asks for the scope whatever it is given
    assert browser.query()["scope"] == "tools admin write"
    assert len(browser.opened) == 2
    await call(authorizer, X_Wants_Scope="admin")
    assert len(browser.opened) == 2  # it was asked for already
    assert await call(authorizer) == (200, "access-2")


async def test_headless_a_missing_scope_is_named_and_asked_for_at_the_next_login(
    authority: Authority,
    make: Make,
    person: Make,
    call: Call,
    browser: Browser,
    store: MemoryTokens,
    clock: FakeClock,
) -> None:
    await log_in(authority, store, clock)
    authorizer = make(AUTH)
    with pytest.raises(LoginNeededError, match="'admin' is missing"):
        await call(authorizer, X_Wants_Scope="admin")
    assert (await kept(authority, store)).wanted == "admin"
    assert await call(authorizer) == (200, "access-1")  # for what it is good for it stays
    authority.live.clear()
    grant = await kept(authority, store)
    assert grant.tokens is not None
    dead = msgspec.structs.replace(grant, tokens=msgspec.structs.replace(grant.tokens, refresh=None))
    await store.save(key(authority), dead)
    await call(person())
    assert browser.query()["scope"].split() == ["tools", "admin"]
    assert (await kept(authority, store)).wanted is None


async def test_a_wider_login_made_by_somebody_else_is_used(
    authority: Authority, make: Make, call: Call, store: MemoryTokens, clock: FakeClock
) -> None:
    await log_in(authority, store, clock)
    authorizer = make(AUTH)
    await call(authorizer)
    await log_in(authority, store, clock, scope="tools admin")
    assert (await call(authorizer, X_Wants_Scope="admin"))[0] == 403
    assert authority.requests[-1] == ("/mcp", "Bearer access-2")


async def test_a_403_that_asks_for_no_scope_changes_nothing(make: Make) -> None:
    authorizer = make(AUTH)
    assert not await authorizer.challenged(403, {}, {})
    assert not await authorizer.challenged(407, {}, {})


# Secrets


async def test_nothing_secret_is_logged_or_shown(
    authority: Authority, person: Make, call: Call, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    authority.token = {"access_token": "access-canary", "refresh_token": "refresh-canary"}
    authority.accepts = lambda token: token == "access-canary"
    authorizer = person()
    await call(authorizer)
    authority.refusal = (400, {"error": "invalid_grant", "error_description": "code-2-canary dcr-canary"})
    authority.accepts = lambda _token: False
    with pytest.raises(ConnectError) as raised:
        await call(authorizer)
    await settle()
    shown = f"{raised.value} {raised.value!r} {raised.value.facts()} {vars(authorizer)} {caplog.text}"
    assert "canary" not in shown
    assert "canary" not in f"{raised.value} {raised.value.__cause__}"


async def test_a_login_that_nobody_needs_any_more_is_no_longer_waited_for(
    person: Make, call: Call, browser: Browser, store: MemoryTokens
) -> None:
    browser.absent = True
    store.pool.close()  # nothing is under way yet
    calling = asyncio.ensure_future(call(person()))
    async with asyncio.timeout(10):
        while not browser.opened:  # noqa: ASYNC110  (a browser has no event)
            await asyncio.sleep(0.005)
        store.pool.close()
        with pytest.raises(asyncio.CancelledError):
            await calling
    browser.absent = False
    assert await call(person()) == (200, "access-1")
    store.pool.close()  # it has ended
