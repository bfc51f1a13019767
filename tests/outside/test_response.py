"""What a response is to a workflow, whatever it says of itself."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict

from luthier.outside.response import decoded, excerpt, response_of


@pytest.mark.parametrize(
    ("kind", "body", "value", "encoding"),
    [
        ("application/json", b'{"a": 1}', {"a": 1}, "json"),
        ("application/problem+json; charset=utf-8", b"[1]", [1], "json"),
        ("application/json", b"\xef\xbb\xbf{}", {}, "json"),
        ("application/json", b"not json", "not json", "text"),
        ("application/json", b"[" * 100_000, "[" * 100_000, "text"),
        ("application/json", b"", None, "json"),
        ("text/plain", b"", None, "text"),
        ("text/plain", "ü".encode(), "ü", "text"),
        ("text/html; charset=ISO-8859-1", b"\xfc", "ü", "text"),
        ("text/plain; charset=nothing", b"a", "a", "text"),
        ("text/plain; charset=punycode", b"a-", "a-", "text"),
        ("text/plain; charset=hex", b"61", "61", "text"),
        ("text/plain", b"\xff", "\ufffd", "text"),
        ("", b"plain", "plain", "text"),
        ("image/png", b"\x89PNG\0", "iVBORwA=", "base64"),
        ("application/octet-stream", b"\xff\xfe", "//4=", "base64"),
    ],
)
def test_a_body_is_json_text_or_base64(kind: str, body: bytes, value: object, encoding: str) -> None:
    assert decoded(kind, body) == (value, encoding)


@given(st.text(), st.binary())
def test_no_answer_breaks_the_reading(kind: str, body: bytes) -> None:
    value, encoding = decoded(kind, body)
    assert encoding in ("json", "text", "base64")
    if isinstance(value, str):
        value.encode()  # and holds no half characters


def test_headers_are_in_lower_case_joined_and_without_cookies() -> None:
    headers = CIMultiDict([("X-A", "1"), ("x-a", "2"), ("Set-Cookie", "s=1"), ("X-B", "\udcff")])
    found = response_of(404, headers, b"")
    assert found["headers"] == {"x-a": "1, 2", "x-b": "?"}
    assert (found["status"], found["ok"], found["body"]) == (404, False, None)


@pytest.mark.parametrize(("body", "said"), [(None, ""), ("text", "text"), ({"a": 1}, '{"a":1}')])
def test_the_beginning_of_what_is_said(body: object, said: str) -> None:
    assert excerpt({"body": body}) == said
    assert excerpt({"body": "x" * 1000}) == "x" * 300
