"""Bearer tokens and signatures: what goes out, and that nothing goes out without them."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from luthier.errors import ConnectError
from luthier.secrets import Secret
from luthier.spec.project import Auth
from luthier.wire.auth.hmac import signature
from luthier.wire.http import Authorizer, OutgoingHttp

if TYPE_CHECKING:
    from luthier.clock import FakeClock

Make = Callable[..., Authorizer]

GET = OutgoingHttp("GET", "http://127.0.0.1/tools")
POST = OutgoingHttp("POST", "http://127.0.0.1/tools/add", b'{"name":"add"}')


@pytest.mark.parametrize("body", [b"", b"{}", "ü\n".encode(), b"\x00\xff" * 1000])
@pytest.mark.parametrize("key", ["shh", "schlüssel", "x" * 200])
def test_a_signature_covers_the_time_a_dot_and_the_raw_body(key: str, body: bytes) -> None:
    headers = signature(Secret(key), body, at=1705315200.9)
    expected = hmac.digest(key.encode(), b"1705315200." + body, hashlib.sha256).hex()
    assert headers == {
        "X-Conductor-Timestamp": "1705315200",
        "X-Conductor-Signature": f"sha256={expected}",
    }


def test_the_known_signature_of_an_empty_body() -> None:
    # printf '1705315200.' | openssl dgst -sha256 -hmac shh
    headers = signature(Secret("shh"), b"", at=1705315200)
    assert (
        headers["X-Conductor-Signature"]
        == "sha256=79cdd68519bd28366fc0015cc412e7bca447036b55bcb589b609a32dea8bc309"
    )


@pytest.mark.parametrize(
    "auth",
    [
        Auth(),
        Auth(type="bearer", token="abc"),
        Auth(type="oauth", interactive=True),
        Auth(type="oauth", client_id="me", client_secret="s", token_url="http://127.0.0.1/token"),
    ],
)
async def test_beside_a_callers_own_credentials_nothing_but_the_signature_is_left(
    make: Make, auth: Auth
) -> None:
    assert make(auth).signing() is None
    signing = make(auth, secret="shh").signing()
    assert signing is not None
    assert (await signing.headers(POST)).keys() == {"X-Conductor-Timestamp", "X-Conductor-Signature"}


async def test_a_secret_signs_besides_what_auth_adds(make: Make, clock: FakeClock) -> None:
    signed = make(Auth(type="bearer", token="abc"), secret="shh")
    await clock.advance(5)
    headers = await signed.headers(POST)
    assert headers["Authorization"] == "Bearer abc"
    assert headers == {
        "Authorization": "Bearer abc",
        **signature(Secret("shh"), POST.body, at=clock.now()),
    }
    assert not await signed.challenged(401, {}, headers)


async def test_a_get_is_signed_with_an_empty_body(make: Make, clock: FakeClock) -> None:
    headers = await make(Auth(), secret="shh").headers(GET)
    assert headers == signature(Secret("shh"), b"", at=clock.now())


async def test_without_auth_nothing_is_added_and_nothing_retried(make: Make) -> None:
    plain = make(Auth())
    assert await plain.headers(GET) == {}
    assert not await plain.challenged(401, {"WWW-Authenticate": "Bearer"}, {})


@pytest.mark.parametrize("token", ["", None, "a b", "a\r\nX-Evil: 1", "ü", "\x7f"])
async def test_a_bearer_token_that_cannot_be_sent_fails_closed(make: Make, token: str | None) -> None:
    with pytest.raises(ConnectError) as raised:
        await make(Auth(type="bearer", token=token)).headers(GET)
    assert not raised.value.retryable
    assert "auth.token" in raised.value.hint
    assert not token or token not in str(raised.value)


async def test_an_empty_signing_secret_fails_closed(make: Make) -> None:
    with pytest.raises(ConnectError, match="empty") as raised:
        make(Auth(), secret="")
    assert not raised.value.retryable
