"""What token endpoints answer, and that an error never shows what was sent."""

from __future__ import annotations

import base64
import json
from typing import Any
from urllib.parse import quote, quote_plus

import pytest

from luthier.errors import ConnectError
from luthier.secrets import Secret
from luthier.wire.auth.challenge import Challenge, read_challenge, union
from luthier.wire.auth.fetch import Fetched
from luthier.wire.auth.registration import read_registration
from luthier.wire.auth.replies import TokenError, read_tokens
from luthier.wire.auth.tokens import Tokens

URL = "https://user:pw@auth.example/token?key=canary"
CANARY = "c&n+ry /%7"


def reply(body: Any, status: int = 200) -> Fetched:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Fetched(status, {}, raw)


def read(body: Any, status: int = 200, *secrets: str) -> Tokens:
    return read_tokens(
        reply(body, status), url=URL, server="lute", now=1000.0, secrets=[None, *map(Secret, secrets)]
    )


def test_a_whole_reply_is_read() -> None:
    tokens = read(
        {"access_token": "a", "token_type": "bEaReR", "expires_in": 100, "refresh_token": "r", "scope": "x y"}
    )
    assert tokens == Tokens(
        access=Secret("a"), refresh=Secret("r"), scope="x y", expires_at=1100.0, renew_at=1090.0
    )
    assert "Secret(…)" in repr(tokens)


@pytest.mark.parametrize(
    "body", [{"access_token": "a"}, {"access_token": "a", "refresh_token": "", "scope": ""}]
)
def test_what_is_missing_is_not_known(body: dict[str, Any]) -> None:
    assert read(body, 201) == Tokens(access=Secret("a"))


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>canary</html>",
        b"[]",
        b"{",
        b"\xff",
        b'{"access_token":' * 2000,
        {},
        {"access_token": ""},
        {"access_token": None},
        {"access_token": 7},
        {"access_token": "canary\r\nX: 1"},
        {"access_token": "can ary"},
        {"access_token": "canäry"},
        {"access_token": "canary", "token_type": "DPoP"},
        {"access_token": "canary", "token_type": 7},
    ],
    ids=range(15),
)
def test_a_reply_without_a_usable_token_is_an_error_that_shows_nothing_of_it(body: Any) -> None:
    with pytest.raises(TokenError) as raised:
        read(body)
    assert not raised.value.retryable
    assert "canary" not in str(raised.value)
    assert "https://auth.example/token" in str(raised.value)
    assert "pw" not in str(raised.value)


@pytest.mark.parametrize(
    ("status", "body", "code", "retryable"),
    [
        (400, {"error": "invalid_grant"}, "invalid_grant", False),
        (401, {"error": "invalid_client"}, "invalid_client", False),
        (200, {"error": "invalid_scope", "access_token": "a"}, "invalid_scope", False),
        (400, {"error": "temporarily_unavailable"}, "temporarily_unavailable", True),
        (400, {"error": "<script>"}, "", False),
        (400, {"error": ["x"]}, "", False),
        (403, b"<html>", "", False),
        (302, b"", "", False),
        (429, {}, "", True),
        (408, {}, "", True),
        (500, {}, "", True),
        (503, b"", "", True),
    ],
)
def test_a_refusal_keeps_its_word_and_says_whether_it_may_heal(
    status: int, body: Any, code: str, *, retryable: bool
) -> None:
    with pytest.raises(TokenError, match=str(status)) as raised:
        read(body, status)
    assert raised.value.code == code
    assert raised.value.retryable is retryable
    assert raised.value.server == "lute"


@pytest.mark.parametrize("code", ["invalid_client", "unauthorized_client", "invalid_scope", "invalid_target"])
def test_what_the_entry_can_mend_has_a_hint(code: str) -> None:
    with pytest.raises(TokenError) as raised:
        read({"error": code}, 400)
    assert raised.value.hint


@pytest.mark.parametrize(
    "spelling",
    [CANARY, quote(CANARY, safe=""), quote_plus(CANARY), base64.b64encode(CANARY.encode()).decode()],
)
def test_a_secret_that_is_echoed_is_blotted_out_in_every_spelling(spelling: str) -> None:
    with pytest.raises(TokenError) as raised:
        read({"error": "invalid_client", "error_description": f"no: {spelling}!"}, 400, CANARY)
    assert spelling not in str(raised.value)
    assert "invalid_client: no: …!" in str(raised.value)


def test_a_secret_that_is_echoed_as_the_error_itself_is_not_shown() -> None:
    with pytest.raises(TokenError) as raised:
        read({"error": "canary_secret"}, 400, "canary_secret")
    assert "canary" not in str(raised.value)


def test_a_description_cannot_steer_the_terminal_or_fill_it() -> None:
    with pytest.raises(TokenError) as raised:
        read({"error_description": "\x1b[31m red\n" + "x" * 10_000}, 400)
    assert "\x1b" not in str(raised.value)
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 500


def test_a_whole_reply_does_not_show_its_body() -> None:
    assert "canary" not in repr(reply({"access_token": "canary"}))


# Registrations


def test_of_a_registration_only_what_is_used_is_kept() -> None:
    body = {
        "client_id": "c",
        "client_secret": "s",
        "client_secret_expires_at": 5,
        "token_endpoint_auth_method": "client_secret_post",
        "redirect_uris": ["http://127.0.0.1/", 7],
        "issuer": "https://evil.example",
    }
    assert read_registration(reply(body, 201), url=URL, server="lute") == {
        "client_id": "c",
        "client_secret": "s",
        "client_secret_expires_at": 5,
        "token_endpoint_auth_method": "client_secret_post",
        "redirect_uris": ["http://127.0.0.1/"],
    }


def test_placeholders_in_a_registration_count_as_left_out() -> None:
    body = {"client_id": "c", "client_secret": None, "client_secret_expires_at": 0, "redirect_uris": ""}
    assert read_registration(reply(body), url=URL, server="lute") == {"client_id": "c", "redirect_uris": []}


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"error": "invalid_redirect_uri"}, 400),
        ({"client_secret": "canary"}, 201),
        ({"client_id": 7}, 200),
        (b"", 404),
    ],
)
def test_a_registration_that_cannot_be_used_is_an_error(body: Any, status: int) -> None:
    with pytest.raises(ConnectError, match="registration endpoint") as raised:
        read_registration(reply(body, status), url=URL, server="lute")
    assert "canary" not in str(raised.value)
    assert not raised.value.retryable


# Challenges


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("", Challenge()),
        ("Basic realm=x", Challenge()),
        ("Bearer", Challenge()),
        ('Bearer realm="a, b", error="invalid_token"', Challenge(error="invalid_token")),
        ("bearer ERROR=insufficient_scope,scope=a", Challenge(error="insufficient_scope", scope="a")),
        (
            'Bearer scope="a b" , resource_metadata="https://x/y"',
            Challenge(scope="a b", resource_metadata="https://x/y"),
        ),
        ('Basic realm="x", Bearer scope="a"', Challenge(scope="a")),
        ('Bearer scope="a", Basic realm="Bearer"', Challenge(scope="a")),
        (r'Bearer scope="a\"b"', Challenge(scope='a"b')),
        ('Bearer error_description="scope=evil", scope="a"', Challenge(scope="a")),
        ('Bearer scope="a", scope="b"', Challenge(scope="a")),
        ('Bearer scope="never closed', Challenge()),
        ("Bearer " + "x" * 100_000, Challenge()),
    ],
    ids=range(13),
)
def test_the_bearer_challenge_is_found_among_others(header: str, expected: Challenge) -> None:
    assert read_challenge(header) == expected


def test_a_union_of_scopes_holds_each_once_in_order() -> None:
    assert union("a b", None, "", "b  c a d") == "a b c d"
    assert union(None, "") is None
