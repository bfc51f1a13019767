"""Every case of tests/cases/expr, and that the files leave nothing of the language out."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import pytest

from luthier.errors import ExpressionError
from luthier.expr import parse
from luthier.expr.functions import FILTERS, FUNCTIONS, METHODS, NAMESPACES
from luthier.expr.nodes import ListOf, Literal, Node, ObjectOf
from luthier.expr.printing import print_tree
from tests.expr.cases import give, names, read, same, scope_of

if TYPE_CHECKING:
    from luthier.expr.function import Function

TABLES = "operators.yaml"


def _listed() -> list[Any]:
    found = []
    for name in names():
        loaded = read(name)
        for number, case in enumerate(loaded.get("cases", ())):
            text = case.get("is") or case.get("expr") or case.get("condition") or case.get("value")
            found.append(pytest.param(loaded, case, id=f"{name}-{number}-{text}"))
    return found


def _rows() -> list[Any]:
    loaded = read(TABLES)
    operands = loaded["operands"]
    found = []
    for table in loaded["tables"]:
        for left, row in zip(operands, table["rows"], strict=True):
            cells = [({"a": left, "b": right}, cell) for right, cell in zip(operands, row, strict=True)]
            found.append(pytest.param(table["expr"], cells, id=f"{table['expr']} with a={left!r}"))
    for table in (*loaded["prefixes"], *loaded["looks"]):
        cells = [({"a": value}, cell) for value, cell in zip(operands, table["row"], strict=True)]
        found.append(pytest.param(table["expr"], cells, id=table["expr"]))
    return found


@pytest.mark.parametrize(("file", "case"), _listed())
def test_a_case_gives_what_its_source_says(file: dict[str, Any], case: dict[str, Any]) -> None:
    assert case.get("source", file.get("source")), "a case names its source of truth"
    scope = file.get("scope", {})
    if "fails" not in case:
        given = give(case, scope)
        assert same(given, case["gives"]), f"gave {given!r}"
        return
    with pytest.raises(ExpressionError) as caught:
        give(case, scope)
    assert case["fails"] in str(caught.value)
    if "at" in case:
        assert caught.value.offset == case["at"]
        assert caught.value.source == next(case[key] for key in ("expr", "condition", "value") if key in case)


@pytest.mark.parametrize(("expr", "cells"), _rows())
def test_an_operator_gives_what_javascript_gives(expr: str, cells: list[tuple[dict[str, Any], Any]]) -> None:
    wrong = []
    for scope, expected in cells:
        given = (
            parse(expr)
            .evaluate(scope_of({name: copy.deepcopy(value) for name, value in scope.items()}))
            .value
        )
        if not same(given, expected):
            wrong.append((scope, given, expected))
    assert not wrong


@pytest.mark.parametrize(("expr", "cells"), _rows())
def test_an_operator_gives_the_same_for_values_written_in_the_expression(
    expr: str, cells: list[tuple[dict[str, Any], Any]]
) -> None:
    wrong = []
    for scope, expected in cells:
        source = expr
        for name, value in scope.items():
            source = source.replace(name, f"({print_tree(_written(value))})") if name in "ab" else source
        given = parse(source).evaluate(scope_of({})).value
        if not same(given, expected):
            wrong.append((source, given, expected))
    assert not wrong


def _written(value: Any) -> Node:
    if isinstance(value, list):
        return ListOf(tuple(map(_written, value)))
    if isinstance(value, dict):
        return ObjectOf(tuple((key, _written(item)) for key, item in value.items()))
    return Literal(value)


ROWS = {
    "Delimiters", "Whole string is one expression", "Mixed text", "Escape", "Containers", "Context roots",
    "$input.x", "Paths", "Property test", "??", "||", "&&", "? :", "!", "Compare", "Methods", "Literals",
    "Not supported", "JS truthiness", "Precedence", "Filters",
}  # fmt: skip
"""The rows of the language reference, 2.1."""


def test_every_row_of_the_language_reference_has_cases() -> None:
    assert {case["row"] for case in read("reference.yaml")["cases"]} == ROWS | {"2.2"}


@pytest.mark.parametrize(
    ("file", "known"),
    [("functions.yaml", FUNCTIONS), ("filters.yaml", FILTERS), ("methods.yaml", METHODS)],
)
def test_every_function_filter_and_method_has_cases_for_null_and_for_wrong_kinds(
    file: str, known: dict[str, Function]
) -> None:
    played: dict[str, list[dict[str, Any]]] = {}
    for case in read(file)["cases"]:
        played.setdefault(case["of"], []).append(case)
    assert known.keys() <= played.keys()
    for name, function in known.items():
        cases = played[name]
        assert any("gives" in case for case in cases)
        if function.least:
            assert any("nul" in case["expr"] for case in cases), f"{name} of null"
        if function.takes:
            assert any(" works on " in case.get("fails", "") for case in cases), f"{name} of a wrong kind"


def test_every_name_of_javascript_that_stands_for_a_function_has_a_case() -> None:
    written = " ".join(case["expr"] for case in read("functions.yaml")["cases"])
    for space, names_in in NAMESPACES.items():
        for name in names_in:
            assert f"{space}.{name}(" in written
