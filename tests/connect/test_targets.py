"""From an entry to an address: references, rules for addresses, and nothing sent when one is broken."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from luthier.connect import ServerRegistry
from luthier.connect.targets import auth_of, secret_of, target_of
from luthier.errors import ConnectError
from luthier.spec import read_project
from luthier.spec.project import Auth, ServerEntry, Tls
from luthier.web import Reach

if TYPE_CHECKING:
    from pathlib import Path

    from luthier.wire.http import HttpTarget

ENV = {
    "HOST": "mcp.example.com",
    "INSIDE": "127.0.0.1",
    "KEY": "s3cret",
    "ODD": "a\nb",
    "URL": "http://x.com",
}


def target(url: str, environment: str = "development", root: Path | None = None, **fields: Any) -> HttpTarget:
    entry = ServerEntry(id="git", transport="http", url=url, **fields)
    return target_of(entry, ServerRegistry([entry], environment=environment, root=root), ENV)


def refused(url: str, environment: str = "development", **fields: Any) -> ConnectError:
    with pytest.raises(ConnectError) as caught:
        target(url, environment, **fields)
    error = caught.value
    assert not error.retryable
    assert (error.server, error.phase) == ("git", "connect")
    assert error.message.startswith("Server 'git' cannot be reached: ")
    assert "s3cret" not in str(error)
    return error


def test_what_an_entry_says_is_what_the_target_is(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("")
    found = target(
        "https://${env.HOST}/mcp?a=1",
        root=tmp_path,
        headers={"X-Key": " Key ${KEY} ", "X-Plain": "$${KEY}"},
        tls=Tls(ca="ca.pem", verify=False),
        proxy="http://proxy.${HOST}:3128",
        timeout=7.0,
        max_message_bytes=4096,
    )
    assert (found.server, found.url) == ("git", "https://mcp.example.com/mcp?a=1")
    assert found.headers == {"X-Key": "Key s3cret", "X-Plain": "${KEY}"}
    assert (found.tls.ca, found.tls.verify) == (str(tmp_path / "ca.pem"), False)
    assert found.proxy == "http://proxy.mcp.example.com:3128"
    assert (found.timeout, found.max_message_bytes) == (7.0, 4096)


@pytest.mark.parametrize(
    ("url", "environment", "allow", "reach"),
    [
        ("http://127.0.0.1:8000/mcp", "development", False, Reach.any),
        ("http://inside.lan/mcp", "development", False, Reach.any),
        ("https://mcp.example.com/", "development", False, Reach.any),
        ("https://${HOST}/", "development", False, Reach.public),
        ("https://${HOST}/", "development", True, Reach.any),
        ("http://${INSIDE}/", "development", True, Reach.any),
        ("https://mcp.example.com/", "production", False, Reach.public),
        ("https://10.0.0.1/", "production", True, Reach.any),
        ("http://127.0.0.1:8000/", "production", True, Reach.private),
    ],
)
def test_an_address_may_be_private_where_the_file_names_it_or_allows_it(
    url: str, environment: str, *, allow: bool, reach: Reach
) -> None:
    assert target(url, environment, allow_private=allow).reach is reach


@pytest.mark.parametrize("environment", ["development", "production"])
@pytest.mark.parametrize(
    ("host", "said"),
    [
        ("127.0.0.1", "private"),
        ("127.1", "private"),
        ("0x7f000001", "private"),
        ("10.1.2.3", "private"),
        ("192.168.0.1", "private"),
        ("169.254.169.254", "private"),
        ("[::1]", "private"),
        ("[::ffff:10.0.0.1]", "private"),
        ("localhost", "private"),
        ("LOCALHOST.", "private"),
        ("a.localhost", "private"),
    ],
)
def test_an_address_inside_is_refused_where_it_is_not_the_files_own_word(
    host: str, said: str, environment: str
) -> None:
    url = f"https://{host}/mcp" if environment == "production" else "https://${WHERE}/mcp"
    entry = ServerEntry(id="git", transport="http", url=url)
    registry = ServerRegistry([entry], environment=environment)
    with pytest.raises(ConnectError, match=said) as caught:
        target_of(entry, registry, {"WHERE": host})
    assert caught.value.hint == "If it is meant, set `allow_private: true` for this server."


def test_plain_http_is_refused_in_production_and_where_a_reference_chose_it() -> None:
    said = refused("http://mcp.example.com/", "production").message
    assert "its url is not https, which is not allowed in production" in said
    assert "not allowed where a reference decides on it" in refused("${URL}/mcp").message
    open_ = refused("http://1.1.1.1/", "production", allow_private=True).message
    assert "plain http is for private addresses only, which is not allowed in production" in open_


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("${NOPE}", "the environment variable NOPE is not set"),
        ("ftp://mcp.example.com/", "does not begin with https:// or http://"),
        ("https:///mcp", "does not begin with https:// or http://"),
        ("https://${ODD}/", "holds a space, a control character or a backslash"),
        ("https://mcp.example.com:0/", "does not begin with https:// or http://"),
        ("https://mcp.example.com:99999/", "its url cannot be read"),
        ("https://[::1/", "its url cannot be read"),
        ("https://me:${KEY}@mcp.example.com/", "holds a user name or a password"),
        ("https://mcp.example.com\\@evil.com/", "or a backslash"),
        ("https://mcp.example.com/#part", "its url holds a fragment"),
        ("https://mcp.exämple.com/", "its url holds characters that are not ASCII"),
        ("", "does not begin with https:// or http://"),
    ],
)
def test_an_address_that_is_none_is_refused(url: str, said: str) -> None:
    assert said in refused(url).message


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"headers": {"X Y": "1"}}, "'X Y' is not a name of a header"),
        ({"headers": {"Content-Length": "0"}}, "the header Content-Length is Luthier's own"),
        ({"headers": {"X-Odd": "${ODD}"}}, "the value of the header X-Odd holds a line break"),
        ({"headers": {"X-None": "${NOPE}"}}, "NOPE is not set"),
        ({"proxy": "socks5://x"}, "its proxy does not begin with"),
        ({"proxy": "http://["}, "its proxy does not begin with"),
        ({"tls": Tls(ca="gone.pem")}, "the file 'gone.pem' is not there"),
        ({"tls": Tls(key="${NOPE}")}, "NOPE is not set"),
    ],
)
def test_what_cannot_be_sent_is_refused_and_named(fields: dict[str, Any], said: str, tmp_path: Path) -> None:
    assert said in refused("https://mcp.example.com/", root=tmp_path, **fields).message


def test_certificates_are_verified_in_production() -> None:
    said = refused("https://mcp.example.com/", "production", tls=Tls(verify=False)).message
    assert "in production certificates are verified" in said


def test_the_place_in_the_file_is_told() -> None:
    project = read_project({"mcpServers": {"git": {"url": "https://x.com", "headers": {"X": "${NOPE}"}}}})
    entry = project.servers["git"]
    with pytest.raises(ConnectError, match=r"mcpServers\.git\.headers\.X"):
        target_of(entry, ServerRegistry.of(project), {})


# Credentials


def entry_with(**fields: Any) -> tuple[ServerEntry, ServerRegistry]:
    entry = ServerEntry(id="git", transport="http", url="https://x.com", **fields)
    return entry, ServerRegistry([entry])


def test_credentials_are_expanded_and_what_is_not_given_stays_out() -> None:
    entry, registry = entry_with(
        auth=Auth(type="oauth", client_id="me", client_secret="${KEY}", token_url="https://${HOST}/token"),
        secret="${KEY}",
    )
    auth = auth_of(entry, registry, ENV)
    assert (auth.client_id, auth.client_secret) == ("me", "s3cret")
    assert (auth.token_url, auth.token, auth.scope) == ("https://mcp.example.com/token", None, None)
    assert secret_of(entry, ENV) == "s3cret"
    assert secret_of(entry_with()[0], ENV) is None


@pytest.mark.parametrize(
    ("auth", "said"),
    [
        (Auth(type="bearer", token="${NOPE}"), "NOPE is not set"),
        (Auth(type="oauth", token_url="https://${INSIDE}/token"), "private or this machine's own"),
        (
            Auth(type="oauth", issuer="${URL}"),
            "not https, which is not allowed where a reference decides on it",
        ),
        (Auth(type="oauth", issuer="nowhere"), "its issuer does not begin with"),
    ],
)
def test_credentials_that_cannot_be_used_fail_before_anything_is_sent(auth: Auth, said: str) -> None:
    entry, registry = entry_with(auth=auth)
    with pytest.raises(ConnectError, match=said) as caught:
        auth_of(entry, registry, ENV)
    assert not caught.value.retryable


def test_a_secret_that_is_not_set_fails_before_anything_is_sent() -> None:
    with pytest.raises(ConnectError, match="NOPE is not set") as caught:
        secret_of(entry_with(secret="${NOPE}")[0], ENV)
    assert not caught.value.retryable
