"""What a person is shown of a change."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET

from luthier.govern.differences import Difference, differences

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ({"a": 1}, {"a": 2}, [Difference("/a", 1, 2)]),
        ({"a": 1}, {}, [Difference("/a", 1, UNSET)]),
        ({}, {"a": 1}, [Difference("/a", UNSET, 1)]),
        ({"a": [1, 2]}, {"a": [1, 3, 4]}, [Difference("/a/1", 2, 3), Difference("/a/2", UNSET, 4)]),
        ({"a/b": {"~": 1}}, {"a/b": {"~": 2}}, [Difference("/a~1b/~0", 1, 2)]),
        ({"a": 1}, {"a": {"b": 1}}, [Difference("/a", 1, {"b": 1})]),
        ({"a": True}, {"a": 1}, [Difference("/a", old=True, new=1)]),
        ({}, {"a": {"b": [1, {}]}}, [Difference("/a/b/0", UNSET, 1), Difference("/a/b/1", UNSET, {})]),
        ({"a": {"b": [1, []]}}, {}, [Difference("/a/b/0", 1, UNSET), Difference("/a/b/1", [], UNSET)]),
        ({"a": {}}, {"a": []}, [Difference("/a", {}, [])]),
        ({"a": {}}, {}, [Difference("/a", {}, UNSET)]),
        ({"a": None}, {}, [Difference("/a", None, UNSET)]),
        ({"a": 1}, {"a": 1.0}, []),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, []),
    ],
)
def test_each_place_that_differs_is_told(old: Any, new: Any, expected: list[Difference]) -> None:
    assert list(differences(old, new)) == expected


@settings(deadline=None)
@given(values, values)
def test_there_is_a_difference_unless_the_values_are_equal(old: Any, new: Any) -> None:
    same = msgspec.json.encode(old, order="sorted") == msgspec.json.encode(new, order="sorted")
    assert (differences(old, new) == ()) == same
