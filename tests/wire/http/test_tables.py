"""Addresses, proxies, headers and mirrored arguments: small rules, as tables."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luthier.wire.http.facts import retry_after
from luthier.wire.http.proxies import proxy_for
from luthier.wire.http.target import below, endpoints, redirected
from luthier.wire.mirrors import header_value, mirrored, mirrors_of


@pytest.mark.parametrize(
    ("url", "segments", "whole"),
    [
        ("http://h/api", ("tools",), "http://h/api/tools"),
        ("http://h", ("tools",), "http://h/tools"),
        ("http://h/api/", ("tools",), "http://h/api/tools"),
        ("http://h/api?key=1", ("tools", "a b/c"), "http://h/api/tools/a%20b%2Fc?key=1"),
        ("https://h:8443/x", ("tools", "größe?#"), "https://h:8443/x/tools/gr%C3%B6%C3%9Fe%3F%23"),
    ],
)
def test_an_address_below_another(url: str, segments: tuple[str, ...], whole: str) -> None:
    assert below(url, *segments) == whole


@pytest.mark.parametrize(
    ("stream", "named", "found"),
    [
        ("http://h/sse", "/messages?s=1", ("http://h/messages?s=1",)),
        ("http://h/sse", "messages?s=1", ("http://h/messages?s=1",)),
        ("http://h/mcp/sse", "messages", ("http://h/mcp/messages",)),
        ("http://h/mcp/sse", "/messages/?s=1", ("http://h/messages/?s=1", "http://h/mcp/messages/?s=1")),
        ("http://h/mcp/sse", "/mcp/messages", ("http://h/mcp/messages",)),
        ("http://h/sse", "http://h:80/m", ("http://h:80/m",)),
        ("http://h/sse", " /m \n", ("http://h/m",)),
        ("http://h/sse", "/m#part", ("http://h/m",)),
        ("http://h/sse", "http://other/m", ()),
        ("http://h/sse", "https://h/m", ()),
        ("http://h/sse", "//other/m", ()),
        ("http://h/sse", "http://h:81/m", ()),
        ("http://h/sse", "file:///etc/passwd", ()),
        ("http://h/sse", "http://[bad/m", ()),
    ],
)
def test_where_messages_may_be_sent(stream: str, named: str, found: tuple[str, ...]) -> None:
    assert endpoints(stream, named) == found


@pytest.mark.parametrize(
    ("method", "status", "location", "onward"),
    [
        ("POST", 307, "/mcp/", "http://h/mcp/"),
        ("POST", 308, "http://h/new", "http://h/new"),
        ("POST", 308, "/new#part", "http://h/new"),
        ("GET", 302, "b", "http://h/b"),
        ("GET", 301, "/b", "http://h/b"),
        ("POST", 302, "/mcp/", None),
        ("POST", 301, "/mcp/", None),
        ("DELETE", 303, "/mcp/", None),
        ("POST", 307, "http://elsewhere/mcp", None),
        ("POST", 307, "https://h/mcp", None),
        ("POST", 308, "http://h:81/mcp", None),
        ("POST", 307, "http://[bad", None),
        ("GET", 300, "/b", None),
    ],
)
def test_which_redirects_are_followed(method: str, status: int, location: str, onward: str | None) -> None:
    assert redirected(method, status, "http://h/mcp", location) == onward


LOCAL = {"http_proxy": "http://p:1", "HTTPS_PROXY": "q:2"}


@pytest.mark.parametrize(
    ("url", "environ", "proxy"),
    [
        ("http://a/", LOCAL, "http://p:1"),
        ("https://a/", LOCAL, "http://q:2"),
        ("https://a/", {"ALL_PROXY": "http://all:3"}, "http://all:3"),
        ("https://a/", {}, None),
        ("http://localhost/", LOCAL, None),
        ("http://127.0.0.1:9/", LOCAL, None),
        ("http://127.1:9/", LOCAL, None),
        ("http://a.localhost/", LOCAL, None),
        ("http://128.0.0.1/", LOCAL, "http://p:1"),
        ("http://[::1]/", LOCAL, None),
        ("http://a.corp/", LOCAL | {"NO_PROXY": ".corp"}, None),
        ("http://a.corp/", LOCAL | {"NO_PROXY": "*.corp"}, None),
        ("http://corp/", LOCAL | {"NO_PROXY": "corp"}, None),
        ("http://scorp/", LOCAL | {"NO_PROXY": "corp"}, "http://p:1"),
        ("http://10.1.2.3/", LOCAL | {"no_proxy": "10.0.0.0/8,*.corp"}, None),
        ("http://11.1.2.3/", LOCAL | {"no_proxy": "10.0.0.0/8,*.corp"}, "http://p:1"),
        ("http://a/", LOCAL | {"NO_PROXY": "10.0.0.0/8, ,://,[::/0,x:y:z"}, "http://p:1"),
        ("http://a/", LOCAL | {"NO_PROXY": "*"}, None),
        ("http://a:81/", LOCAL | {"NO_PROXY": "a:81"}, None),
        ("http://a:82/", LOCAL | {"NO_PROXY": "a:81"}, "http://p:1"),
        ("http://[2001:db8::1]/", LOCAL | {"NO_PROXY": "2001:db8::/32"}, None),
    ],
)
def test_which_proxy_an_address_is_reached_by(url: str, environ: dict[str, str], proxy: str | None) -> None:
    assert proxy_for(url, environ) == proxy


@pytest.mark.parametrize(
    ("value", "seconds"),
    [("7", 7.0), (" 0 ", 0.0), ("99999999", 86_400.0), ("soon", None), ("", None), ("-1", None)],
)
def test_how_long_a_server_asks_to_wait(value: str, seconds: float | None) -> None:
    assert retry_after(value) == seconds


def test_a_date_to_wait_for_that_is_past_or_far() -> None:
    assert retry_after("Wed, 21 Oct 2015 07:28:00 GMT") == 0.0
    assert retry_after("Wed, 21 Oct 2015 07:28:00 -0000") == 0.0
    assert retry_after("Wed, 21 Oct 2099 07:28:00 GMT") == 86_400.0


@pytest.mark.parametrize(
    ("value", "carried"),
    [
        ("plain text", "plain text"),
        ("", ""),
        ("a", "a"),
        ("größe", "=?base64?Z3LDtsOfZQ==?="),
        (" edge", "=?base64?IGVkZ2U=?="),
        ("edge\t", "=?base64?ZWRnZQk=?="),
        ("two\r\nlines", "=?base64?dHdvDQpsaW5lcw==?="),
        ("=?base64?eA==?=", "=?base64?PT9iYXNlNjQ/ZUE9PT89?="),
        ("\x7f", "=?base64?fw==?="),
    ],
)
def test_values_as_headers_carry_them(value: str, carried: str) -> None:
    assert header_value(value) == carried


@given(st.text())
def test_any_text_survives_a_header(value: str) -> None:
    carried = header_value(value)
    assert carried.isascii()
    assert carried.isprintable()
    assert carried == carried.strip()
    if carried != value:
        inner = carried.removeprefix("=?base64?").removesuffix("?=")
        assert base64.b64decode(inner).decode("utf-8", "surrogatepass") == value


def schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def test_arguments_are_mirrored_as_the_schema_wants() -> None:
    mirrors = mirrors_of(
        schema(
            region={"type": "string", "x-mcp-header": "Region"},
            dry={"type": "boolean", "x-mcp-header": "Dry-Run"},
            deep=schema(count={"type": "integer", "x-mcp-header": "Count"}),
            other={"type": "string"},
        )
    )
    arguments = {"region": "süd", "dry": True, "deep": {"count": 7}, "other": "x"}
    assert mirrored(mirrors, arguments) == {
        "Mcp-Param-Region": header_value("süd"),
        "Mcp-Param-Dry-Run": "true",
        "Mcp-Param-Count": "7",
    }
    assert mirrored(mirrors, {"region": None, "deep": "flat"}) == {}
    assert mirrored(mirrors, {"region": ["a"], "dry": False}) == {"Mcp-Param-Dry-Run": "false"}


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (schema(a={"type": "number", "x-mcp-header": "A"}), "no string, integer or boolean"),
        (schema(a={"x-mcp-header": "A"}), "no string, integer or boolean"),
        (schema(a={"type": ["string", "null"], "x-mcp-header": "A"}), "no string, integer or boolean"),
        (schema(a={"type": "string", "x-mcp-header": ""}), "no name of a header"),
        (schema(a={"type": "string", "x-mcp-header": "A B"}), "no name of a header"),
        (schema(a={"type": "string", "x-mcp-header": 1}), "no name of a header"),
        (schema(a={"type": "string", "x-mcp-header": "A\n"}), "no name of a header"),
        (
            schema(
                a={"type": "string", "x-mcp-header": "Same"},
                b={"type": "string", "x-mcp-header": "same"},
            ),
            "two arguments",
        ),
        ({"type": "object", "x-mcp-header": "Root"}, "no argument"),
        (schema(a={"type": "array", "items": {"type": "string", "x-mcp-header": "A"}}), "no argument"),
        (schema(a={"anyOf": [{"type": "string", "x-mcp-header": "A"}]}), "no argument"),
        ({"$defs": {"d": {"type": "string", "x-mcp-header": "A"}}}, "no argument"),
    ],
)
def test_what_may_not_be_mirrored_is_said(bad: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        mirrors_of(bad)


def test_annotations_in_data_are_none() -> None:
    assert mirrors_of(schema(a={"type": "string", "default": {"x-mcp-header": "A"}, "enum": [1]})) == ()
