"""JSON that is handed in: what msgspec reads, but for a name that stands twice, told with its place."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from luthier.given import LOOKED_THROUGH, RepeatedNameError, given_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(-1e9, 1e9) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)

TWICE = [
    ('{"a":1,"a":2}', "a", 1, 8),
    ('{"a": 1,\n  "b": 2,\n  "a" : 3}', "a", 3, 3),
    (r'{"x":{"b":[1,{"c":"}","\u0063":2}]}}', "c", 1, 23),
    (r'{"a\"{":1,"y":[{}],"a\"{":1}', 'a"{', 1, 20),
    ('[{"a":1},{"a":1,"b":"a","a":{"a":1}}]', "a", 1, 25),
    ('{"":1,"":1}', "", 1, 7),
    ('{"a":1,"p":"' + "{" * LOOKED_THROUGH + '","a":2}', "a", 0, 0),
    ('{"a":1,"p":"' + "\\\\" * LOOKED_THROUGH + '","a":2}', "a", 0, 0),
]


@pytest.mark.parametrize(("text", "name", "line", "column"), TWICE)
def test_a_name_that_stands_twice_is_told_with_its_place(
    text: str, name: str, line: int, column: int
) -> None:
    for form in (text, text.encode()):
        with pytest.raises(RepeatedNameError, match="stands a second time") as caught:
            given_json(form)
        assert (caught.value.name, caught.value.line, caught.value.column) == (name, line, column)


@given(VALUES)
def test_what_says_each_name_once_is_read_as_it_is(value: Any) -> None:
    text = json.dumps(value)
    assert given_json(text) == msgspec.json.decode(text)


@given(VALUES, st.text(), VALUES)
def test_wherever_it_stands_it_is_found(value: Any, name: str, other: Any) -> None:
    key = json.dumps(name)
    twice = f"{{{key}:{json.dumps(value)},\n {key} :{json.dumps(other)}}}"
    for text in (twice, f"[1,{twice}]", f'{{"outer":{twice}}}'):
        with pytest.raises(RepeatedNameError):
            given_json(text)


@pytest.mark.parametrize(
    "text", ["{", "", "nope", "[1,]", '{"a":NaN}', '"\ud800"', b"\xff", b'"\xff"', b"\xef\xbb\xbf{}"]
)
def test_what_is_no_json_is_a_fault_of_form(text: str | bytes) -> None:
    with pytest.raises(msgspec.DecodeError) as caught:
        given_json(text)
    assert not isinstance(caught.value, RepeatedNameError)


def test_what_is_too_deep_is_told_as_msgspec_does() -> None:
    with pytest.raises(RecursionError):
        given_json("[" * 100_000)


def test_a_type_is_kept_and_members_that_it_does_not_know_are_looked_at_too() -> None:
    class Known(msgspec.Struct):
        a: int

    assert given_json('{"a": 1, "b": 2}', Known) == Known(1)
    with pytest.raises(msgspec.ValidationError):
        given_json('{"a": "x"}', Known)
    with pytest.raises(RepeatedNameError, match=r"`b` .* line 1, column 17"):
        given_json('{"a": 1, "b": 2,"b":3}', Known)
    with pytest.raises(msgspec.DecodeError):
        given_json(b'{"a": 1, "b": "\xff"}', Known)


def test_a_long_name_is_shown_short_and_on_one_line() -> None:
    name = "x\u001b" + "y" * 10_000
    with pytest.raises(RepeatedNameError) as caught:
        given_json(json.dumps({name: 1})[:-1] + f",{json.dumps(name)}:1}}")
    assert len(str(caught.value)) < 200
    assert "\u001b" not in str(caught.value)
