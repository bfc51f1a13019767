"""Values whose strings hold expressions: compiled once, every fault told with its place, nothing shared."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from luthier.errors import ExpressionError
from luthier.expr import Scope, compile_condition, compile_faults, compile_value
from luthier.taint import TRUSTED, UNTRUSTED, Labelled

SCOPE = Scope({"a": Labelled({"n": 1, "l": [1, 2], "t": "x"}, UNTRUSTED)}, now=0.0)


def test_all_faults_of_a_value_are_told_each_with_its_path_and_offset() -> None:
    value = {
        "ok": "${a.n}",
        "one": "${a b} and ${c d}",
        "deep": [{"x": "${"}, "fine", "{{ =}}"],
        "n": 5,
    }
    found = [(path, error.offset, error.source) for path, error in compile_faults(value)]
    assert found == [
        (("one",), 4, "${a b} and ${c d}"),
        (("one",), 15, "${a b} and ${c d}"),
        (("deep", 0, "x"), 0, "${"),
        (("deep", 2), 3, "{{ =}}"),
    ]
    with pytest.raises(ExpressionError) as caught:
        compile_value(value)
    assert (caught.value.offset, caught.value.caret) == (4, "${a b} and ${c d}\n    ^")


def test_a_value_without_faults_has_none() -> None:
    assert compile_faults({"a": "${a.n}", "b": ["\\${x", 1, None]}) == []


def test_the_caret_stands_in_the_line_of_the_fault() -> None:
    text = "first line\n\tsecond ${a b} line\nthird"
    ((_, error),) = compile_faults(text)
    assert error.caret == "\tsecond ${a b} line\n\t           ^"


def test_a_fault_of_evaluation_points_into_the_string_that_was_written() -> None:
    compiled = compile_value({"x": "fine ${a.n}", "y": ["n: ${a.n | uppercase}"]})
    with pytest.raises(ExpressionError) as caught:
        compiled.evaluate(SCOPE)
    assert caught.value.source == "n: ${a.n | uppercase}"
    assert caught.value.offset == 11


def test_a_value_that_cannot_be_printed_into_text_is_a_fault_of_that_text() -> None:
    scope = Scope({"when": Labelled({"at": dt.date(2030, 1, 1)})}, now=0.0)
    compiled = compile_value("at ${when.at}")
    with pytest.raises(ExpressionError, match="A date is not a JSON value") as caught:
        compiled.evaluate(scope)
    assert (caught.value.source, caught.value.offset) == ("at ${when.at}", 0)
    assert compile_value("${when.at}").evaluate(scope).value == dt.date(2030, 1, 1)


def test_constants_come_out_as_they_were_written_and_cannot_be_spoilt() -> None:
    written: dict[str, Any] = {"l": [1, {"x": "y"}], "t": (1, 2), "d": dt.date(2030, 1, 1)}
    compiled = compile_value(written)
    first = compiled.evaluate(SCOPE)
    assert first == Labelled({"l": [1, {"x": "y"}], "t": [1, 2], "d": dt.date(2030, 1, 1)}, TRUSTED)
    first.value["l"][1]["x"] = "spoilt"
    assert compiled.evaluate(SCOPE).value["l"] == [1, {"x": "y"}]
    assert compiled.source is written


def test_constants_beside_expressions_cannot_be_spoilt_either() -> None:
    compiled = compile_value({"keep": [1], "n": "${a.n}", "t": ("${a.n}", 2)})
    compiled.evaluate(SCOPE).value["keep"].append(2)
    assert compiled.evaluate(SCOPE).value == {"keep": [1], "n": 1, "t": [1, 2]}


def test_a_lone_expression_gives_the_value_itself_and_not_a_copy() -> None:
    assert compile_value("${a.l}").evaluate(SCOPE).value is SCOPE.values["a"].value["l"]


def test_a_value_nested_too_deep_is_a_fault() -> None:
    value: Any = "${a.n}"
    for _ in range(200):
        value = [value]
    with pytest.raises(ExpressionError, match="nested deeper than 100 levels"):
        compile_value(value)
    ((path, error),) = compile_faults(value)
    assert len(path) == 101
    assert "nested deeper than 100 levels" in error.message


def test_a_condition_that_is_no_text_stands_for_itself() -> None:
    for value in (True, False, None, 5):
        compiled = compile_condition(value)
        assert compiled.evaluate(SCOPE).value is value
        assert compiled.is_constant


def test_a_condition_without_delimiters_points_its_faults_into_itself() -> None:
    compiled = compile_condition("a.n > 0 && nobody.n")
    assert not compiled.is_constant
    with pytest.raises(ExpressionError) as caught:
        compiled.evaluate(SCOPE)
    assert caught.value.caret == "a.n > 0 && nobody.n\n           ^"


def test_a_compiled_value_shows_what_was_written() -> None:
    assert repr(compile_value(["${a.n}"])) == "Compiled(['${a.n}'])"


@pytest.mark.parametrize("value", [{"a": "\\${x}"}, ["\\{{x}}", {"b": "\\${y}"}], "\\${x}"])
def test_an_escape_is_undone_also_where_nothing_is_an_expression(value: Any) -> None:
    compiled = compile_value(value)
    assert compiled.is_constant
    assert "\\" not in str(compiled.evaluate(Scope({}, now=0.0)).value)
