"""One spelling for equal definitions, another for every other: measured against the library for RFC 8785."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
import rfc8785
from hypothesis import given, settings
from hypothesis import strategies as st

from luthier.govern.canonical import canonical, definition_hash

exact = st.integers(-(2**53) + 1, 2**53 - 1)
scalars = (
    st.none()
    | st.booleans()
    | exact
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8"))
)
json_values = st.recursive(
    scalars,
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner),
    max_leaves=20,
)
plain = st.recursive(
    st.none() | st.booleans() | exact | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@settings(deadline=None)
@given(json_values)
def test_the_spelling_is_that_of_rfc_8785(value: Any) -> None:
    assert canonical(value) == rfc8785.dumps(value)


@settings(deadline=None)
@given(
    st.dictionaries(
        st.text(), st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(), max_size=5
    )
)
def test_two_values_have_one_hash_only_if_they_are_equal(value: dict[str, Any]) -> None:
    read = json.loads(json.dumps(dict(reversed(value.items()))))
    assert definition_hash(read) == definition_hash(value)
    assert definition_hash({**value, "more": 1}) != definition_hash({**value, "more": 2})


def test_numbers_that_are_equal_are_spelled_alike_and_others_are_not() -> None:
    alike: tuple[tuple[Any, Any], ...] = (
        (1, 1.0),
        (0, -0.0),
        (10**21, 1e21),
        (2**63, float(2**63)),
        (-5, -5.0),
        (100, 1e2),
    )
    for one, other in alike:
        assert canonical([one]) == canonical([other])
        assert canonical([one, 0.5]) == canonical([other, 0.5])
    apart: tuple[tuple[Any, Any], ...] = (
        (1, True),
        (0, False),
        (2**63 - 1, 2**63),
        (2**53 + 1, 2**53),
        (10**400, 10**400 + 1),
        (0, None),
    )
    for one, other in apart:
        assert canonical([one]) != canonical([other])


def test_what_no_double_holds_is_marked_so_that_no_text_can_pass_for_it() -> None:
    beyond = {"maximum": 2**63 - 1, "minimum": 1.0}
    assert canonical(beyond) == canonical(dict(reversed(beyond.items())))
    assert canonical(beyond) == canonical({**beyond, "minimum": 1})
    assert not canonical(beyond).startswith(b"{")


@pytest.mark.parametrize(
    "value", [{"a": "\ud800"}, {"\ud800": 1}, {"a": 0.5, "b": "\ud800"}, {"a": float("nan")}]
)
def test_what_is_no_json_has_no_spelling(value: Any) -> None:
    with pytest.raises(ValueError, match=r"surrogates|UTF-8|nan"):
        canonical(value)


def test_every_control_character_is_spelled_as_rfc_8785_says() -> None:
    text = "".join(map(chr, range(0x100))) + "\u2028"
    assert canonical({text: text}) == rfc8785.dumps({text: text})


def test_keys_beyond_the_first_plane_sort_as_rfc_8785_says() -> None:
    assert canonical({"\U0001f600": 1, "\uffff": 2}) == rfc8785.dumps({"\U0001f600": 1, "\uffff": 2})


def test_what_is_nested_too_deeply_is_named_as_such() -> None:
    deep: Any = 1
    for _ in range(5000):
        deep = [deep]
    with pytest.raises(ValueError, match="nested too deeply"):
        canonical({"inputSchema": deep})


@settings(deadline=None)
@given(plain)
def test_the_quick_way_and_the_book_agree(value: Any) -> None:
    try:
        expected = rfc8785.dumps(value)
    except rfc8785.CanonicalizationError:  # a lone surrogate
        return
    assert canonical(value) == expected
    assert msgspec.json.decode(expected) == value
