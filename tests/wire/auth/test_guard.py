"""Addresses that a server names are asked only if they are public, or the entry names them itself."""

from __future__ import annotations

import pytest

from luthier.errors import ConnectError
from luthier.wire.addresses import is_private
from luthier.wire.auth.guard import UrlGuard

PRIVATE = [
    "127.0.0.1", "127.255.255.1", ".".join("0000"), "10.0.0.1", "172.16.0.1", "192.168.1.1",
    "169.254.169.254", "100.64.0.1", "192.0.0.1",
    "192.0.2.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.1",
    "240.0.0.1", "255.255.255.255", "::", "::1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd12::1", "fec0::1",
    "ff02::1", "2001:db8::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::127.0.0.1", "64:ff9b::7f00:1",
    "64:ff9b::a9fe:a9fe", "2002:7f00:1::", "2002:a00:1::", "2001:0:0:0:0:0:80ff:fffe",
]  # fmt: skip
PUBLIC = [
    "1.1.1.1",
    "93.184.216.34",
    "2606:4700::1111",
    "::ffff:1.1.1.1",
    "64:ff9b::101:101",
    "2002:101:101::",
]

INSIDE = [
    "https://127.0.0.1/token", "https://127.1/", "https://2130706433/", "https://0x7f000001/", "https://0177.0.0.1/",
    "https://0x7f.1/", "https://127.0.0.1./", "https://0/", "https://999.1.1.1/", "https://[::1]/",
    "https://[::ffff:7f00:1]/", "https://[64:ff9b::7f00:1]/", "https://10.1.2.3:8443/x",
    "https://169.254.169.254/latest/meta-data", "https://localhost/", "https://LOCALHOST:8443/",
    "https://localhost./", "https://auth.localhost/", "https://printer.local/",
    "https://metadata.google.internal/", "https://router.home.arpa/", "http://localhost/",
]  # fmt: skip
ODD = [
    "", "x/token", "//auth.example/", "ftp://auth.example/", "file:///etc/passwd", "javascript:alert(1)",
    "https:///token", "https://", "https://user@auth.example/", "https://user:pw@auth.example/",
    "https://@auth.example/", "https://auth.example\\@evil.example/", "https://auth.example /",
    "https://auth.example/\r\nX: 1", "https://auth.example/\x00", "https://1２7.0.0.1/", "https://ｅxample.com/",
    "https://auth.example:99999/", "https://auth.example:x/", "https://[::1/", "https://[fe80::zz]/",
    "https://exa%6dple.com/", "https://-x.example/", "https://a..%2f/",
]  # fmt: skip


def guard(*, allow_private: bool = False) -> UrlGuard:
    return UrlGuard(
        "http://127.0.0.1:8080/mcp",
        "https://10.0.0.1/",
        server="lute",
        allow_private=allow_private,
    )


@pytest.mark.parametrize("address", PRIVATE)
def test_an_address_that_leads_inside_is_known(address: str) -> None:
    assert is_private(address)


@pytest.mark.parametrize("address", PUBLIC)
def test_an_address_of_the_public_internet_is_none(address: str) -> None:
    assert not is_private(address)


def test_what_is_no_address_cannot_be_judged() -> None:
    with pytest.raises(ValueError, match="localhost"):
        is_private("localhost")


@pytest.mark.parametrize("url", INSIDE)
def test_a_private_host_is_refused_in_every_spelling(url: str) -> None:
    with pytest.raises(ConnectError, match="its host is private") as raised:
        guard().check(url, what="the token endpoint")
    assert not raised.value.retryable
    assert "allow_private" in raised.value.hint


@pytest.mark.parametrize("url", [url for url in INSIDE if "999" not in url])
def test_a_private_host_is_passed_where_the_entry_allows_it(url: str) -> None:
    guard(allow_private=True).check(url, what="the token endpoint")


@pytest.mark.parametrize("allow_private", [False, True])
@pytest.mark.parametrize("url", ODD)
def test_what_is_no_plain_web_address_is_always_refused(url: str, *, allow_private: bool) -> None:
    with pytest.raises(ConnectError) as raised:
        guard(allow_private=allow_private).check(url, what="the token endpoint")
    assert not raised.value.retryable


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:8080/token",
        "HTTP://127.0.0.1:8080",
        "https://10.0.0.1:443/x?y",
        "https://auth.example/token",
        "https://auth.example:8443/a/b?c=d",
        "https://xn--mnchen-3ya.example/",
        "https://1.1.1.1/",
        "https://[2606:4700::1111]/",
        "https://auth.example./",
    ],
)
def test_the_origins_of_the_entry_and_public_ones_are_passed(url: str) -> None:
    guard().check(url, what="the token endpoint")


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1/token", "https://127.0.0.1:8080/", "http://10.0.0.1/", "http://127.0.0.1:8081/"]
)
def test_another_port_or_scheme_is_another_origin(url: str) -> None:
    with pytest.raises(ConnectError):
        guard().check(url, what="the token endpoint")


def test_a_public_address_must_be_asked_by_https() -> None:
    with pytest.raises(ConnectError, match="not https") as raised:
        guard().check("http://auth.example/token", what="the token endpoint")
    assert raised.value.hint == ""


def test_the_error_shows_no_credential_that_stands_in_the_address() -> None:
    with pytest.raises(ConnectError) as raised:
        guard().check("https://user:canary@auth.example/t?key=canary#canary", what="the token endpoint")
    assert "canary" not in str(raised.value)
    assert "https://auth.example/t" in str(raised.value)


def test_only_origins_of_the_entry_are_literal() -> None:
    assert guard().is_literal("http://127.0.0.1:8080/other")
    assert not guard(allow_private=True).is_literal("http://127.0.0.1:8081/")
    assert not guard().is_literal("nonsense")
