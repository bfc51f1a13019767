"""Every case of tests/cases/expr, and that the files leave nothing of the language out."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from luthier.errors import ExpressionError
from luthier.expr import parse
from luthier.expr.functions import FILTERS, FUNCTIONS, METHODS, NAMESPACES
from luthier.expr.printing import print_tree
from luthier.expr.nodes import Literal, ListOf, Node, ObjectOf
from tests.expr.cases import give, names, read, same, scope_of

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
