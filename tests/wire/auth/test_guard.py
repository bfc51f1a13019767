"""Addresses that a server names are asked by the rules for it, and the error says which and why."""

from __future__ import annotations

import pytest

from luthier.errors import ConnectError
from luthier.web import Reach, UrlRules
from luthier.wire.auth.guard import UrlGuard

HERE = "http://127.0.0.1:8080/mcp"


def guard(**rules: bool) -> UrlGuard:
    return UrlGuard(
        HERE, "https://10.0.0.1/", server="lute", rules=UrlRules.of(HERE, **rules, production=False)
    )


@pytest.mark.parametrize(
    ("url", "said", "hint"),
    [
        ("https://169.254.169.254/latest", "it is private or this machine's own", "allow_private"),
        ("https://10.0.0.1/", "it is private or this machine's own", "allow_private"),
        ("http://127.0.0.1:8081/", "it is private or this machine's own", "allow_private"),
        ("http://auth.example/token", "it is not https", "https://"),
        ("https://auth.example/#x", "it holds a fragment", ""),
    ],
)
def test_what_the_rules_refuse_is_told_and_never_tried_again(url: str, said: str, hint: str) -> None:
    with pytest.raises(ConnectError, match=said) as raised:
        guard().check(url, what="the token endpoint")
    assert "the token endpoint" in raised.value.message
    assert not raised.value.retryable
    assert hint in raised.value.hint


def test_what_the_rules_allow_is_passed_with_its_reach() -> None:
    for url, reach in ((f"{HERE}/x", Reach.any), ("https://auth.example/token", Reach.public)):
        guard().check(url, what="the token endpoint")
        assert guard().reach(url) is reach
    guard(allow_private=True).check("http://10.0.0.1/", what="the token endpoint")


def test_the_error_shows_no_credential_that_stands_in_the_address() -> None:
    with pytest.raises(ConnectError) as raised:
        guard().check("https://user:canary@auth.example/t?key=canary#canary", what="the token endpoint")
    assert "canary" not in str(raised.value)
    assert "https://auth.example/t" in str(raised.value)


def test_only_origins_of_the_entry_are_its_own() -> None:
    assert guard().is_own("http://127.0.0.1:8080/other")
    assert not guard(allow_private=True).is_own("http://127.0.0.1:8081/")
    with pytest.raises(ValueError, match="not a web address"):
        UrlGuard("nonsense", server="lute", rules=UrlRules())
