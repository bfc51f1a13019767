"""Trouble on the way to tokens: each ends in one readable error, and none looks like a call that was sent."""

from __future__ import annotations

import asyncio
import fcntl
import logging
import socket
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from aiohttp import web

from luthier.errors import ConnectError, LoginNeededError, WireError
from luthier.secrets import Secret
from luthier.spec.project import Auth
from luthier.web import UrlRules
from luthier.wire.auth import FileTokens, Grant, Means, MemoryTokens, Tokens, TokenStore, log_in
from luthier.wire.auth.factory import account_of
from luthier.wire.auth.tokens import Registration
from luthier.wire.http import Authorizer, HttpClient, OutgoingHttp, TlsFiles
from tests.wire.auth.browser import Browser

if TYPE_CHECKING:
    from pathlib import Path

    from luthier.clock import FakeClock
    from tests.wire.auth.authority import Authority

Make = Callable[..., Authorizer]
Call = Callable[..., Awaitable[tuple[int, str]]]

AUTH = Auth(type="oauth", interactive=True)
GET = OutgoingHttp("GET", "http://127.0.0.1/tools")


class Broken(MemoryTokens):
    """A store on a disk that is full, or that may not be read."""

    def __init__(self, *, load: bool = True, save: bool = True) -> None:
        super().__init__()
        self.loads, self.saves = load, save

    async def load(self, key: str) -> Grant | None:
        if not self.loads:
            raise PermissionError(13, "Permission denied")
        return await super().load(key)

    async def save(self, key: str, grant: Grant) -> None:
        if not self.saves:
            raise OSError(28, "No space left on device")
        await super().save(key, grant)


def credentials(authority: Authority, **changed: Any) -> Auth:
    auth = Auth(type="oauth", client_id="c", client_secret="s-canary", token_url=f"{authority.issuer}/token")
    return msgspec.structs.replace(auth, **changed)


async def keep(store: TokenStore, authority: Authority) -> None:
    """A login whose token has expired."""
    given = authority.issue(refresh=True)
    access, refresh = Secret(given["access_token"]), Secret(given["refresh_token"])
    grant = Grant(
        issuer=authority.issuer,
        token_endpoint=f"{authority.issuer}/token",
        registration=Registration(client_id="client-1"),
        tokens=Tokens(access=access, refresh=refresh, expires_at=1.0, renew_at=1.0, scope="tools"),
    )
    await store.save(account_of(AUTH, server="lute", url=authority.resource).key, grant)


# What the token endpoint does

ANSWERS: dict[str, tuple[Callable[[], web.Response], str, bool]] = {
    "a redirect elsewhere": (
        lambda: web.Response(status=307, headers={"Location": "https://evil.example/token"}),
        "answered 307",
        False,
    ),
    "a login page": (lambda: web.Response(text="<html>Log in</html>"), "without a usable token", False),
    "too much": (lambda: web.Response(body=b"x" * 2_000_000), "no token could be got", True),
    "what does not unpack": (
        lambda: web.Response(body=b"junk", headers={"Content-Encoding": "gzip"}),
        "no token could be got",
        True,
    ),
}


@pytest.mark.parametrize("case", ANSWERS)
async def test_an_answer_that_holds_no_token_is_told_as_what_it_is(
    case: str, authority: Authority, make: Make
) -> None:
    authority.answer, said, retryable = ANSWERS[case]
    with pytest.raises(ConnectError, match=said) as raised:
        await make(credentials(authority)).headers(GET)
    assert raised.value.retryable is retryable
    assert raised.value.phase == "login"
    assert not raised.value.sent
    assert "canary" not in str(raised.value)
    assert authority.requests == []


async def test_a_token_endpoint_that_hangs_up_may_come_back(authority: Authority, make: Make) -> None:
    async def hang_up(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        with pytest.raises(ConnectError) as raised:
            await make(credentials(authority, token_url=f"http://127.0.0.1:{port}/token")).headers(GET)
    assert raised.value.retryable
    assert not raised.value.sent


async def test_a_name_that_resolves_to_a_private_address_is_not_connected_to(
    authority: Authority, make: Make
) -> None:
    # The name of this machine is no private one by its looks, and its address is.
    here = socket.gethostname()
    with socket.create_server(("", 0)) as listener:
        listener.setblocking(False)  # noqa: FBT003  (as the socket module has it)
        url = f"https://{here}:{listener.getsockname()[1]}/token"
        authority.metadata = {"token_endpoint": url}
        auth = credentials(authority, token_url=None, issuer=authority.issuer)
        with pytest.raises(WireError):
            await make(auth, rules=UrlRules.of(authority.issuer, production=False)).headers(GET)
        with pytest.raises(BlockingIOError):
            listener.accept()


# What the store does


async def test_tokens_that_cannot_be_kept_serve_as_long_as_the_process(
    authority: Authority, make: Make, call: Call, caplog: pytest.LogCaptureFixture
) -> None:
    store = Broken()
    await keep(store, authority)
    store.saves = False
    authorizer = make(AUTH, tokens=store)
    with caplog.at_level(logging.WARNING, "luthier.wire.auth"):
        assert await call(authorizer) == (200, "access-2")
    assert "No space left" in caplog.text
    assert await call(authorizer) == (200, "access-2")
    assert len(authority.asked) == 1


async def test_a_store_that_cannot_be_read_fails_the_call(authority: Authority, make: Make) -> None:
    with pytest.raises(ConnectError, match="Permission denied") as raised:
        await make(AUTH, tokens=Broken(load=False)).headers(GET)
    assert not raised.value.retryable


async def test_a_store_that_fails_under_a_renewal_fails_the_call(authority: Authority, make: Make) -> None:
    store = Broken()
    await keep(store, authority)
    authorizer = make(AUTH, tokens=store)
    authority.refusal = (400, {"error": "invalid_grant"})
    store.saves = False
    with pytest.raises(ConnectError, match="No space left"):
        await authorizer.headers(GET)


async def test_a_process_that_never_lets_go_does_not_hold_up_a_call_for_ever(
    authority: Authority, make: Make, clock: FakeClock, tmp_path: Path
) -> None:
    store = FileTokens(tmp_path / "tokens.json", clock)
    await keep(store, authority)
    key = account_of(AUTH, server="lute", url=authority.resource).key
    with (tmp_path / f"tokens-{key}.lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        waiting = asyncio.ensure_future(make(AUTH, tokens=store).headers(GET))
        await clock.advance(91)
        with pytest.raises(ConnectError, match="another process") as raised:
            await waiting
    assert raised.value.retryable


async def test_a_login_that_somebody_ended_meanwhile_is_seen(
    authority: Authority, make: Make, store: MemoryTokens, clock: FakeClock
) -> None:
    await keep(store, authority)
    authorizer = make(AUTH)
    headers = await authorizer.headers(GET)
    key = account_of(AUTH, server="lute", url=authority.resource).key
    grant = await store.load(key)
    assert grant is not None
    await store.save(key, msgspec.structs.replace(grant, tokens=None))
    with pytest.raises(LoginNeededError, match="has ended"):
        await authorizer.challenged(401, {}, headers)
    with pytest.raises(LoginNeededError, match="nobody"):
        await authorizer.challenged(401, {}, headers)


# Logins that were asked for


def means(authority: Authority, client: HttpClient, clock: FakeClock) -> Means:
    return Means(
        "lute",
        authority.resource,
        client,
        clock,
        rules=UrlRules(allow_private=True, production=False),
        tls=TlsFiles(),
        proxy=None,
    )


async def test_a_login_is_kept(
    authority: Authority, client: HttpClient, clock: FakeClock, make: Make, call: Call, store: MemoryTokens
) -> None:
    grant = await log_in(AUTH, means(authority, client, clock), store, Browser())
    assert grant.tokens is not None
    assert await call(make(AUTH)) == (200, "access-1")


async def test_a_login_that_cannot_be_kept_is_an_error(
    authority: Authority, client: HttpClient, clock: FakeClock
) -> None:
    with pytest.raises(ConnectError, match="cannot be kept: No space left") as raised:
        await log_in(AUTH, means(authority, client, clock), Broken(save=False), Browser())
    assert raised.value.hint


async def test_a_server_that_sends_strangers_away_elsewhere_may_still_be_logged_in_to(
    authority: Authority, client: HttpClient, clock: FakeClock, store: MemoryTokens
) -> None:
    authority.elsewhere = "https://login.example/"
    grant = await log_in(AUTH, means(authority, client, clock), store, Browser())
    assert grant.tokens is not None
    assert store.pool.of("k") is store.pool.of("k")


async def test_a_login_without_metadata_goes_to_the_server_itself(
    authority: Authority, client: HttpClient, clock: FakeClock, store: MemoryTokens
) -> None:
    """As the revision of 2025-03-26 has it, for servers that publish nothing."""
    browser = Browser()
    own = f"{authority.issuer}/mcp"
    facts = Means(
        "lute",
        own,
        client,
        clock,
        rules=UrlRules(allow_private=True, production=False),
        tls=TlsFiles(),
        proxy=None,
    )
    authority.metadata = {"status": 404}
    authority.callback = {"iss": None}
    grant = await log_in(AUTH, facts, store, browser)
    assert grant.tokens is not None
    assert grant.token_endpoint == f"{authority.issuer}/token"
    assert grant.issuer == authority.issuer
    assert browser.query()["resource"] == own
