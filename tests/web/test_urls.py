"""Which texts are URLs that may be asked, and how their parts are read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from yarl import URL

from luthier.web import form_fault, origin, same_origin, shown

ASKABLE = [
    "http://a", "https://a/", "HTTPS://A.example:8443/x?y=z", "http://127.0.0.1:1/", "http://[::1]:80/", "https://a./",
    "https://my_service:8000/mcp", "https://xn--mnchen-3ya.example/", "http://a?b", "https://a:/x",
    "https://a.b-c.d/%20;x=@y", f"https://{'a' * 63}.example/",
    f"https://{'a.' * 127}/", f"https://{'a.' * 126}a/",
]  # fmt: skip
NONE = {
    "": "does not begin with",
    "x/token": "does not begin with",
    "//auth.example/": "does not begin with",
    "ftp://auth.example/": "does not begin with",
    "file:///etc/passwd": "does not begin with",
    "javascript:alert(1)": "does not begin with",
    "gopher://127.0.0.1:6379/_x": "does not begin with",
    "https:/auth.example/": "does not begin with",
    "https:auth.example": "does not begin with",
    "https:///token": "does not begin with",
    "https://": "does not begin with",
    "https://:443/": "does not begin with",
    "https://auth.example:0/": "does not begin with",
    "https://user@auth.example/": "user name or a password",
    "https://user:pw@auth.example/": "user name or a password",
    "https://@auth.example/": "user name or a password",
    "https://a.example:443@127.0.0.1/": "user name or a password",
    "https://auth.example\\@evil.example/": "backslash",
    "https:\\\\auth.example/": "backslash",
    "https://auth.example /": "a space",
    " https://auth.example/": "a space",
    "https://auth.example/\r\nX: 1": "control character",
    "ht\ntps://auth.example/": "control character",
    "https://auth.ex\tample/": "control character",
    "https://auth.example/\x00": "control character",
    "https://auth.example/\x7f": "control character",
    "https://1２7.0.0.1/": "not ASCII",
    "https://ｅxample.com/": "not ASCII",
    "https://①②⑦.⓪.⓪.①/": "not ASCII",
    "https://127。0。0。1/": "not ASCII",
    "https://exam\u00adple.com/": "not ASCII",
    "https://a/größe": "not ASCII",
    "https://auth.example/#x": "a fragment",
    "https://auth.example#@127.0.0.1/": "a fragment",
    "https://auth.example:99999/": "cannot be read",
    "https://auth.example:x/": "cannot be read",
    "https://[::1/": "cannot be read",
    "https://[fe80::zz]/": "cannot be read",
    "https://[1.2.3.4]/": "cannot be read",
    "https://[v1.x]/": "neither a name nor an address",
    f"https://{'a.' * 126}aa/": "neither a name nor an address",
    "https://a[::1]/": "neither a name nor an address",
    "https://[::1]a/": "neither a name nor an address",
    "https://[fe80::1%25lo]/": "neither a name nor an address",
    "https://exa%6dple.com/": "neither a name nor an address",
    "https://127%2e0%2e0%2e1/": "neither a name nor an address",
    "https://-x.example/": "neither a name nor an address",
    "https://x-.example/": "neither a name nor an address",
    "https://a..b/": "neither a name nor an address",
    "https://a../": "neither a name nor an address",
    "https://.a/": "neither a name nor an address",
    "https://{tenant}.example/": "neither a name nor an address",
    "https://a,b/": "neither a name nor an address",
    f"https://{'a' * 64}.example/": "neither a name nor an address",
}


@pytest.mark.parametrize("url", ASKABLE)
def test_a_plain_web_address_may_be_asked(url: str) -> None:
    assert form_fault(url) is None


@pytest.mark.parametrize("url", NONE)
def test_what_is_no_plain_web_address_is_not_asked(url: str) -> None:
    fault = form_fault(url)
    assert fault is not None
    assert NONE[url] in fault.why


@pytest.mark.parametrize(
    ("url", "hint"), [("https://ä/", "xn--"), ("https://me@a/", "auth:"), ("https://a/#b", "Leave it out")]
)
def test_where_there_is_another_way_to_write_it_a_fault_names_it(url: str, hint: str) -> None:
    fault = form_fault(url)
    assert fault is not None
    assert hint in fault.hint


@given(
    st.one_of(
        st.text(),
        st.from_regex(r"https?://[ -~]{0,30}", fullmatch=True),
        st.from_regex(r"HTTPS?://[a-z0-9.:@\[\]%_\\?#/-]{1,20}", fullmatch=True),
    )
)
def test_what_may_be_asked_is_read_alike_by_whoever_sends_it(url: str) -> None:
    if form_fault(url) is None:
        sent = URL(url, encoded=True)
        scheme, host, port = origin(url)
        assert (sent.scheme, (sent.raw_host or "").lower().rstrip("."), sent.port) == (scheme, host, port)
        assert sent.user is None
        assert sent.password is None
        assert sent.fragment == ""


def test_an_origin_is_scheme_host_and_port() -> None:
    assert same_origin("https://H.example:443/a", "https://h.example/b")
    assert same_origin("http://h./a", "http://h/b")
    assert not same_origin("http://h/a", "mailto:h")
    assert not same_origin("ftp://h:21/", "ftp://h:21/")
    assert same_origin("https://[::1/", "https://[::1/") is False
    with pytest.raises(ValueError, match="not a web address"):
        origin("http:///path")


def test_an_address_is_shown_without_what_may_be_secret() -> None:
    assert shown("https://me:secret@h:1/a?token=x#y") == "https://h:1/a"
    assert shown("https://me:sec@ret@h/") == "https://h/"
    assert shown("https://me:secret@[h/") == "an address that cannot be read"
