"""Laws of every expression: it ends well, repeats itself, changes nothing, and its label tells the truth."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Any

from hypothesis import given, settings
from hypothesis import strategies as st

from luthier.errors import ExpressionError
from luthier.expr import Expression, Limits, Scope, compile_condition, compile_value, parse
from luthier.taint import Integrity, Label, Labelled, Source, escape_pointer, merge
from luthier.tools import Envelope, delivered
from tests.expr.generate import BLENDS, LAW, NAMES, SMALL, TEXT, TREES, VALUES

if TYPE_CHECKING:
    from collections.abc import Callable

    from luthier.expr.nodes import Node

LIMITS = Limits(work=200_000)
MANY = settings(LAW, max_examples=400)


def _envelope(content: Any) -> Envelope:
    return Envelope({"tool": "t", "server": "s", "content": content, "duration": 1.0, "isError": False})


WITH_ENVELOPES = VALUES | VALUES.map(lambda content: {"output": _envelope(content), "failed": False})
SCOPES = st.fixed_dictionaries(dict.fromkeys(NAMES, WITH_ENVELOPES))


def _mark(name: str) -> Label:
    return Label(Integrity.untrusted, sources=frozenset({Source("s", name)}))


def _marked(name: str, value: Any) -> Labelled[Any]:
    """The value with a label of its own for each member at the top, so that each can be told apart."""
    if type(value) is not dict or not value:
        return Labelled(value, _mark(name))
    return merge({key: Labelled(item, _mark(f"{name}/{key}")) for key, item in value.items()}, _mark(name))


def _scope(values: dict[str, Any]) -> Scope:
    return Scope({name: _marked(name, value) for name, value in values.items()}, now=1e9, limits=LIMITS)


def _spelled(value: Any) -> str:
    """A value as comparable text, nan included."""
    return json.dumps(delivered(value))


def _outcome(work: Callable[[], Any]) -> tuple[Any, ExpressionError | None]:
    """What the work gives, or the one kind of error that it may raise."""
    try:
        return work(), None
    except ExpressionError as error:
        return None, error


@LAW
@given(TREES, SCOPES)
def test_evaluation_gives_a_json_value_or_an_expression_error(tree: Node, values: dict[str, Any]) -> None:
    found, error = _outcome(lambda: Expression("", tree).evaluate(_scope(values)))
    if error is None:
        json.dumps(delivered(found.value))
    else:
        assert error.message


TOKENS = [*"a.()[]'?:- 1{}|,!=`\\", "||", "${", "{{", "}}"]


@LAW
@given(st.text(max_size=60) | st.lists(st.sampled_from(TOKENS), max_size=14).map("".join))
def test_any_text_parses_or_is_an_expression_error(text: str) -> None:
    for make in (parse, compile_value, compile_condition):
        made, error = _outcome(lambda make=make: make(text))  # type: ignore[misc]
        if error is None:
            assert made.source == text
        else:
            assert error.source == text
            assert 0 <= error.offset <= len(text)


@LAW
@given(TREES, SCOPES)
def test_evaluation_repeats_itself_and_changes_nothing(tree: Node, values: dict[str, Any]) -> None:
    expression, scope = Expression("", tree), _scope(values)
    before = _spelled(values)
    first, error = _outcome(lambda: expression.evaluate(scope))
    second, again = _outcome(lambda: expression.evaluate(scope))
    assert str(error) == str(again)
    assert error or _spelled(first.value) == _spelled(second.value)
    assert _spelled(values) == before


SMALL_SCOPES = st.fixed_dictionaries(
    {name: st.fixed_dictionaries({"x": SMALL, "y": SMALL}) for name in "abc"}
)


@MANY
@given(BLENDS, SMALL_SCOPES, SMALL)
def test_what_the_label_does_not_name_has_no_influence(
    tree: Node, values: dict[str, Any], other: Any
) -> None:
    expression = Expression("", tree)
    found = expression.evaluate(_scope(values))
    leaves = _leaves(found.value)
    for root, key in itertools.product("abc", "xy"):
        again = expression.evaluate(_scope({**values, root: {**values[root], key: other}}))
        others = dict(_leaves(again.value))
        for pointer, leaf in leaves:
            if Source("s", f"{root}/{key}") not in found.at(pointer).sources:
                assert _spelled(others[pointer]) == _spelled(leaf)
        if Source("s", f"{root}/{key}") not in found.whole.sources:
            assert _spelled(again.value) == _spelled(found.value)


def _leaves(value: Any, pointer: str = "") -> list[tuple[str, Any]]:
    if isinstance(value, Envelope):
        value = value.fields()
    pairs: Any = ()
    if isinstance(value, dict):
        pairs = value.items()
    elif isinstance(value, list):
        pairs = enumerate(value)
    if not pairs:
        return [(pointer, value)]
    return [leaf for key, item in pairs for leaf in _leaves(item, f"{pointer}/{escape_pointer(str(key))}")]


@LAW
@given(TREES, SCOPES)
def test_a_label_names_nothing_that_the_expression_does_not(tree: Node, values: dict[str, Any]) -> None:
    expression = Expression("", tree)
    found, error = _outcome(lambda: expression.evaluate(_scope(values)))
    if error is not None:
        return
    roots = {reference.root for reference in expression.references}
    assert {source.tool.split("/")[0] for source in found.whole.sources} <= roots


@LAW
@given(TEXT, TEXT)
def test_data_is_never_evaluated(before: str, after: str) -> None:
    hidden = f"{before}${{secret}}{{{{secret}}}}{after}"
    scope = Scope({"data": Labelled({"t": hidden}), "secret": Labelled("LEAK", _mark("secret"))}, now=0.0)
    for value in (
        "${data.t}",
        "x${data.t}",
        "${data.t + ''}",
        "${'' + data.t}",
        "${join([data.t], '')}",
        "${'${data.t}'}",
    ):
        found = compile_value(value).evaluate(scope)
        assert found.value.removeprefix("x" if value.startswith("x") else "") == hidden
        assert not found.whole.sources
    assert compile_value({"k": ["${data}"]}).evaluate(scope).value == {"k": [{"t": hidden}]}


@LAW
@given(st.text(max_size=40))
def test_escaped_text_comes_out_as_it_went_in(text: str) -> None:
    escaped = text.replace("\\${", "$").replace("\\{{", "{").replace("${", "\\${").replace("{{", "\\{{")
    compiled = compile_value(escaped)
    assert compiled.is_constant
    assert compiled.evaluate(Scope({}, now=0.0)).value == text.replace("\\${", "$").replace("\\{{", "{")


@LAW
@given(VALUES)
def test_a_lone_expression_gives_the_very_value(value: Any) -> None:
    found = compile_value("${a.x}").evaluate(Scope({"a": Labelled({"x": value})}, now=0.0)).value
    if isinstance(value, float) and value - value != 0:
        assert found is None
    else:
        assert found is value
