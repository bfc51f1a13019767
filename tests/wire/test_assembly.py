"""Putting together what a server prints over several lines."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luthier.wire.assembly import ASSEMBLY_BYTES, Assembly, begin

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.text(), anything, min_size=1), st.integers(0, 4))
def test_pretty_printed_json_is_complete_at_its_last_line_and_not_before(
    value: dict[str, Any], indent: int
) -> None:
    first, *rest = json.dumps(value, indent=indent, ensure_ascii=False).encode().split(b"\n")
    assembly = begin(first)
    assert assembly is not None
    for line in rest:
        assert not assembly.complete
        assembly.add(line)
    assert assembly.complete
    assert json.loads(assembly.text) == value


@pytest.mark.parametrize(
    "line",
    [b"[INFO] {", b"{ starting", b'{"whole": "line"}', b"text {", b"[1, [", b"", b"}"],
    ids=repr,
)
def test_a_line_that_does_not_open_json_begins_nothing(line: bytes) -> None:
    assert begin(line) is None


@pytest.mark.parametrize("line", [b"{", b"[", b'{"a": [', b'  { "a": "}', b"[{", b"{\r"], ids=repr)
def test_a_line_that_leaves_a_bracket_or_string_open_begins_one(line: bytes) -> None:
    assert begin(line) is not None


def test_brackets_in_strings_do_not_count() -> None:
    assembly = begin(b'{"a": "}}}\\"}",')
    assert assembly is not None
    assembly.add(b'"b": "{{{"')
    assert not assembly.complete
    assembly.add(b"}")
    assert assembly.complete


def test_a_string_may_run_over_a_line_end() -> None:
    assembly = begin(b'{"a": "one }')
    assert assembly is not None
    assembly.add(b'two } \\"')
    assert not assembly.complete
    assembly.add(b'three"}')
    assert assembly.complete


def test_an_assembly_is_bounded() -> None:
    assembly = Assembly()
    assembly.add(b"{")
    assert not assembly.refusal
    assembly.add(b"x" * ASSEMBLY_BYTES)
    assert "too many lines" in assembly.refusal


def test_a_line_of_very_many_quotes_is_not_put_together() -> None:
    line = b'{"a":' + b'"\\' * 50_001
    assert begin(line) is None
    assembly = begin(b"{")
    assert assembly is not None
    assembly.add(line)
    assert "too many quotes" in assembly.refusal
