"""Closed types: what is of one, and that nothing else is."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luthier.tools.closed import LONGEST, MOST, MOST_IDS, ClosedType, id_of, read_closed
from luthier.tools.schema import Schema

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=80),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@pytest.mark.parametrize(
    ("written", "value", "fits"),
    [
        ("boolean", True, True),
        ("boolean", False, True),
        ("boolean", 1, False),
        ("boolean", "true", False),
        ("boolean", None, False),
        ({"enum": ["low", "high"]}, "low", True),
        ({"enum": ["low", "high"]}, "Low", False),
        ({"enum": ["low", "high"]}, "low ", False),
        ({"enum": ["low", "high"]}, ["low"], False),
        ({"enum": [1, 2]}, 1, True),
        ({"enum": [1, 2]}, True, False),
        ({"enum": [1, 2]}, "1", False),
        ({"enum": [True]}, 1, False),
        ({"enum": [None]}, None, True),
        ({"integer": [0, 10]}, 0, True),
        ({"integer": [0, 10]}, 10, True),
        ({"integer": [0, 10]}, 11, False),
        ({"integer": [0, 10]}, -1, False),
        ({"integer": [0, 10]}, 1.5, False),
        ({"integer": [0, 10]}, True, False),
        ({"integer": [0, 10]}, "5", False),
        ({"number": [0, 1]}, 0.5, True),
        ({"number": [0, 1]}, 1.0000001, False),
        ({"number": [0, 1]}, float("nan"), False),
        ({"number": [0, 1]}, float("inf"), False),
        ({"pattern": "[A-Z]{2}-[0-9]+"}, "AB-12", True),
        ({"pattern": "[A-Z]{2}-[0-9]+"}, "AB-12\n", False),
        ({"pattern": "[A-Z]{2}-[0-9]+"}, "see AB-12", False),
        ({"pattern": "[A-Z]{2}-[0-9]+"}, "AB-12 and ignore all", False),
        ({"pattern": "a|b"}, "a", True),
        ({"pattern": "a|b"}, "ab", False),
        ({"pattern": "a|b"}, "xb", False),
        ({"pattern": "(?m)a"}, "a\nb", False),
        ({"pattern": "a*"}, "a" * LONGEST, True),
        ({"pattern": "a*"}, "a" * (LONGEST + 1), False),
        ({"pattern": "a*"}, 5, False),
        ({"pattern": "(a+)+b"}, "a" * LONGEST, False),  # which would take others years
    ],
)
def test_a_value_is_of_the_type_or_not(written: Any, value: Any, *, fits: bool) -> None:
    assert read_closed(written).fits(value) is fits


@given(JSON)
def test_nothing_else_is(value: Any) -> None:
    if read_closed({"enum": ["low", 3, False]}).fits(value):
        assert value in ("low", 3, False)
    if read_closed("boolean").fits(value):
        assert type(value) is bool
    if read_closed({"integer": [-5, 5]}).fits(value):
        assert type(value) in (int, float)
        assert -5 <= value <= 5
    if read_closed({"pattern": "[a-z0-9]+"}).fits(value):
        assert isinstance(value, str)
        assert value.isascii()
        assert value.isalnum()


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("text", "boolean"),
        (None, "boolean"),
        ({}, "boolean"),
        ([], "boolean"),
        ({"enum": ["a"], "pattern": "a"}, "boolean"),
        ({"text": 5}, "'text'"),
        ({"enum": []}, "from 1"),
        ({"enum": "low"}, "a list"),
        ({"enum": list(range(MOST + 1))}, "from 1"),
        ({"enum": [["a"]]}, "at most 64"),
        ({"enum": ["x" * (LONGEST + 1)]}, "at most 64"),
        ({"integer": 5}, r"\[low, high\]"),
        ({"integer": [0]}, r"\[low, high\]"),
        ({"number": [1, 0]}, "first"),
        ({"number": ["a", 1]}, "numbers"),
        ({"number": [True, 1]}, "numbers"),
        ({"number": [0, float("inf")]}, "numbers"),
        ({"pattern": 5}, "text"),
        ({"pattern": "a" * (LONGEST + 1)}, "at most 64"),
        ({"pattern": "(?=a)"}, "looking around"),
        ({"pattern": r"(a)\1"}, "looking around"),
        ({"pattern": "a)|(?:.*"}, "looking around"),
    ],
)
def test_what_is_not_closed_is_no_such_type(written: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        read_closed(written)


def test_an_id_is_one_of_those_there_are() -> None:
    assert id_of(["a", 7]).fits("a")
    assert id_of(["a", 7]).fits(7)
    for other in ("b", "7", True, None, ["a"]):
        assert not id_of(["a", 7, 1]).fits(other)
    assert not id_of([]).fits("a")
    for odd in ("abc", [None], [1.5], [True], {"a": 1}, list(range(MOST_IDS + 1))):
        with pytest.raises(ValueError, match="id_of"):
            id_of(odd)


def test_what_cannot_be_judged_is_not_of_the_type() -> None:
    assert not ClosedType("odd", Schema({"type": 5})).fits("a")
