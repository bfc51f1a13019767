"""JSON Pointers: what is written from a path leads back to where it came from."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luthier.tools.pointers import MISSING, follow, pointer

DOCUMENT = {"a": [{"b/c": 1}, None], "": {"~0": 2}, "0": 3, "%41": 4}


@pytest.mark.parametrize(
    ("path", "text", "value"),
    [
        ([], "", DOCUMENT),
        (["a", 0, "b/c"], "/a/0/b~1c", 1),
        (["a", 1], "/a/1", None),
        (["", "~0"], "//~00", 2),
        (["0"], "/0", 3),
        (["%41"], "/%41", 4),
    ],
)
def test_a_pointer_leads_where_its_path_leads(path: list[str | int], text: str, value: Any) -> None:
    assert pointer(path) == text
    assert follow(DOCUMENT, text) == value


@pytest.mark.parametrize("text", ["/b", "/a/2", "/a/-1", "/a/x", "/a/²", "/0/0", "/a/0/b~1c/d", "a", "#"])
def test_a_pointer_that_leads_nowhere_gives_missing(text: str) -> None:
    assert follow(DOCUMENT, text) is MISSING


def test_tuples_are_followed_like_lists() -> None:
    assert follow({"a": (1, 2)}, "/a/1") == 2


@given(st.lists(st.text(), max_size=4))
def test_any_path_of_keys_leads_back(path: list[str]) -> None:
    document: Any = "here"
    for key in reversed(path):
        document = {key: document}
    assert follow(document, pointer(path)) == "here"
