"""JSON with comments: what JSON says is kept, at its place; comments and last commas mean nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luthier.errors import SpecError
from luthier.spec.hosts.jsonc import parse_json

VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(indent=st.sampled_from([None, 2, "\t"]), ascii_=st.booleans(), value=VALUES)
def test_json_is_read_as_json(*, value: Any, indent: Any, ascii_: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_)
    assert parse_json(text, "").data == json.loads(text)


def test_comments_and_last_commas_mean_nothing_and_places_are_kept() -> None:
    text = '// one\n{ /* two\n */ "a": [1, // three, "no"\n "//no", "/*no*/",], // "b": 1\n"c": 2, }\n/**/'
    document = parse_json(text, "f")
    assert document.data == {"a": [1, "//no", "/*no*/"], "c": 2}
    assert document.mark(("c",)) == (5, 6)
    assert document.mark(("c",), key=True) == (5, 1)
    assert document.mark(("a", 1)) == (4, 2)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{'a': 1}", "1:2: a key must stand here, in double quotes"),
        ("['a']", "1:2: a JSON value must stand here (text stands in double quotes)"),
        ("[a]", "1:2: `a` is no JSON value (text stands in double quotes)"),
        ("[NaN]", "1:2: `NaN` is no JSON value (text stands in double quotes)"),
        ("[1e999]", "1:2: this number is too large"),
        (f"[{'9' * 5000}]", "1:2: this number is too large"),
        ("[01]", "1:3: a `,` or `]` is missing (opened in line 1)"),
        ('["a', "1:2: a text must end on its line and hold no control character"),
        ('["a\nb"]', "1:2: a text must end on its line and hold no control character"),
        ('["\\x"]', "1:3: there is no such escape (write \\\\ for \\)"),
        ('["\\ud800"]', "1:2: this text escapes half a character"),
        ('{"a" 1}', "1:6: a `:` is missing"),
        ('{"a":', "1:6: the file ends where a value must stand"),
        ('{"a":}', "1:6: a JSON value must stand here"),
        ('{"a": 1 "b": 2}', "1:9: a `,` or `}` is missing (opened in line 1)"),
        ("[,]", "1:2: a JSON value must stand here"),
        ("/* [", "1:1: a comment is never closed"),
        ("[1] [2]", "1:5: this stands behind the end of the JSON value"),
        ("{}\n}", "2:1: this stands behind the end of the JSON value"),
    ],
)
def test_what_is_no_json_is_told_at_its_place(text: str, said: str) -> None:
    with pytest.raises(SpecError) as caught:
        parse_json(text, "f")
    (fault,) = caught.value.faults
    assert str(fault) == f"f:{said}"


def test_keys_that_stand_twice_are_all_told() -> None:
    with pytest.raises(SpecError) as caught:
        parse_json('{"a": 1, "a": {"b": 1, "b": 2},\n"c": [', "f")
    assert [fault.place for fault in caught.value.faults] == ["f:1:24", "f:1:10", "f:2:6"]


def test_a_large_file_of_comments_and_texts_is_read_through_once() -> None:
    text = '{"a": "' + "x" * 1_000_000 + '"' + "/* y */ " * 100_000 + "}"
    assert len(parse_json(text, "f").data["a"]) == 1_000_000
