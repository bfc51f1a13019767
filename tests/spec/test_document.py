"""A document tells for every value, and for every character of a text, where it is written."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from luthier.errors import ExpressionError, SpecError
from luthier.expr import compile_value
from luthier.spec import Document, load, read_ensemble
from luthier.spec.document import dotted, locate
from luthier.spec.expressions import Placed

TEXT = """\
a: 1
list:
  - x
  - {k: v, "quoted key": [1, 2]}
"""


def test_values_and_keys_are_found() -> None:
    document = load(TEXT, file="f")
    assert document.mark(()) == (1, 1)
    assert document.mark(("a",)) == (1, 4)
    assert document.mark(("a",), key=True) == (1, 1)
    assert document.mark(("list", 0)) == (3, 5)
    assert document.mark(("list", 1, "quoted key", 1)) == (4, 30)
    assert document.mark(("list", 1, "quoted key"), key=True) == (4, 12)


def test_what_is_not_there_is_told_at_the_nearest_thing_around_it() -> None:
    document = load(TEXT, file="f")
    assert document.mark(("list", 1, "zzz")) == document.mark(("list", 1))
    assert document.mark(("zzz",), key=True) == (1, 1)
    assert document.holds(("list", 1, "k"))
    assert not document.holds(("list", 1, "zzz"))
    assert not document.holds(("a", "b"))
    assert not document.holds(("list", 7))


def test_a_character_of_what_is_not_there_is_told_at_what_is_around_it() -> None:
    document = load(TEXT, file="f")
    assert document.fault_within("here", ("list", 7), 3).place == "f:3:3"


def test_a_name_that_cannot_be_found_is_told_at_its_value() -> None:
    value = ["${a.b}", "${a.c}"]
    use = Placed(("x",), value, compile_value(value))
    assert use.spot("a", "c") == (("x", 1), 2)
    assert use.spot("a", "zzz") == (("x", 0), 2)
    assert use.spot("zzz") == (("x",), 0)


def test_python_data_has_no_places_so_the_message_tells_the_path() -> None:
    document = Document("", {"agents": [{"name": "a"}]})
    assert document.mark(("agents",)) == (0, 0)
    fault = document.fault("is wrong", ("agents", 0, "name"), suggestion="mend it")
    assert str(fault) == "agents[0].name: is wrong (mend it)"
    assert str(document.fault("is wrong", ())) == "is wrong"
    assert document.fault_within("is wrong", ("agents", 0, "name"), 1) == document.fault(
        "is wrong", ("agents", 0, "name")
    )
    error = ExpressionError("Not this.", source="a +", offset=2, hint="Write more.")
    assert str(document.expression_fault(("x",), error)) == "x: not this (write more)\na +\n  ^"


def test_paths_are_written_as_people_write_them() -> None:
    assert dotted(("agents", 0, "config", "tool")) == "agents[0].config.tool"
    assert dotted((0, "a")) == "[0].a"


STYLES = {
    "plain": "a: hello X",
    "plain over lines": "a: hello\n  and\n\n  more X",
    "single": "a: 'it''s X'",
    "single over lines": "a: 'it''s\n\n  an X'",
    "double": 'a: "\\u00e9\\x41\\U0001F600\\t\\\\ X"',
    "double over lines": 'a: "one\\\n    two\n    three X"',
    "double with an escaped blank": 'a: "\\  X"',
    "literal": "a: |\n  one\n    two\n\n  X",
    "literal with a comment": "a: |2- # X\n  one\n  X",
    "folded": "a: >-\n  one\n  two\n\n    three\n  X",
    "with an anchor and a tag": "a: &anchorX !!str hello X",
    "windows lines": "a: |\r\n  one\r\n  X\r\n",
}


@pytest.mark.parametrize("text", STYLES.values(), ids=STYLES)
def test_a_character_is_found_in_every_style(text: str) -> None:
    document = load(text, file="f")
    offset = document.data["a"].index("X")
    fault = document.fault_within("here", ("a",), offset)
    lines = text.splitlines()
    assert lines[fault.line - 1][fault.column - 1 :] == "X" + lines[fault.line - 1].rpartition("X")[2]
    assert fault.line == len(lines)
    assert document.fault("here", ("a",), offset=offset).place == fault.place


@settings(deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=30), st.text(max_size=30))
def test_a_place_within_is_always_inside_what_is_written(written: str, value: str) -> None:
    for offset in range(len(value) + 2):
        assert 0 <= locate(written, value, offset) <= max(0, len(written) - 1)


def test_an_excerpt_shows_the_line_with_a_caret_below_the_column() -> None:
    fault = load("a:\n\n  b: ${x \x85y}\n", file="f").fault_within("here", ("a", "b"), 6)
    assert fault.excerpt == "  b: ${x \\x85y}\n              ^"
    tabbed = load('a: "\tx"\n', file="f").fault_within("here", ("a",), 1)
    assert tabbed.excerpt == 'a: "\tx"\n    \t^'


def test_a_long_line_is_cut_around_the_column() -> None:
    document = load(f"a: {'x' * 300}Y{'z' * 300}\n", file="f")
    line, caret = document.fault_within("here", ("a",), 300).excerpt.split("\n")
    assert line[0] == line[-1] == "…"
    assert line[caret.index("^")] == "Y"
    assert len(line) < 110


def test_faults_of_expressions_point_into_the_file() -> None:
    head = "ensemble: e\nagents:\n  - name: a\n    operation: transform\n    config:\n"
    with pytest.raises(SpecError) as caught:
        read_ensemble(f"{head}      value: >-\n        one\n        ${{input. }}\n", file="e.yaml")
    (fault,) = caught.value.faults
    assert fault.place == "e.yaml:8:17"
    assert fault.excerpt == "        ${input. }\n                ^"
