"""What the arguments of `builtin://http` become on the wire, and what is never sent."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luthier.errors import StepError
from luthier.outside.request import request_of
from luthier.web import UrlRules

SITE = "https://api.example.com/items"
PUBLIC = UrlRules()


def request(**arguments: Any) -> Any:
    return request_of({"url": SITE, **arguments}, PUBLIC)


@pytest.mark.parametrize(
    ("url", "params", "sent"),
    [
        (SITE, None, SITE),
        (SITE, {}, SITE),
        (SITE, {"q": "a b&c=d"}, f"{SITE}?q=a+b%26c%3Dd"),
        (SITE, {"q": "ü", "n": 3, "half": 0.5, "whole": 4.0}, f"{SITE}?q=%C3%BC&n=3&half=0.5&whole=4"),
        (SITE, {"yes": True, "no": False, "none": None}, f"{SITE}?yes=true&no=false"),
        (SITE, {"tag": ["a", None, 1]}, f"{SITE}?tag=a&tag=1"),
        (f"{SITE}?x=1", {"y": 2}, f"{SITE}?x=1&y=2"),
    ],
)
def test_params_are_encoded_into_the_query(url: str, params: Any, sent: str) -> None:
    assert request_of({"url": url, "params": params}, PUBLIC).url == sent


@given(st.dictionaries(st.text(min_size=1), st.text()))
def test_params_come_out_of_the_query_as_they_went_in_and_change_nothing_else(params: dict[str, str]) -> None:
    def sound(text: str) -> str:
        return text.encode(errors="replace").decode()

    url = request(params=params).url
    assert url.isascii()
    assert parse_qsl(urlsplit(url).query, keep_blank_values=True) == [
        (sound(name), sound(value)) for name, value in params.items()
    ]
    assert url.split("?")[0] == SITE


@pytest.mark.parametrize(
    ("arguments", "kind", "body"),
    [
        ({}, None, b""),
        ({"body": {"a": [1, None]}}, "application/json", b'{"a":[1,null]}'),
        ({"body": [1]}, "application/json", b"[1]"),
        ({"body": 5}, "application/json", b"5"),
        ({"body": "plain ü"}, "text/plain; charset=utf-8", "plain ü".encode()),
        ({"body": "\ud800"}, "text/plain; charset=utf-8", b"?"),
        ({"form": {"a": "b c", "d": [1, 2]}}, "application/x-www-form-urlencoded", b"a=b+c&d=1&d=2"),
    ],
)
def test_a_body_is_text_json_or_a_form(arguments: dict[str, Any], kind: str | None, body: bytes) -> None:
    made = request(method="POST", **arguments)
    assert (made.headers.get("Content-Type"), made.body) == (kind, body)


def test_a_media_type_of_ones_own_stays() -> None:
    made = request(
        method="POST", body="<a/>", headers={"content-type": "application/xml", "x-n": 1, "x-y": None}
    )
    assert made.headers == {"content-type": "application/xml", "x-n": "1"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"headers": {"Host": "other"}}, "Luthier's own"),
        ({"headers": {"Content-Length": "5"}}, "Luthier's own"),
        ({"headers": {"transfer-encoding": "chunked"}}, "Luthier's own"),
        ({"headers": {"Proxy-Authorization": "x"}}, "Luthier's own"),
        ({"headers": {"a b": "x"}}, "not a name"),
        ({"headers": {"a": "x\r\ny: z"}}, "line break"),
        ({"headers": {"a": "1", "A": "2"}}, "twice"),
        ({"params": {"a": {"b": 1}}}, "`params.a`"),
        ({"form": {"a": [[1]]}}, "`form.a`"),
        ({"form": {"a": 1}, "body": "x"}, "either a body or a form"),
        ({"body": {"a": "\ud800"}}, "half a character"),
    ],
)
def test_what_cannot_be_sent_is_refused_before_anything_is(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(StepError, match=said) as caught:
        request(**arguments)
    assert caught.value.step_kind == "arguments"


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/",
        "https://127.1/",
        "https://[::1]/",
        "https://169.254.169.254/latest",
        "https://0x7f000001/",
        "https://localhost/",
        "https://db.internal/",
        "http://example.com/",
        "ftp://example.com/",
        "https://user:pass@example.com/",
        "https://example.com/ x",
        "//example.com",
        "",
    ],
)
def test_an_address_that_nobody_spelled_out_is_public_and_https_or_not_asked(url: str) -> None:
    with pytest.raises(StepError, match="is not asked"):
        request_of({"url": url}, UrlRules(production=False))


def test_an_address_that_was_spelled_out_is_asked_and_its_neighbour_is_not() -> None:
    rules = UrlRules.of("http://127.0.0.1:8000/", production=False)
    assert request_of({"url": "http://127.0.0.1:8000/a"}, rules).url == "http://127.0.0.1:8000/a"
    with pytest.raises(StepError, match="this step"):
        request_of({"url": "http://127.0.0.1:8001/a"}, rules)
