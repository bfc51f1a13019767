"""The canonical spelling of an expression reads back as the same expression."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given

from luthier.expr import compile_value, parse
from luthier.expr.printing import print_tree
from luthier.expr.scan import scan_close
from tests.expr.cases import names, read, scope_of
from tests.expr.generate import LAW, TREES

if TYPE_CHECKING:
    from luthier.expr.nodes import Node

SPELLINGS = {
    "a.b-c [ 'd' ]['e f'][0]": "a.b-c.d['e f'][0]",
    "a?.b?.[0]": "a.b[0]",
    "((a))": "a",
    "(a.b).c": "a.b.c",
    "a ?? (b || c)": "a ?? b || c",
    "(a ?? b) || c": "(a ?? b) || c",
    "a || (b || c)": "a || (b || c)",
    "(a || b) || c": "a || b || c",
    "a - (b - c)": "a - (b - c)",
    "(a*b)+c": "a * b + c",
    "a*(b+c)": "a * (b + c)",
    "!(a && b)": "!(a && b)",
    "!(!a)": "!!a",
    "-(-a)": "- -a",
    "+(+a)": "+ +a",
    "a ? (b ? 1 : 2) : (c ? 3 : 4)": "a ? b ? 1 : 2 : c ? 3 : 4",
    "(a ? 1 : 2) ? 3 : 4": "(a ? 1 : 2) ? 3 : 4",
    "(a ?? b) | uppercase": "(a ?? b) | uppercase",
    "a | default(none)": "a | default('none')",
    "a | default((none))": "a | default((none))",
    "(a | first).b": "(a | first).b",
    "(5).x": "(5).x",
    "(1.5 + 1).x": "(1.5 + 1).x",
    '{a: 1, "b c": [2,],}': "{'a': 1, 'b c': [2]}",
    "'it\\'s'": "'it\\'s'",
    '"a\\nb"': "'a\\nb'",
    "'a ${b} c'": "join(['a ', b, ' c'], '')",
    "'\\${b}'": "'\\${b}'",
    "Math.floor(a)": "Math.floor(a)",
    "a.split(',').join()": "a.split(',').join()",
    "undefined": "null",
    "1.50": "1.5",
    "12345678901234567890": "12345678901234567890",
    "1e999": "null",
    "a.x@v1.2": "a.x@v1.2",
    "a['x@v1.2']['0']": "a.x@v1.2['0']",
    "a['x@v1a']": "a['x@v1a']",
    "${a} && {{b}}": "a && b",
    "": "null",
}


@pytest.mark.parametrize(("source", "spelling"), SPELLINGS.items(), ids=list(SPELLINGS))
def test_an_expression_has_one_canonical_spelling(source: str, spelling: str) -> None:
    assert str(parse(source)) == spelling
    assert parse(spelling) == parse(source)
    assert hash(parse(spelling)) == hash(parse(source))


@LAW
@given(TREES)
def test_a_printed_tree_parses_to_an_equal_tree(tree: Node) -> None:
    assert parse(print_tree(tree)).tree == tree


@LAW
@given(TREES)
def test_a_printed_tree_keeps_its_meaning_between_delimiters(tree: Node) -> None:
    source = print_tree(tree)
    for text in (f"${{{source}}}", f"{{{{ {source} }}}}", f"x ${{{source}}} y {{{{{source}}}}}"):
        assert scan_close(text, text.index("{") + (1 if text[0] != "{" else 2)) > 0
        assert compile_value(text).references == parse(source).references


def test_expressions_with_other_meanings_are_not_equal() -> None:
    assert parse("a + b") != parse("b + a")
    assert parse("a.b") != parse("a['c']")
    assert parse("a") != "a"
    assert repr(parse("a  + b")) == "Expression('a  + b')"


def test_every_expression_in_the_cases_survives_printing() -> None:
    for name in names():
        for case in read(name).get("cases", ()):
            if "expr" in case and "fails" not in case:
                expression = parse(case["expr"])
                assert parse(str(expression)) == expression
                scope = scope_of(read(name).get("scope", {}) | case.get("scope", {}))
                assert parse(str(expression)).evaluate(scope) == expression.evaluate(scope)
