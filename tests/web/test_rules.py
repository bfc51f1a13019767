"""Which URLs may be asked in which environment, and where a connection for one may go."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luthier.web import Reach, UrlRules, origin, url_fault

HERE = "http://127.0.0.1:8000/mcp"
LAN = "http://inside.example/mcp"
WEB = "https://mcp.example.com/"
PLAIN = "http://mcp.example.com/"
PRIVATE = "is private or this machine's own"

INSIDE = [
    "127.0.0.1", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "0x7f.1", "127.0.0.1.", "0", "[::1]",
    "[::ffff:7f00:1]", "[64:ff9b::7f00:1]", "10.1.2.3:8443", "169.254.169.254", "localhost", "LOCALHOST:8443",
    "localhost.", "auth.localhost", "printer.local", "metadata.google.internal", "router.home.arpa",
    "nas.lan",
    "999.1.1.1", "a.corp", "a.home", "a.intranet", "x.localdomain",
]  # fmt: skip
OUTSIDE = [
    "example.com",
    "example.com.",
    "notlocalhost",
    "1.1.1.1:8443",
    "[2606:4700::1111]",
    "localhost.example",
]


@pytest.mark.parametrize(
    ("url", "named", "allow", "production", "reach", "why"),
    [
        # A development machine asks what its own file spells out.
        (HERE, (HERE,), False, False, Reach.any, None),
        ("http://127.0.0.1:8000/other", (HERE,), False, False, Reach.any, None),
        (LAN, (LAN,), False, False, Reach.any, None),
        # What comes from elsewhere is another origin: a port, a scheme, a host.
        ("http://127.0.0.1:8001/", (HERE,), False, False, Reach.public, PRIVATE),
        ("https://127.0.0.1:8000/", (HERE,), False, False, Reach.public, PRIVATE),
        ("http://localhost:8000/", (HERE,), False, False, Reach.public, PRIVATE),
        (PLAIN, (WEB,), False, False, Reach.public, "is not https"),
        (WEB, (), False, False, Reach.public, None),
        (HERE, (), True, False, Reach.any, None),
        (PLAIN, (), True, False, Reach.any, None),
        # Production takes nobody's word but `allow_private`, and that not for plain http to the internet.
        (HERE, (HERE,), False, True, Reach.public, PRIVATE),
        (WEB, (WEB,), False, True, Reach.public, None),
        (PLAIN, (PLAIN,), False, True, Reach.public, "is not https"),
        (HERE, (HERE,), True, True, Reach.private, None),
        ("https://127.0.0.1/", (), True, True, Reach.any, None),
        (LAN, (), True, True, Reach.private, None),
        ("http://1.1.1.1/", (), True, True, Reach.private, "plain http is for private addresses only"),
        ("https://1.1.1.1/", (), True, True, Reach.any, None),
        ("http://printer.local/", (), True, True, Reach.private, None),
    ],
)
def test_where_a_url_may_lead(
    url: str, named: tuple[str, ...], *, allow: bool, production: bool, reach: Reach, why: str | None
) -> None:
    rules = UrlRules.of(*named, allow_private=allow, production=production)
    fault = rules.fault(url)
    assert rules.reach(url) is reach
    assert (fault is None) if why is None else (fault is not None and why in fault.why)


@pytest.mark.parametrize("host", INSIDE)
def test_a_private_host_is_refused_in_every_spelling(host: str) -> None:
    for scheme in ("https", "http"):
        fault = UrlRules().fault(f"{scheme}://{host}/x")
        assert fault is not None
        assert fault.why == PRIVATE
        assert fault.hint == "If it is meant, set `allow_private: true` for this server."
        assert UrlRules(allow_private=True).fault(f"{scheme}://{host}/x") is None


@pytest.mark.parametrize("host", OUTSIDE)
def test_a_public_host_is_asked_by_https_only(host: str) -> None:
    assert UrlRules().fault(f"https://{host}/x") is None
    fault = UrlRules().fault(f"http://{host}/x")
    assert fault is not None
    assert (fault.why, fault.hint) == ("is not https", "Write https://.")


@pytest.mark.parametrize("reach", Reach)
@pytest.mark.parametrize(
    "url", ["", "ftp://a/", "https://u@a/", "https://a/#x", "https://a\\b/", "https://a:x/"]
)
def test_what_is_no_url_is_refused_whatever_is_allowed(url: str, reach: Reach) -> None:
    assert url_fault(url, reach) is not None
    assert UrlRules.of(url, allow_private=True, production=False).fault(url) is not None


@given(st.sampled_from([HERE, LAN, WEB, PLAIN, "https://10.0.0.1/", "https://1.1.1.1/"]), st.booleans())
def test_a_url_is_judged_alike_by_the_rules_and_by_the_reach_that_they_give(url: str, allow: bool) -> None:  # noqa: FBT001
    rules = UrlRules(allow_private=allow)
    assert url_fault(url, rules.reach(url)) == rules.fault(url)


def test_without_a_word_only_public_addresses_are_asked() -> None:
    assert UrlRules() == UrlRules(named=frozenset(), allow_private=False, production=True)
    assert not UrlRules.of(HERE, production=False).allow_private


@given(st.data())
def test_production_never_allows_more_than_development(data: st.DataObject) -> None:
    allow = data.draw(st.booleans())
    url, named = (
        data.draw(st.sampled_from([HERE, LAN, WEB, PLAIN])),
        data.draw(st.sampled_from([HERE, WEB, PLAIN])),
    )
    strict = UrlRules.of(named, allow_private=allow, production=True)
    lax = UrlRules.of(named, allow_private=allow, production=False)
    assert not strict.named
    assert strict.fault(url) is not None or lax.fault(url) is None
    assert strict.reach(url) in (lax.reach(url), Reach.public, Reach.private)
    assert (origin(url) in lax.named) is (url == named)
