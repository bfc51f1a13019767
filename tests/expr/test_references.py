"""What an expression names and looks at is read from its tree, as the cases say."""

from __future__ import annotations

from typing import Any

import pytest

from luthier.expr import Reference, compile_condition, compile_value, parse
from tests.expr.cases import read

CASES = read("references.yaml")["expressions"]


@pytest.mark.parametrize("case", CASES, ids=[case["expr"] for case in CASES])
def test_names_and_looks_are_read_from_the_tree(case: dict[str, Any]) -> None:
    expression = parse(case["expr"])
    named = frozenset(Reference(root, tuple(path)) for root, *path in case["names"])
    assert expression.references == named
    assert expression.looked_at == frozenset(case["looked_at"])


def test_a_value_names_what_its_expressions_name() -> None:
    compiled = compile_value({"x": "${a.output} and ${b.failed}", "y": ["{{c.n || d}}"], "${e}": 1})
    assert compiled.references == {
        Reference("a", ("output",)),
        Reference("b", ("failed",)),
        Reference("c", ("n",)),
        Reference("d"),
    }
    assert compiled.looked_at == {"b", "c"}
    assert not compiled.is_constant


def test_a_condition_without_delimiters_names_what_it_names() -> None:
    assert compile_condition("a.failed && b.output").references == {
        Reference("a", ("failed",)),
        Reference("b", ("output",)),
    }
    assert compile_condition("${a.failed} && ${b.error}").looked_at == {"a", "b"}


def test_text_without_expressions_is_constant_and_names_nothing() -> None:
    values: list[Any] = ["a.output", "\\${a}", 7, None, {"a": ["b"]}, "", []]
    for value in values:
        compiled = compile_value(value)
        assert compiled.is_constant
        assert compiled.references == frozenset()
        assert compiled.source == value
